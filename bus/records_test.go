package bus_test

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestRecords reads records in parts: each comes once, also where a part ends in the middle,
// and garbage not at all. Where a record takes a newer version, it cannot be gone on.
func TestRecords(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	var list []forge.Key
	of := func(k forge.Key, rec *forge.Record) {
		if rec.Summary.Key != k {
			t.Errorf("a record of %s came as one of %s", rec.Summary.Key, k)
		}
		list = append(list, k)
	}
	if after, err := b.Journal.Records(ctx, "shop", 0, of); after != 0 || err != nil || len(list) > 0 {
		t.Errorf("where there is nothing: %d, %v, %v", after, err, list)
	}
	keys := []forge.Key{key, {Project: "shop", Intent: "other"}, {Project: "bank", Intent: "other"}}
	fill(t, b, 600, func(i int) forge.Key { return keys[i%len(keys)] })
	project := key.ProjectKey()
	if _, err := b.Journal.Append(ctx, project, chain.Head{}, record(project, 0)); err != nil {
		t.Fatal(err)
	}
	ending, end := context.WithCancel(ctx)
	after, err := b.Journal.Records(ending, "shop", 0, func(k forge.Key, rec *forge.Record) {
		if len(list) == 10 {
			end()
		}
		of(k, rec)
	})
	if !errors.Is(err, context.Canceled) || after == 0 || after > 599 || len(list) == 400 {
		t.Errorf("in the middle: %d after %d records, %v", after, len(list), err)
	}
	for range 2 {
		if after, err = b.Journal.Records(ctx, "shop", after, of); err != nil || after < 599 || len(list) != 400 {
			t.Errorf("%d after %d records, %v", after, len(list), err)
		}
	}
	if after, err := b.Journal.Records(ctx, "", after, of); err != nil || after != 600 || len(list) != 401 {
		t.Errorf("of all projects: %d after %d records, %v", after, len(list), err)
	}
	if after, err := b.Journal.ProjectRecords(ctx, "shop", 0, of); err != nil || after != 1 || len(list) != 402 || list[401] != project {
		t.Errorf("of the project itself: %d after %d records, %v", after, len(list), err)
	}
	stored := nats.NewMsg("forge.journal.shop.fix-login")
	stored.Data = []byte("garbage")
	put(t, raw(t, s), stored.Subject, stored.Data)
	if after, err = b.Journal.Records(ctx, "shop", after, of); after < 601 || err != nil || len(list) != 402 {
		t.Errorf("behind garbage: %d after %d records, %v", after, len(list), err)
	}
	stored.Data = []byte("\xf8\x3f\x01") // field 1023
	stored.Header.Set(wire.HeaderKind, wire.KindRecord)
	if _, err := jetStream(t, raw(t, s)).PublishMsg(ctx, stored); err != nil {
		t.Fatal(err)
	}
	if after, err := b.Journal.Records(ctx, "shop", after, of); after != 0 || err == nil || len(list) != 402 {
		t.Errorf("behind a record of a newer version: %d after %d records, %v", after, len(list), err)
	}
}
