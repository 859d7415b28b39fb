package repository

import (
	"context"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/service"
)

// Job is a command that is being done.
type Job struct {
	*Repository
	Command *forge.Command
	Result  forge.Result    // what is reported; Run fills in the agent's part
	Tip     git.OID         // of the base branch
	Config  *config.Project // as it is in Tip

	progress service.Progress
	dir      string // where the last call worked
	metered  *meter // of the calls so far; nil: none was counted
}

func (s *Set) begin(ctx context.Context, j *Job) (err error) {
	p := s.projects[j.Command.To.Project]
	if p == nil {
		return notServed(j.Command.To.Project)
	}
	if j.Repository, err = s.ready(ctx, p); err != nil {
		return err
	}
	return j.Refresh(ctx)
}

// Refresh looks where the base branch is.
func (j *Job) Refresh(ctx context.Context) (err error) {
	if j.Tip, err = j.Repository.Tip(ctx); err != nil {
		return err
	}
	j.Config, err = j.Repository.Config(ctx, j.Tip)
	return err
}

// Intent is the id of the intent that the command is for.
func (j *Job) Intent() git.Name { return git.Name(j.Command.To.Intent) }

// Task is the id of the command's task.
func (j *Job) Task() git.Name { return git.Name(j.Command.Attempt.Task) }

// GitAttempt is what commits of this attempt are kept under.
func (j *Job) GitAttempt() store.Attempt {
	return store.Attempt{Intent: j.Intent(), Task: j.Task(), Number: j.Command.Attempt.Number}
}

// Recipe returns the recipe that the intent names; false if there is no such.
func (j *Job) Recipe() (config.Recipe, bool) {
	r, ok := j.Config.Recipes[j.Command.Intent.Recipe]
	return r, ok
}

// OID is a commit that the command names; field says where, for the error.
func OID(field, commit string) (git.OID, error) {
	o, err := git.ParseOID(commit)
	if err != nil {
		return "", agent.Fail(forge.FailInvalidOutput, "%s: %v", field, err)
	}
	return o, nil
}

// Files lists the paths of changes.
func Files(changes []objects.FileChange) []string {
	var list []string
	for _, c := range changes {
		list = append(list, c.Path)
	}
	return list
}

// viewName names a checkout for reading. It ends in a step, so it is no task's.
func (j *Job) viewName(purpose string) git.Name {
	of := j.Task()
	if of == "" {
		of = j.Intent()
	}
	return git.Name(fmt.Sprintf("%s-%s", of, purpose))
}
