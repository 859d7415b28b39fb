package jobs

import (
	"context"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/jobs/ledger"
	"github.com/pfl-forge/pfl-forge/service"
)

// Job is one attempt of a command on its project's repository. It belongs to the
// function that Set.Do calls, and is not safe for concurrent use, except for the
// progress that Run reports.
type Job struct {
	*Repository
	// Command is the command that is carried out; read-only.
	Command *forge.Command
	// Result is the attempt's report. Workers set Output; Run adds agent, model, session and usage.
	Result forge.Result
	// Tip is the commit of the base branch at the start, or at the last Refresh.
	Tip git.OID
	// Config is pfl-forge.yaml as committed in Tip.
	Config *config.Project
	// Called is the agent of the last call, with the model that it was asked for.
	Called forge.Reviewer

	// progress receives the attempt's work, line by line.
	progress service.Progress
	// dir is the directory of the last call, to shorten paths that the agent names.
	dir string
	// metered counts the usage of calls in sessions; nil until there is one.
	metered *ledger.Meter
}

// begin opens the command's repository and reads the base branch, except for a
// merge, which reads it when its turn comes.
func (s *Set) begin(ctx context.Context, j *Job) (err error) {
	p := s.projects[j.Command.To.Project]
	if p == nil {
		return notServed(j.Command.To.Project)
	}
	if j.Repository, err = s.ready(ctx, p); err != nil || j.need().Merging {
		return err
	}
	return j.refresh(ctx)
}

// Refresh fetches the refs that the command needs, and sets Tip and Config
// anew. It waits a moment for an origin that does not answer.
func (j *Job) Refresh(ctx context.Context) error {
	return patiently(ctx, beginPatience, func() error { return j.refresh(ctx) })
}

// refresh is Refresh without patience.
func (j *Job) refresh(ctx context.Context) (err error) {
	if j.Tip, err = j.tip(ctx, j.need()); err != nil {
		return err
	}
	j.Config, err = j.Repository.Config(ctx, j.Tip)
	return err
}

// need returns the refs that the command needs.
func (j *Job) need() store.Need {
	n := store.Need{Intent: j.Intent(), Task: j.Task()}
	switch j.Command.Attempt.Step {
	case forge.StepImplement, forge.StepExecute, forge.StepRebase:
		n.Heads = true // overlaps are looked for
	case forge.StepMerge:
		n.Heads = j.Command.Merge().Trial // of those ahead
		n.Merging = !n.Heads
	default:
	}
	return n
}

// Intent returns the id of the command's intent.
func (j *Job) Intent() git.Name { return git.Name(j.Command.To.Intent) }

// Task returns the id of the command's task; empty for steps of a whole intent.
func (j *Job) Task() git.Name { return git.Name(j.Command.Attempt.Task) }

// GitAttempt returns the name under which git keeps the commits of this attempt.
func (j *Job) GitAttempt() store.Attempt {
	return store.Attempt{Intent: j.Intent(), Task: j.Task(), Number: j.Command.Attempt.Number}
}

// Recipe returns the recipe that the intent names; false if the project has no such
// recipe.
func (j *Job) Recipe() (config.Recipe, bool) {
	r, ok := j.Config.Recipes[j.Command.Intent.Recipe]
	return r, ok
}

// HasCheck reports whether the task's recipe has a check, by which the change is reviewed.
func (j *Job) HasCheck() bool {
	r, ok := j.Recipe()
	if t, named := r.Task(j.Command.Task.Name); named && t.Check != "" {
		return true
	}
	return ok && r.Check != ""
}

// OID parses a commit that the command names. The error is a forge.FailInvalidOutput
// that begins with field.
func OID(field, commit string) (git.OID, error) {
	o, err := git.ParseOID(commit)
	if err != nil {
		return "", agent.Fail(forge.FailInvalidOutput, "%s: %v", field, err)
	}
	return o, nil
}

// Files returns the paths of changes, in their order.
func Files(changes []objects.FileChange) []string {
	var list []string
	for _, c := range changes {
		list = append(list, c.Path)
	}
	return list
}

// viewName returns the name of a checkout for reading. It ends in the purpose, so it
// is never the name of a task's own checkout.
func viewName(j *Job, purpose string) git.Name {
	of := j.Task()
	if of == "" {
		of = j.Intent()
	}
	return git.Name(fmt.Sprintf("%s-%s", of, purpose))
}
