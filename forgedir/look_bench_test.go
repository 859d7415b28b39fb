package forgedir

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge"
)

// BenchmarkQuickLook is what a look at the files of 10,000 intents costs that
// are as the look before has seen them: time, and processor time, which other
// work on the machine does not change much.
func BenchmarkQuickLook(b *testing.B) {
	d := newFixture(b)
	v := sample()
	v.Tasks, v.Reviews, v.History, v.Observations = nil, nil, nil, nil
	for i := range 10_000 {
		v.Intent.ID = forge.IntentID(fmt.Sprintf("change-%05d", i))
		v.Summary.Key.Intent = v.Intent.ID
		d.write(v)
	}
	current := func(id forge.IntentID) (forge.View, bool) {
		b.Fatalf("%s is taken for changed", id)
		return forge.View{}, false
	}
	look := func() {
		l, err := OpenLook(d.root, Options{Project: "demo"}, true)
		if err != nil {
			b.Fatal(err)
		}
		if shown, _ := l.Shown(); len(shown) != 10_000 {
			b.Fatalf("%d intents are shown", len(shown))
		}
		if _, problems, err := l.Read(b.Context(), current); err != nil || len(problems) > 0 {
			b.Fatal(problems, err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
	look() // reads all
	look() // keeps what was too young
	var used time.Duration
	for b.Loop() {
		before := processorTime(b)
		look()
		used += processorTime(b) - before
	}
	b.ReportMetric(float64(used.Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// processorTime returns what this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
