package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/gateway"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/jobs/caches"
	"github.com/pfl-forge/pfl-forge/jobs/gate"
	"github.com/pfl-forge/pfl-forge/jobs/sessions"
	"github.com/pfl-forge/pfl-forge/jobs/vitals"
	"github.com/pfl-forge/pfl-forge/service"
)

// Host describes the process that works on repositories. It is set up once, before
// OpenSet.
type Host struct {
	// StateDir is absolute and belongs to this process alone: clones,
	// checkouts, sessions, scratch files.
	StateDir string
	// Owner marks every process that is started, so that the next process of
	// the same state directory can end them. The agents have the same one.
	Owner process.Owner
	// Agents are the back ends that every project can name.
	Agents []agent.Agent
	// Env has KEY=VALUE pairs that commands and agents get beside the basic
	// environment, such as GOCACHE.
	Env []string
	// Log receives messages that belong to no attempt's transcript.
	Log *slog.Logger

	// Own makes a back end from an agent that a project's configuration defines; nil:
	// projects can define none.
	Own func(name string, c config.AgentConfig) agent.Agent

	// FirstUse leaves an origin alone until the first command of its project comes, unless
	// there is a clone of an earlier life. Otherwise all are cloned at the start.
	FirstUse bool
	// Allow returns nil if a configuration may have effect on this machine; nil: all may, since
	// whoever runs the service answers for its projects.
	Allow func(context.Context, *config.Project) error
	// Adjust changes each configuration that Allow let pass, for work that is
	// no run's; nil: none is changed.
	Adjust func(*config.Project)
	// Alone says that only the user of this machine could approve.
	Alone bool
	// Sandbox is the demand of whoever runs the process. A project's policy can only be stricter.
	Sandbox demand.Demand
	// Private are paths that no sandbox shows, whatever a project's configuration grants. They
	// may be empty.
	Private []string
	// Gateway connects sandboxed agents to their models, and is closed with the Set;
	// nil: they connect by themselves.
	Gateway *gateway.Gateway

	// Objects is where sessions are stored for other replicas; nil: sessions stay on
	// this machine.
	Objects *objects.Store
	// Metrics may be nil: then nothing is measured.
	Metrics *telemetry.Recorder
	// id is that of the state directory, see sessions.HostID.
	id string

	// confinement remembers which sandboxes the machine offers.
	confinement *confinement
	// gates keep calls from accounts that refuse them.
	gates *gate.Gates
}

// Source says where a repository is. Exactly one of URL and Path is set.
type Source struct {
	// Project is the id that intents use.
	Project forge.ProjectID
	// URL is the origin, which is cloned into the state directory.
	URL string
	// Path is a person's own repository, which is used in place. Where the
	// process has it open already, that is in Store.
	Path  string
	Store *store.Store
}

// Set holds the repositories of a process. It is safe for concurrent use.
type Set struct {
	host Host
	// lock is held on the state directory until Close.
	lock     *os.File
	projects map[forge.ProjectID]*project
	// sources are the projects in their order.
	sources []Source
	// vitals tells which abilities this replica lacks.
	vitals *vitals.Vitals
	// began is when the Set was opened.
	began time.Time

	// opening are the tries of KeepOpening, which stopOpening ends; nil before that.
	opening     sync.WaitGroup
	stopOpening context.CancelFunc
}

// OpenSet takes over the state directory, after waiting for another process that has
// it: it ends processes that the previous process left running, removes scratch
// files, and opens every repository, or those that [Host.FirstUse] allows. A repository whose
// origin cannot be read does not delay the others: KeepOpening or its first command opens it.
// Errors name the project. Close the Set to give the directory up.
func OpenSet(ctx context.Context, host Host, sources []Source) (*Set, error) {
	if !filepath.IsAbs(host.StateDir) {
		return nil, fmt.Errorf("state directory %q is not absolute", host.StateDir)
	}
	lock, err := lockState(ctx, &host)
	if err != nil {
		return nil, err
	}
	host.confinement, host.gates = &confinement{}, &gate.Gates{}
	host.Owner.Hold(lock) // what a command leaves running keeps the next life waiting, too
	s := &Set{host: host, lock: lock, projects: map[forge.ProjectID]*project{}, sources: sources, began: time.Now(), vitals: vitals.New(host.Log)}
	if s.host.id, err = sessions.HostID(host.StateDir); err == nil {
		err = s.open(ctx, sources)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// lockState locks the state directory, and waits as long as ctx allows for another
// process that has it: its agents must not be taken for leftovers.
func lockState(ctx context.Context, host *Host) (*os.File, error) {
	if err := os.MkdirAll(host.StateDir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(host.StateDir, ".lock")
	soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	lock, err := git.LockFile(soon, path)
	if errors.Is(err, git.ErrBusy) && ctx.Err() == nil {
		host.Log.WarnContext(ctx, "another process uses the state directory; waiting for its end", "dir", host.StateDir)
		lock, err = git.LockFile(ctx, path)
	}
	return lock, err
}

// open ends leftover processes, removes scratch files and opens the sources.
func (s *Set) open(ctx context.Context, sources []Source) error {
	host := &s.host
	killed, err := host.Owner.Sweep(ctx)
	if err != nil {
		return fmt.Errorf("end what a former life left running: %w", err)
	}
	if killed > 0 {
		host.Log.InfoContext(ctx, "ended processes that a former life left running", "count", killed)
	}
	if err := caches.RemoveAll(filepath.Join(host.StateDir, scratchDir)); err != nil {
		return fmt.Errorf("remove old scratch files: %w", err)
	}
	for _, src := range sources {
		p := &project{src: src, slot: make(chan struct{}, 1)}
		s.projects[src.Project] = p
		if host.FirstUse && src.URL != "" && !host.cloned(src.Project) {
			// What is wrong with an address is told at the start all the same.
			if err := store.CheckAddress(src.URL); err != nil {
				return fmt.Errorf("project %s: %w", src.Project, err)
			}
			p.unused = true
			continue
		}
		if err := s.try(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// Open returns a project's repository, after opening it if that has not been done yet. The
// error says that this process does not serve the project, or cannot open it.
func (s *Set) Open(ctx context.Context, id forge.ProjectID) (*Repository, error) {
	p := s.projects[id]
	if p == nil {
		return nil, notServed(id)
	}
	return s.ready(ctx, p)
}

// Get returns a project's repository. The error says that this process does not serve
// the project, or could not open it yet.
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

// Close closes the repositories and gives the state directory up. Checkouts stay on
// disk. No job may be under way.
func (s *Set) Close() error {
	if s.stopOpening != nil {
		s.stopOpening()
		s.opening.Wait()
	}
	s.vitals.Close()
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

// Do carries out one command: it prepares a Job, calls work with it, and returns the
// job's Result. An error of work becomes a Failure in the result, which keeps the
// usage that was counted until then.
func (s *Set) Do(ctx context.Context, cmd *forge.Command, progress service.Progress, work func(context.Context, *Job) error) forge.Result {
	if err := checkIDs(cmd); err != nil {
		return forge.Result{Output: Failure(err)}
	}
	// The rules know that the origin is away, and a probe is looking for it. To try as well
	// would take the time of a worker, and with a server that is silent minutes of it.
	if slices.Contains(cmd.ClosedAgents, forge.GitOrigin) {
		return forge.Result{Output: &forge.Failure{Reason: forge.FailHeld, Message: "nothing was done: the git origin is known not to answer"}}
	}
	ctx = traced(ctx)
	j := &Job{Command: cmd, progress: progress}
	err := patiently(ctx, beginPatience, func() error { return s.begin(ctx, j) })
	if err == nil {
		s.reached(j)
		err = work(ctx, j)
		j.metered.MarkReported(ctx)
	}
	if err == nil {
		s.refused(cmd.To.Project, nil)
	} else {
		r := &j.Result
		f := Failure(err)
		if s.refused(cmd.To.Project, err) && f.Reason == forge.FailOrigin {
			f.Reason = forge.FailRepository // a person has to hear of it, and nobody else can tell
		}
		r.Policy, r.Output = nil, s.blame(ctx, j, err, f)
		if errors.Is(err, errUnreserved) {
			r.Policy = PolicyOf(j) // which the runner has not heard of
		}
	}
	return j.Result
}

// refused reports whether it is this replica alone whose credentials the origin
// of a project refuses.
func (s *Set) refused(id forge.ProjectID, err error) bool {
	p := s.projects[id]
	return p != nil && p.refusals.observe(err)
}

// traced returns ctx such that what git does at an origin, or with many files, is a span of its
// trace; ctx itself without one, so that nothing is spent where no traces are taken.
func traced(ctx context.Context) context.Context {
	if telemetry.TraceIDOf(ctx) == "" {
		return ctx
	}
	return git.WithObserver(ctx, func(ctx context.Context, op git.Operation) (context.Context, func(error)) {
		return telemetry.Span(ctx, "git "+string(op))
	})
}

// checkIDs validates the ids of a command that become names of files, branches and
// refs.
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
