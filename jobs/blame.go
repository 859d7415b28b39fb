package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/jobs/vitals"
	"github.com/pfl-forge/pfl-forge/service/elsewhere"
)

// errNoGit is why a replica is unwell that does not find git. That costs
// nothing to look at, so no attempt has to fail by it first.
var errNoGit = errors.New("git is not in PATH, or may not be executed: install it")

// Unwell returns why this replica can do no work at all at present; nil if it
// can. The files of its state are not looked at.
func (s *Set) Unwell() error {
	if !process.Installed("git") {
		return errNoGit
	}
	return s.vitals.Unwell()
}

// Check is a condition of readiness: nil unless this replica lacks what others may have.
func (s *Set) Check(ctx context.Context) error {
	if !process.Installed("git") {
		return errNoGit
	}
	return s.vitals.Check(ctx)
}

// Lacks is Check without the origins of projects, whose names not all may know.
func (s *Set) Lacks(context.Context) error {
	if !process.Installed("git") {
		return errNoGit
	}
	return s.vitals.LacksBut(ofOrigin)
}

// Elsewhere returns why another replica had better take a command: this one
// alone does not reach the origin of its project. A project that knows its
// origin to be away has it told so here as well.
func (s *Set) Elsewhere(cmd *forge.Command) error {
	p := s.projects[cmd.To.Project]
	if p == nil || slices.Contains(cmd.ClosedAgents, forge.GitOrigin) {
		return nil
	}
	return s.vitals.Lacks(originOf(p))
}

// NotHere reports whether the error of a job that has cost nothing is of this
// replica. Then its attempt is not over where there are others: the next
// delivery of the command begins it, or goes on with it.
func NotHere(ctx context.Context, j *Job, err error) bool {
	spent := j.Result.Usage
	if j.Command.Intent.Recipe != "" {
		spent.Calls = 0 // a recipe counts as a call, and costs nothing
	}
	if err == nil || !elsewhere.Listens(ctx) || spent != (forge.Usage{}) {
		return false
	}
	return git.Unstarted(err) || process.Starved(err) || noRoom(err) || elsewhere.Lacks(Failure(err).Reason) || elsewhere.Unwell(ctx) != nil
}

// blame finds out whether a command failed for a reason of this replica, tells
// the worker if so, and returns the failure to report. A command that was stopped
// says nothing, and where there are no other replicas nothing is found out.
func (s *Set) blame(ctx context.Context, j *Job, err error, f *forge.Failure) *forge.Failure {
	p := s.projects[j.Command.To.Project]
	switch {
	case ctx.Err() != nil, !elsewhere.Listens(ctx):
	case git.Unstarted(err), process.Starved(err):
		elsewhere.NotHere(ctx, err, false)
		_ = s.vitals.Suspect(ctx, vitals.Ability{Name: "processes", Probe: s.starts})
		_ = s.vitals.Suspect(ctx, vitals.Ability{Name: "git", Probe: runsGit})
	case noRoom(err), f.Reason == forge.FailRepository && elsewhere.Unwell(ctx) != nil:
		// The replica may find room again once what the attempt wrote is gone.
		elsewhere.NotHere(ctx, err, true)
	case f.Reason == forge.FailSandbox:
		elsewhere.NotHere(ctx, err, true)
		s.suspectSandbox(ctx)
	case f.Reason == forge.FailMissingCLI, f.Reason == forge.FailCLITooOld:
		elsewhere.NotHere(ctx, err, true)
	case p == nil, !git.Unreachable(err) && git.CauseOf(err) != git.CauseAuth:
	case p.origin.Failed(j.Command.Accounts, time.Now()):
		_ = s.vitals.Suspect(ctx, vitals.Ability{Name: originOf(p), Partial: true, Probe: func(ctx context.Context) error { return s.reaches(ctx, p) }})
		// Nothing was done yet; what was done, and could not be pushed, is reported
		// as it always was. So is all to rules that do not know the reason.
		if j.Tip == "" && (j.Command.Patience > 0 || j.Command.Attempt.Step.OfProject()) {
			elsewhere.NotHere(ctx, err, true)
			return &forge.Failure{Reason: forge.FailReplica, Message: "this replica alone does not reach " + f.Message}
		}
	}
	return f
}

// noRoom reports whether the disk here took nothing more.
func noRoom(err error) bool { return errors.Is(err, process.ErrFull) || git.Unwritten(err) }

// reached notes that a job has begun, for which it fetched what it needs. A merge does that later.
func (s *Set) reached(j *Job) {
	if p := s.projects[j.Command.To.Project]; p != nil && j.Tip != "" {
		p.origin.Reached()
	}
}

// suspectSandbox probes the sandboxes of this machine. One that makes none with
// the machine's network makes none at all.
func (s *Set) suspectSandbox(ctx context.Context) {
	if s.host.Sandbox == demand.Unconfined {
		return // most commands need none here
	}
	e := s.host.Owner.Executor()
	for network, name := range map[sandbox.Network]string{sandbox.NetworkFull: "sandbox", sandbox.NetworkNone: "sandbox without a network"} {
		_ = s.vitals.Suspect(ctx, vitals.Ability{Name: name, Partial: network == sandbox.NetworkNone, Probe: func(ctx context.Context) error {
			err := e.Probe(ctx, network)
			if errors.Is(err, process.ErrLost) { // there is only no room at present
				return nil
			}
			return err
		}})
	}
}

// starts returns nil if this process can start another one.
func (s *Set) starts(ctx context.Context) error {
	report, err := process.Run(ctx, process.Command{
		Path: "/bin/sh", Args: []string{"-c", ":"}, Dir: "/", Env: process.Environment("/"), Owner: s.host.Owner, MergeStderr: true,
		Limits: process.Limits{Wall: 10 * time.Second},
	})
	if err == nil && report.ExitCode != 0 {
		err = fmt.Errorf("a command that does nothing ended with status %d: %s", report.ExitCode, report.Output)
	}
	return err
}

// runsGit returns nil if git can be run.
func runsGit(ctx context.Context) error {
	_, err := git.Version(ctx)
	return err
}

// originOf names the ability to reach the origin of a project.
func originOf(p *project) string { return ofOrigin + string(p.src.Project) }

// ofOrigin begins those names.
const ofOrigin = "origin of project "

// reaches returns nil if the origin of a project is reached from here.
func (s *Set) reaches(ctx context.Context, p *project) error {
	r, err := s.ready(ctx, p)
	if err == nil {
		_, err = r.Tip(ctx)
	}
	if err != nil {
		return errors.New(oneLine(err))
	}
	p.origin.Reached()
	return nil
}
