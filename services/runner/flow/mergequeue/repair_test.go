package mergequeue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

// One intent at a time looks at what a forge merged, and the next one at what
// was merged until it is submitted. However many are merged, there are never
// two, and the merge of such an intent asks for none.
func TestRepairs(t *testing.T) {
	var s Repairs
	at := time.Unix(1000, 0)
	merge := func(task forge.TaskID, own bool) *forge.Intent {
		r := &forge.Result{
			To: forge.Key{Project: "p", Intent: task.Intent()}, Attempt: forge.Attempt{Task: task},
			Output: &forge.MergeResult{Commit: "of " + string(task), Unproven: "its parent is another"},
		}
		return s.Merged(rules.Newest, r, func(_, of forge.IntentID) bool { return own && of != "" }, at)
	}
	first := merge("a-001", false)
	if first == nil || first.Validate() != nil || first.Title != "Verify what was merged for a-001" ||
		!strings.Contains(first.Body, "as commit of a-001, which is not") {
		t.Fatalf("after the first merge: %+v", first)
	}
	for i := range 2 * maxUnproven {
		if in := merge(forge.TaskID(fmt.Sprintf("b-%03d", i)), false); in != nil {
			t.Fatalf("beside it: %+v", in)
		}
	}
	if in := merge("c-001", true); in != nil {
		t.Errorf("after its own merge: %+v", in)
	}
	if in := s.Ended("another", "p", at); in != nil || s.Newest != first.ID || s.Over {
		t.Errorf("after the end of another intent: %+v", in)
	}
	next := s.Ended(first.ID, "p", at)
	if next == nil || next.ID == first.ID || next.Title != "Verify what was merged for b-039 and before it (19)" || next.Validate() != nil {
		t.Fatalf("after its end: %+v", next)
	}
	if strings.Contains(next.Body, "c-001") || strings.Contains(next.Body, "b-019 ") || !strings.Contains(next.Body, "b-020 ") {
		t.Errorf("the next one is about %s", next.Body)
	}
	if in := s.Ended(next.ID, "p", at); in != nil || !s.Over {
		t.Errorf("where nothing was merged meanwhile: %+v", in)
	}
	proved := &forge.Result{Attempt: forge.Attempt{Task: "d-000"}, Output: &forge.MergeResult{Outcome: forge.MergeDone, Commit: "c"}}
	if in := s.Merged(rules.Newest, proved, nil, at); in != nil {
		t.Errorf("after a merge that was proved: %+v", in)
	}
	if in := merge("d-001", true); in != nil {
		t.Errorf("its merge that is seen after its end: %+v", in)
	}
	if in := merge("d-002", false); in == nil {
		t.Error("after the end of all, none is submitted")
	}
}

// Whatever a worker says of a merge, the intent to look at it can be submitted:
// for one that is refused the next would wait for ever.
func TestRepairsAreSubmitted(t *testing.T) {
	for name, words := range map[string]string{
		"long": strings.Repeat("its parent is another, ", 10_000), "with control characters": "its parent\x00 is\x1b another", "no text": "its \xff",
	} {
		var s Repairs
		var in *forge.Intent
		for i := range 1 + maxUnproven {
			task := forge.TaskID(fmt.Sprintf("a-%03d", i))
			r := &forge.Result{Attempt: forge.Attempt{Task: task}, Output: &forge.MergeResult{Commit: words, Unproven: words}}
			if first := s.Merged(rules.Newest, r, func(_, _ forge.IntentID) bool { return false }, time.Unix(1000, 0)); first != nil {
				in = first
			}
		}
		for _, in := range []*forge.Intent{in, s.Ended(in.ID, "p", time.Unix(1000, 0))} {
			in.Project = "p"
			if err := in.Validate(); err != nil {
				t.Errorf("%s: it is refused: %v", name, err)
			}
		}
	}
}
