package local

import (
	"context"
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local/merged"
	"github.com/pfl-forge/pfl-forge/git"
)

// Ahead is an intent of which the base branch has more than its journal knows.
type Ahead struct {
	Intent forge.IntentID `json:"intent" yaml:"intent"`
	// Unknown says that the journal is not there at all.
	Unknown bool `json:"unknown" yaml:"unknown"`
	// Merged are the tasks that are on the branch, and not merged as far as the journal knows.
	Merged Commits `json:"merged" yaml:"merged"`
}

// TaskCommit is a task's commit on the base branch.
type TaskCommit struct {
	Task   forge.TaskID `json:"task"   yaml:"task"`
	Commit string       `json:"commit" yaml:"commit"`
}

// Commits are commits of an intent's tasks.
type Commits []TaskCommit

// String names the tasks with their commits.
func (l Commits) String() string {
	var parts []string
	for _, c := range l {
		parts = append(parts, fmt.Sprintf("%s as %.12s", c.Task, c.Commit))
	}
	return strings.Join(parts, ", ")
}

// Compare compares the journals of a project with the base branch. ahead lists
// the intents of which the branch has commits that their journals do not know,
// by the trailers of the commits, which anyone who can push may write. gone has
// the commits of merged tasks, by intent, that the branch no longer has.
func (r *Repository) Compare(ctx context.Context, b *bus.Bus, project forge.ProjectID) (ahead []Ahead, gone map[forge.IntentID]Commits, err error) {
	list, err := r.Merged(ctx, project)
	if err != nil {
		return nil, nil, err
	}
	views, err := LoadAll(ctx, b, project)
	if err != nil {
		return nil, nil, err
	}
	stored, err := b.Journal.Sequences(ctx, project)
	if err != nil {
		return nil, nil, err
	}
	has, err := r.commits(ctx)
	if err != nil {
		return nil, nil, err
	}
	return aheadOf(list, views, stored), goneFrom(has, views), nil
}

// commits returns all commits of the base branch.
func (r *Repository) commits(ctx context.Context) (map[git.OID]bool, error) {
	base, err := r.Base(ctx)
	if err != nil {
		return nil, err
	}
	out, err := r.Store.Git(ctx, "rev-list", string(base.Head))
	if err != nil {
		return nil, err
	}
	has := map[git.OID]bool{}
	for line := range strings.Lines(string(out)) {
		has[git.OID(strings.TrimSpace(line))] = true
	}
	return has, nil
}

// aheadOf returns the intents of which the branch has more than their journals,
// in the order of the list. What intents that are over had was decided;
// journals that are stored and cannot be read are left out.
func aheadOf(list []merged.Change, views []forge.View, stored map[forge.IntentID]uint64) []Ahead {
	journals := map[forge.IntentID]*forge.View{}
	for i := range views {
		journals[views[i].Intent.ID] = &views[i]
	}
	out := []Ahead{}
	at := map[forge.IntentID]int{}
	for _, l := range list {
		v, known := journals[l.Intent]
		if !known && stored[l.Intent] > 0 || known && (v.Summary.Status.Ended() || isDone(v, l.Task)) {
			continue
		}
		i, found := at[l.Intent]
		if !found {
			i = len(out)
			at[l.Intent] = i
			out = append(out, Ahead{Intent: l.Intent, Unknown: !known})
		}
		out[i].Merged = append(out[i].Merged, TaskCommit{l.Task, string(l.Commit)})
	}
	return out
}

// isDone reports whether a task is merged by the journal.
func isDone(v *forge.View, id forge.TaskID) bool {
	for i := range v.Tasks {
		if v.Tasks[i].ID == id {
			return v.Tasks[i].Status == forge.TaskDone
		}
	}
	return false
}

// goneFrom returns the commits of merged tasks that are not among those of the branch.
func goneFrom(has map[git.OID]bool, views []forge.View) map[forge.IntentID]Commits {
	gone := map[forge.IntentID]Commits{}
	for i := range views {
		id := views[i].Intent.ID
		for j := range views[i].Tasks {
			if t := &views[i].Tasks[j]; t.Commit != "" && !has[git.OID(t.Commit)] {
				gone[id] = append(gone[id], TaskCommit{t.ID, t.Commit})
			}
		}
	}
	return gone
}
