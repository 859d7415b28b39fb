package mergequeue

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
)

// TestLine: readers see each change once, in the order of the merges, with the
// words that the summary of the project has, also those for which the summary
// has no room; and reading alters nothing.
func TestLine(t *testing.T) {
	var out outbox.Messages
	var s State
	for i := range maxPlaces + 10 {
		task := forge.TaskID(fmt.Sprintf("i%03d-001", i))
		change := &forge.QueueMerge{Task: task, Number: 1, PatchID: "patch", Parallel: 3, Batch: 2}
		if _, err := s.Merge(&out, task.Intent(), change); err != nil {
			t.Fatal(err)
		}
	}
	s.StartNext(&out, false)
	s.Couple(rules.Newest, false)
	before := fmt.Sprintf("%+v", s.Queued)
	l, places := LineOf(&s), s.Places()
	if after := fmt.Sprintf("%+v", s.Queued); after != before || l.Parallel != 3 || l.Batch != 2 || l.Held {
		t.Errorf("%+v\nfrom %s\nto %s", l, before, after)
	}
	if len(l.Places) != maxPlaces+10 {
		t.Fatalf("%d places", len(l.Places))
	}
	var tried, rode int
	for i, p := range l.Places {
		task := forge.TaskID(fmt.Sprintf("i%03d-001", i))
		if p.Task != task || p.Intent != task.Intent() || p.Position != i+1 || p.Merging != (i == 0 && s.Current != nil) {
			t.Errorf("place %d: %+v", i, p)
		}
		if words, told := places[string(p.Task)]; told && words != p.Words || !told && i <= maxPlaces-1 {
			t.Errorf("place %d: %q and %q", i, p.Words, words)
		}
		switch p.Trial {
		case Trying:
			tried++
			if len(p.With) != 1 || !slices.Contains(p.On, p.With[0]) || l.Places[i-1].Trial != Riding || p.With[0] != l.Places[i-1].Task {
				t.Errorf("the trial %+v", p)
			}
		case Riding:
			rode++
		case "", Passed, Stopped, Untested:
		}
	}
	if tried == 0 || rode != tried {
		t.Errorf("%d trials, %d ride", tried, rode)
	}
	for i, p := range l.Places {
		if p.Proposes {
			t.Errorf("place %d is pushed, and not proposed", i)
		}
	}
	s.Queued[0].Change.Pull = &forge.PullPolicy{}
	if p := LineOf(&s).Places; !p[0].Proposes || p[1].Proposes {
		t.Errorf("the first is proposed alone: %+v", p[:2])
	}
	s.Refused = &Refusal{}
	if !LineOf(&s).Held {
		t.Error("nothing holds it although pushes are refused")
	}
}
