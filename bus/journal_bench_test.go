package bus_test

import (
	"context"
	"fmt"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
)

func BenchmarkSummaries(b *testing.B) {
	bs := bustest.Start(b)
	fill(b, bs, 1000, func(i int) forge.Key {
		return forge.Key{Project: "shop", Intent: forge.IntentID(fmt.Sprint("i", i))}
	})
	for b.Loop() {
		if _, err := bs.Journal.Summaries(context.Background(), "shop"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	bs := bustest.Start(b)
	fill(b, bs, 12, func(int) forge.Key { return key })
	for b.Loop() {
		if _, _, err := bs.Journal.Load(context.Background(), key); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	bs := bustest.Start(b)
	var seq chain.Head
	for b.Loop() {
		var err error
		if seq, err = bs.Journal.Append(context.Background(), key, seq, record(key, 1)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWanted(b *testing.B) {
	bs := bustest.Start(b)
	fill(b, bs, 1, func(int) forge.Key { return key })
	for b.Loop() {
		if _, err := bs.Journal.Wanted(context.Background(), key, forge.Attempt{Step: forge.StepAnalyze}); err != nil {
			b.Fatal(err)
		}
	}
}
