package bus_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/intakes"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestEntriesHaveOneOrder: an entry is stored only by who has read all entries of the forge before
// it, also after a restart of the server; those of another forge have an order of their own.
func TestEntriesHaveOneOrder(t *testing.T) {
	t.Parallel()
	srv := bustest.StartServer(t)
	b, ctx := srv.Connect(t), wait.Context(t)
	add := func(forgeName, event string, last uint64) uint64 {
		t.Helper()
		seq, err := b.Intakes.Add(ctx, forgeName, intakes.Entry{Event: event, Counts: []intakes.Count{{Key: "day", USD: 0.1}}}, last)
		if err != nil && !errors.Is(err, intakes.ErrBehind) {
			t.Fatal(err)
		}
		return seq
	}
	if add("work", "a", 0) != 1 || add("work", "b", 0) != 0 || add("other", "b", 0) != 2 {
		t.Error("an entry was stored behind one that was not read, or is not apart from those of other forges")
	}
	srv.Restart(t)
	wait.Until(t, "an entry behind one that was not read is refused again", func() bool { // one that is cut off is not told again
		_, err := b.Intakes.Add(ctx, "work", intakes.Entry{Event: "b"}, 0)
		return errors.Is(err, intakes.ErrBehind)
	})
	if add("work", "b", 1) != 3 {
		t.Error("after a restart the order is another one")
	}
	var all []string
	err := b.Intakes.After(ctx, "work", 0, func(e intakes.Entry) error {
		all = append(all, fmt.Sprintf("%s %d %v %t", e.Event, e.Seq, e.Counts, e.At.IsZero()))
		return nil
	})
	if want := "[a 1 [{day 0.1}] false b 3 [{day 0.1}] false]"; fmt.Sprint(all) != want || err != nil {
		t.Errorf("read %v, %v; want %s", all, err, want)
	}
	if _, err := b.Intakes.Add(ctx, "a.b", intakes.Entry{}, 0); err == nil {
		t.Error("a forge's name became two tokens")
	}
}
