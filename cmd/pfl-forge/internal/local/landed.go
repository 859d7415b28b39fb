package local

import (
	"context"
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
)

// Landed is a commit on the base branch that says which task it is the change
// of.
type Landed struct {
	// Commit is the newest of the task.
	Commit git.OID
	Intent forge.IntentID
	Task   forge.TaskID
}

// Landed returns the newest commit of each task of a project that the base
// branch says it has, newest first. Whoever can push to the branch can say
// so.
func (r *Repository) Landed(ctx context.Context, project forge.ProjectID) ([]Landed, error) {
	base, err := r.Base(ctx)
	if err != nil {
		return nil, err
	}
	const trailer = "%%(trailers:key=Forge-%s,valueonly,separator=%%x20)"
	format := "%H%x00" + fmt.Sprintf(trailer, "Project") + "%x00" + fmt.Sprintf(trailer, "Intent") + "%x00" + fmt.Sprintf(trailer, "Task")
	out, err := r.Store.Git(ctx, "log", "--first-parent", "--no-show-signature", "--grep=^Forge-Task: ", "--format="+format, string(base.Head))
	if err != nil {
		return nil, err
	}
	var list []Landed
	seen := map[[2]string]bool{}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\x00")
		if len(f) != 4 || f[1] != string(project) || seen[[2]string{f[2], f[3]}] {
			continue
		}
		intent, err := forge.ParseIntentID(f[2])
		if err != nil {
			continue // nobody's
		}
		task, err := forge.ParseTaskID(f[3])
		if err != nil {
			continue
		}
		seen[[2]string{f[2], f[3]}] = true
		list = append(list, Landed{git.OID(f[0]), intent, task})
	}
	return list, nil
}
