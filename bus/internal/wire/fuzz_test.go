package wire_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
)

// refused reports whether an error is of one of the two types that a message may be refused with.
func refused(err error) bool {
	_, garbage := errors.AsType[*wire.GarbageError](err)
	_, unknown := errors.AsType[*wire.UnknownError](err)
	return garbage || unknown
}

// FuzzCommand: a command that is taken is of the place that its subject names, and others are
// refused with an error of a known type.
func FuzzCommand(f *testing.F) {
	c := forge.Command{To: forge.Key{Project: "p", Intent: "i"}, Attempt: forge.Attempt{Step: forge.StepReview, Task: "i-001", Number: 1, Claim: 1}}
	data, err := wire.Commands.Marshal(&c)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("forge.command.review.any.p.i.i-001.1.1", data)
	f.Add("forge.command.review.on.r.p.i.i-001.1.1", data)
	f.Add("forge.command.analyze.any.p.i._.1.1", []byte("\x0a\x01x"))
	f.Fuzz(func(t *testing.T, subject string, data []byte) {
		c, err := wire.ParseCommand(subject, data)
		if err != nil {
			if !refused(err) {
				t.Errorf("an error of no known type: %v", err)
			}
			return
		}
		again, err := wire.ParseCommand(subject, mustMarshal(t, &c))
		if err != nil || !cmp.Equal(c, again, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()) {
			t.Errorf("it changed on the way (%v): %s", err, cmp.Diff(c, again))
		}
	})
}

func mustMarshal(t *testing.T, c *forge.Command) []byte {
	t.Helper()
	data, err := wire.Commands.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// FuzzSummary: what is read of a record alone is what the whole record says.
func FuzzSummary(f *testing.F) {
	rec := forge.Record{Summary: forge.Summary{Key: forge.Key{Project: "p", Intent: "i"}}, Previous: "00"}
	data, err := wire.Records.Marshal(&rec)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(append(data, data...))
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := wire.Records.Unmarshal(data)
		if _, e := wire.ReadSummary(data); e != nil && !refused(e) {
			t.Errorf("an error of no known type: %v", e)
		}
		previous := wire.ReadPrevious(data)
		if err != nil {
			return
		}
		if summary, err := wire.ReadSummary(data); err == nil && !cmp.Equal(summary, rec.Summary, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()) {
			t.Errorf("two readers: %s", cmp.Diff(summary, rec.Summary))
		}
		if previous != rec.Previous {
			t.Errorf("two readers: %q and %q", previous, rec.Previous)
		}
	})
}

// FuzzListing: whatever bytes there are in the place of a list, reading them
// ends, and what is read is what is written.
func FuzzListing(f *testing.F) {
	one := wire.Listing{Project: "shop", Seq: 3, Intents: []wire.Listed{{ID: "a", Seq: 2, Summary: []byte("x")}, {ID: "b", Seq: 3}}}
	f.Add(one.Marshal())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := wire.UnmarshalListing(data)
		if err != nil {
			return
		}
		again, err := wire.UnmarshalListing(l.Marshal())
		if diff := cmp.Diff(l, again); err != nil || diff != "" {
			t.Errorf("read again: %v\n%s", err, diff)
		}
	})
}
