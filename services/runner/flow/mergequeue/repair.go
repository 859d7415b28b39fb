package mergequeue

import (
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Repair returns the intent to look at what the forge merged although it is not
// what was verified on its parent: whoever pressed the button knew better, or
// did not look. The base branch may fail now, and every later change with it. It
// is the same for the same merge.
func Repair(r *forge.Result, in *forge.MergeResult, now time.Time) *forge.Intent {
	task := r.Attempt.Task
	id := forge.NewDerivedID("verify-"+string(task), string(r.To.Project), "repair", in.Commit)
	return &forge.Intent{
		ID: id, Project: r.To.Project, CreatedAt: now, Source: forge.SourceReflection, Settings: forge.Settings{
			Title: fmt.Sprintf("Verify what was merged for %s", task),
			Body: fmt.Sprintf("The pull request of task %s was merged at the forge as commit %s, which is not what was verified and reviewed: %s.\n\n"+
				"Run the project's verify commands on the base branch. If they pass, there is nothing to do. If they fail because of that commit, "+
				"repair it; if that is not possible by a small change, revert it.", task, in.Commit, in.Unproven),
			Type: "fix",
		},
		Origin: forge.Origin{System: string(forge.SourceReflection), EventID: string(id)},
	}
}
