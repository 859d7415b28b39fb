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

// describeTrial says what a trial is put on top of, or which finding a merge is handed; nothing of a merge without one.
func describeTrial(in forge.MergeInput) string {
	var b strings.Builder
	if in.Trial {
		b.WriteString(" tried on")
		for i := range in.Ahead {
			b.WriteString(" " + string(in.Ahead[i].Task))
		}
	}
	if in.Tried != nil {
		b.WriteString(" found " + in.Tried.Head)
	}
	return b.String()
}
