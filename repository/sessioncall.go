package repository

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
)

// Opening is how a call begins.
type SessionStart string

// The openings.
const (
	StartNew     SessionStart = "new"    // nothing was said before
	StartResumed SessionStart = "resume" // the conversation goes on where it was
	StartLost    SessionStart = "lost"   // there was a conversation, and nobody has it any more: another one begins, with a recap
)

const (
	// saveWatch is how often somebody looks whether there is something to save.
	saveWatch = 250 * time.Millisecond
	// savePause is the least time between two times of saving what an agent does, and
	// saveShare what part of the time saving may take: one of so many.
	savePause = 2 * time.Second
	saveShare = 30
	// saveAtEnd is how long the last time may take.
	saveAtEnd = time.Minute
	// saveLocal is savePause where the files need not be handed on to anybody.
	saveLocal = 20 * time.Second
)

// Conversation is a call within the command's conversation.
type SessionCall struct {
	// Prompts returns what the agent is told.
	Prompts func(SessionStart) (system, prompt string, err error)
	// Begun says that the agent was called in it before, by a delivery that was cut
	// off, also if its files are gone.
	Begun bool
	// Save is called now and then while the agent works. It returns what is to be
	// stored beside the conversation's files, as they were a moment before. May be nil.
	Save func(context.Context) (note []byte, err error)
}

// Converse makes a call in the command's conversation, whose files are in call's
// StateDir: it goes on with it if they are there, and begins it otherwise. A
// conversation that cannot be gone on with is begun again, under the same id.
func (j *Job) CallInSession(ctx context.Context, call agent.Call, c SessionCall) (agent.Outcome, error) {
	files, err := j.sessionFiles(call.StateDir)
	if err != nil {
		return agent.Outcome{}, err
	}
	opening := StartNew
	switch {
	case len(files) > 0:
		opening = StartResumed
	case j.Command.Resume, c.Begun:
		opening = StartLost
	}
	out, err := j.callFrom(ctx, call, c, opening)
	f, ok := errors.AsType[*agent.Failure](err)
	if !ok || f.Reason != forge.FailLostSession || opening != StartResumed {
		return out, err
	}
	if err := j.dropSession(call.StateDir); err != nil {
		return agent.Outcome{}, err
	}
	return j.callFrom(ctx, call, c, StartLost)
}

func (j *Job) callFrom(ctx context.Context, call agent.Call, c SessionCall, o SessionStart) (out agent.Outcome, err error) {
	if o == StartLost {
		j.host.Log.Warn("a session is lost: a new one begins with a recap", "session", j.Command.Session, "attempt", j.Command.ID())
	}
	if call.System, call.Prompt, err = c.Prompts(o); err != nil {
		return agent.Outcome{}, err
	}
	call.Session = agent.Session{ID: j.Command.Session, Resume: o == StartResumed}
	defer j.saveWhileRunning(ctx, call.StateDir, c.Save)()
	return j.Run(ctx, call)
}

// saveNowAndThen stores the conversation while it goes on, until it is stopped.
func (j *Job) saveWhileRunning(ctx context.Context, stateDir string, save func(context.Context) ([]byte, error)) (stop func()) {
	if save == nil {
		save = func(context.Context) ([]byte, error) { return nil, nil }
	}
	s := saver{job: j, dir: stateDir, checkpoint: save, pause: savePause}
	if j.host.Objects == nil {
		s.pause = saveLocal
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// saver stores a conversation while it goes on.
type saver struct {
	job        *Job
	dir        string
	checkpoint func(context.Context) ([]byte, error)
	pause      time.Duration
	seen       string // the fingerprint of what was saved
}

func (s *saver) run(ctx context.Context) {
	tick := time.NewTicker(saveWatch)
	defer tick.Stop()
	var next time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if time.Now().Before(next) {
			continue
		}
		began := time.Now()
		if err := s.save(ctx); err != nil && ctx.Err() == nil {
			s.job.host.Log.Warn("cannot save what an agent does; trying again", "attempt", s.job.Command.ID(), "error", err)
		}
		next = time.Now().Add(max(s.pause, saveShare*time.Since(began)))
	}
}

// save stores the conversation if it has changed: first its files, then what the
// worker has, so that the work is not behind what the agent knows of it.
func (s *saver) save(ctx context.Context) error {
	files, err := s.job.sessionFiles(s.dir)
	if err != nil {
		return err
	}
	now := fingerprint(s.dir, files)
	if now == s.seen && (now != "" || s.job.keepsSessions()) {
		return nil // nothing was said since; or, of an agent that has no files, nobody knows
	}
	content, err := s.job.loadSession(s.dir)
	if err != nil {
		return err
	}
	note, err := s.checkpoint(ctx)
	if err != nil {
		return err
	}
	if err := s.job.storeSession(ctx, s.dir, content, note); err != nil {
		return err
	}
	s.seen = now
	return nil
}
