package flow_test

import (
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// triedMerge returns what a trial found on top of a tree.
func triedMerge(on string, commit func(string) string, conflicts []string, broken bool) *forge.Rebase {
	return &forge.Rebase{
		BaseTree: on, Head: commit("tried"), Tree: commit("stacked-tree"), PatchID: commit("patch"), Conflicts: conflicts,
		Verify: &forge.VerifyReport{Passed: !broken, Command: "make test"},
	}
}

// ridden returns what became of the changes that a trial on a tree verified
// together with its own, by the trees that they led to, and the last of these.
func ridden(c *forge.Command, on string, trees []string) (list []forge.Rebase, last string) {
	in := c.Merge()
	for i, tree := range trees {
		ahead := &in.Ahead[len(in.Ahead)-in.Batch+i]
		list = append(list, forge.Rebase{BaseTree: on, Tree: tree, Head: "ridden-" + string(ahead.Task), PatchID: ahead.PatchID})
		on = tree
	}
	return list, on
}

// describeTrial says what a trial is put on top of, or which finding a merge is
// handed; nothing of a merge without one.
func describeTrial(in forge.MergeInput) string {
	var b strings.Builder
	if in.Trial {
		b.WriteString(" tried on")
		for i := range in.Ahead {
			if i == len(in.Ahead)-in.Batch {
				b.WriteString(", together with")
			}
			b.WriteString(" " + string(in.Ahead[i].Task))
		}
	}
	if in.Tried != nil {
		b.WriteString(" found " + in.Tried.Head)
		if in.Tried.Together != "" {
			b.WriteString(", which passed together as " + in.Tried.Together)
		}
	}
	return b.String()
}
