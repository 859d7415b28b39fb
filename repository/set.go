package repository

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/gateway"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/service"
)

// Host is the process that works on repositories.
type Host struct {
	StateDir string        // absolute, of this process alone: clones, checkouts, sessions, scratch files
	Owner    process.Owner // of every process that is started; the agents have the same one
	Agents   []agent.Agent // the back ends that there are for every project
	Env      []string      // KEY=VALUE that commands and agents see beside the basic environment, such as GOCACHE
	Log      *slog.Logger

	Own func(name string, c config.AgentConfig) agent.Agent // makes a back end of the project's own; nil: there are none

	// RequireSandbox goes before what projects say: nothing runs without a sandbox, and
	// they cannot have more shown in it.
	RequireSandbox bool
	Gateway        *gateway.Gateway // by which agents reach their models, closed with the Set; nil: they reach them by themselves

	Objects *objects.Store // where sessions are handed on to other replicas; nil: nowhere
	id      string         // of StateDir

	confinement *confinement
}

// Source is where a repository is. Either URL or Path is set.
type Source struct {
	Project forge.ProjectID
	URL     string // of an origin, which is cloned
	Path    string // of a person's own repository: origin and clone at once
}

// Set is the repositories of a process. It is safe for concurrent use.
type Set struct {
	host     Host
	lock     *os.File // of the state directory
	projects map[forge.ProjectID]*project
}

// OpenSet takes the state directory over, once nobody else has it: it ends
// processes that a former life left running, removes their scratch files, and opens every repository. One whose
// origin cannot be read does not keep the others waiting: it is opened by its first
// command that finds the origin. Errors name the project.
func OpenSet(ctx context.Context, host Host, sources []Source) (*Set, error) {
	if !filepath.IsAbs(host.StateDir) {
		return nil, fmt.Errorf("state directory %q is not absolute", host.StateDir)
	}
	lock, err := lockState(ctx, &host)
	if err != nil {
		return nil, err
	}
	host.confinement = &confinement{}
	host.Owner.Hold(lock) // what a command leaves running keeps the next life waiting, too
	s := &Set{host: host, lock: lock, projects: map[forge.ProjectID]*project{}}
	if s.host.id, err = hostID(host.StateDir); err == nil {
		err = s.open(ctx, sources)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// lockState waits for another process that has the state directory: what runs
// there is not a former life's.
func lockState(ctx context.Context, host *Host) (*os.File, error) {
	if err := os.MkdirAll(host.StateDir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(host.StateDir, ".lock")
	soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	lock, err := git.LockFile(soon, path)
	if errors.Is(err, git.ErrBusy) && ctx.Err() == nil {
		host.Log.Warn("another process uses the state directory; waiting for its end", "dir", host.StateDir)
		lock, err = git.LockFile(ctx, path)
	}
	return lock, err
}

func (s *Set) open(ctx context.Context, sources []Source) error {
	host := &s.host
	killed, err := host.Owner.Sweep(ctx)
	if err != nil {
		return fmt.Errorf("end what a former life left running: %w", err)
	}
	if killed > 0 {
		host.Log.Info("ended processes that a former life left running", "count", killed)
	}
	if err := removeAll(filepath.Join(host.StateDir, scratchDir)); err != nil {
		return fmt.Errorf("remove old scratch files: %w", err)
	}
	for _, src := range sources {
		p := &project{src: src, slot: make(chan struct{}, 1)}
		s.projects[src.Project] = p
		if err := s.try(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// Get returns a project's repository, or an error that says that this process does
// not serve it, or could not open it yet.
func (s *Set) Get(id forge.ProjectID) (*Repository, error) {
	p := s.projects[id]
	if p == nil {
		return nil, notServed(id)
	}
	if r := p.repo.Load(); r != nil {
		return r, nil
	}
	return nil, agent.Fail(forge.FailRepository, "the repository of project %s is not open yet", id)
}

// Close lets go of the checkouts, which stay. No job may be under way.
func (s *Set) Close() error {
	var errs []error
	for _, p := range s.projects {
		if r := p.repo.Load(); r != nil {
			errs = append(errs, r.Pool.Close())
			r.Store.Close()
		}
	}
	if g := s.host.Gateway; g != nil {
		errs = append(errs, g.Close())
	}
	s.host.Owner.Hold(nil)
	return errors.Join(append(errs, s.lock.Close())...)
}

// Do does a command on its project's repository. What work reports is the job's
// Result; its error becomes a Failure, beside what the agent used until then.
func (s *Set) Do(ctx context.Context, cmd *forge.Command, progress service.Progress, work func(context.Context, *Job) error) forge.Result {
	if err := checkIDs(cmd); err != nil {
		return forge.Result{Output: Failure(err)}
	}
	j := &Job{Command: cmd, progress: progress}
	err := s.begin(ctx, j)
	if err == nil {
		err = work(ctx, j)
		j.markReported(ctx)
	}
	if err != nil {
		r := &j.Result
		r.Policy, r.Output = nil, Failure(err)
	}
	return j.Result
}

// checkIDs makes sure of what becomes names of files, branches and refs.
func checkIDs(cmd *forge.Command) error {
	_, err := forge.ParseIntentID(string(cmd.To.Intent))
	if task := cmd.Attempt.Task; err == nil && task != "" {
		_, err = forge.ParseTaskID(string(task))
	}
	if err != nil {
		return agent.Fail(forge.FailInvalidOutput, "the command is malformed: %v", err)
	}
	return nil
}
