package mergequeue

import (
	"fmt"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/pull"
)

// TestReplacedOnce: a change takes the place of the commit that it began with by its first push, and by none after that, however often it is put on
// the tip. Another commit that is adopted later is another order.
func TestReplacedOnce(t *testing.T) {
	adopting := func(commit string) *forge.QueueMerge {
		return &forge.QueueMerge{Facts: &forge.PullFacts{Adopted: &forge.Adoption{Commit: commit}}}
	}
	var none *Pull
	if a := none.replaces(adopting("one")); a == nil || a.Commit != "one" {
		t.Errorf("before the first push: %v", a)
	}
	p := &Pull{Change: &forge.QueueMerge{}}
	q := adopting("one")
	if a := p.replaces(q); a == nil || a.Commit != "one" {
		t.Errorf("after pushes of what was before: %v", a)
	}
	p.Replace(q.Facts.Adopted)
	p.Change = q
	for i := range 100 {
		p.Push(pull.Head{Commit: fmt.Sprintf("ours-%d", i)})
		if a := p.replaces(q); a != nil {
			t.Fatalf("after %d pushes: %v", i+1, a)
		}
	}
	if a := p.replaces(adopting("two")); a == nil || a.Commit != "two" {
		t.Errorf("of another commit: %v", a)
	}
}
