package mergequeue

import (
	"fmt"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/pull"
)

// TestReplacedOnce: a change takes the place of the commit that it began with by
// its first push, and by none after that, however often it is put on another tip:
// not even when more was pushed since than is kept, nor on another branch. A person
// who adopts the same commit again, because it was put back, has it replaced again.
func TestReplacedOnce(t *testing.T) {
	adopting := func(commit string, number int) *forge.QueueMerge {
		return &forge.QueueMerge{Facts: &forge.PullFacts{Adopted: &forge.Adoption{Commit: commit, Number: number}}}
	}
	var none *Pull
	if a := none.replaces(adopting("one", 2)); a == nil || a.Commit != "one" {
		t.Errorf("before the first push: %v", a)
	}
	p := &Pull{Change: &forge.QueueMerge{}}
	for _, q := range []*forge.QueueMerge{adopting("one", 2), adopting("two", 4), adopting("one", 6), adopting("ours-3", 9)} {
		want := q.Facts.Adopted
		if a := p.replaces(q); a != want {
			t.Errorf("after pushes of what was before: got %v, want %v", a, want)
		}
		p.Replace(want)
		p.Change = q
		for i := range 100 {
			p.Push(pull.Head{Commit: fmt.Sprintf("ours-%d", i)})
			if a := p.replaces(q); a != nil {
				t.Fatalf("after %d pushes: %v", i+1, a)
			}
		}
	}
}
