package jobs

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/jobs/ledger"
	"github.com/pfl-forge/pfl-forge/jobs/sessions"
)

// sessions returns where the process has its sessions.
func (h *Host) sessions() sessions.Store {
	return sessions.Store{Objects: h.Objects, Host: h.id, Log: h.Log}
}

// session returns the session of the command.
func (j *Job) session() (sessions.Session, error) {
	a, err := j.Agent()
	return j.host.sessions().Of(j.Command, a), err
}

// FetchSession downloads the command's session into a state directory if another replica saved
// it last, and returns that replica's checkpoint; see [sessions.Session.Fetch]. The usage that
// the other replica counted for the attempt is added to this job's result.
func (j *Job) FetchSession(ctx context.Context, stateDir string) (checkpoint []byte, err error) {
	s, err := j.session()
	if err != nil {
		return nil, err
	}
	return s.Fetch(ctx, stateDir, func(theirs *ledger.Ledger) {
		if ledger.TakeOver(stateDir, j.Command.Attempt, theirs) {
			j.meter(stateDir) // even if no call is made any more
		}
	})
}

// DropSession removes the files of the command's session, so that a call begins it anew.
func (j *Job) DropSession(stateDir string) error {
	s, err := j.session()
	if err != nil {
		return err
	}
	return s.Drop(stateDir)
}

// SaveSession stores the command's session together with the worker's checkpoint; see
// [sessions.Session.Save].
func (j *Job) SaveSession(ctx context.Context, stateDir string, checkpoint []byte) {
	j.metered.MarkReported(ctx)
	s, err := j.session()
	if err != nil {
		j.host.Log.WarnContext(ctx, "a session cannot be handed on", "error", err)
		return
	}
	s.Save(ctx, stateDir, checkpoint)
}

// CallInSession makes a call in the command's session; see [sessions.Session.Call].
func (j *Job) CallInSession(ctx context.Context, call agent.Call, c sessions.Call) (agent.Outcome, error) {
	s, err := j.session()
	if err != nil {
		return agent.Outcome{}, err
	}
	return s.Call(ctx, call, c, j.Run)
}

// meter returns the meter of the job's calls in sessions. When it is made, it adds to the
// result what was counted for the same attempt before.
func (j *Job) meter(stateDir string) *ledger.Meter {
	if j.metered == nil {
		m, before := ledger.Open(stateDir, j.host.id, j.Command.Attempt)
		j.metered, j.Result.Usage = m, j.Result.Usage.Add(before)
	}
	return j.metered
}

// ForgetSessions removes the stored sessions of an intent's tasks; the empty task
// stands for its analysis.
func (r *Repository) ForgetSessions(ctx context.Context, intent forge.IntentID, tasks ...forge.TaskID) error {
	return r.host.sessions().Forget(ctx, forge.Key{Project: r.Project, Intent: intent}, tasks...)
}

// SweepSessions removes the stored sessions that keep does not accept. It is called
// at the start, for intents that ended while no worker listened. An empty task stands
// for an analysis.
func (r *Repository) SweepSessions(ctx context.Context, keep func(forge.IntentID, forge.TaskID) bool) error {
	return r.host.sessions().Sweep(ctx, r.Project, keep)
}
