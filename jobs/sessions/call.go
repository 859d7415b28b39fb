package sessions

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
)

// Start says how a call begins within its session, which decides the prompt.
type Start string

// The openings.
const (
	// New begins a session in which nothing was said before.
	New Start = "new"
	// Resumed goes on in a session whose files are here.
	Resumed Start = "resume"
	// Lost begins a new session, with a recap, in place of one whose files are gone.
	Lost Start = "lost"
)

const (
	// saveWatch is the interval in which a running call's session is compared with what was saved.
	saveWatch = 250 * time.Millisecond
	// savePause is the least time between two saves while the agent works.
	savePause = 2 * time.Second
	// saveShare bounds the time that saving takes: at most one part in so many.
	saveShare = 30
	// saveAtEnd is how long the save at the end of a call may take.
	saveAtEnd = time.Minute
	// saveLocal replaces savePause where there is no other replica to hand the
	// session to.
	saveLocal = 20 * time.Second
)

// Call is a call within the session that the command names.
type Call struct {
	// Prompts returns the system prompt and the prompt for the way in which the call
	// begins. It may be called twice, if the session turns out to be lost.
	Prompts func(Start) (system, prompt string, err error)
	// Begun says that an earlier delivery of the attempt called the agent in this
	// session, even if its files are gone.
	Begun bool
	// Save is called now and then while the agent works, after the session's files
	// were read. It returns the worker's checkpoint, which is stored with them. May
	// be nil.
	Save func(context.Context) (note []byte, err error)
}

// Run makes one call of the session's agent.
type Run func(context.Context, agent.Call) (agent.Outcome, error)

// Call makes a call in the session, whose files are in call.StateDir: it resumes the session
// if the files are there, and begins it otherwise. A session that the agent cannot resume
// (forge.FailLostSession) is begun again, under the same id, with Lost. run makes the call.
func (s Session) Call(ctx context.Context, call agent.Call, c Call, run Run) (agent.Outcome, error) {
	files, err := s.files(call.StateDir)
	if err != nil {
		return agent.Outcome{}, err
	}
	opening := New
	switch {
	case len(files) > 0:
		opening = Resumed
	case s.cmd.Resume, c.Begun:
		opening = Lost
	}
	out, err := s.callFrom(ctx, call, c, opening, run)
	f, ok := errors.AsType[*agent.Failure](err)
	if !ok || f.Reason != forge.FailLostSession || opening != Resumed {
		return out, err
	}
	if err := s.Drop(call.StateDir); err != nil {
		return agent.Outcome{}, err
	}
	return s.callFrom(ctx, call, c, Lost, run)
}

// callFrom makes the call, and saves the session while it runs.
func (s Session) callFrom(ctx context.Context, call agent.Call, c Call, o Start, run Run) (out agent.Outcome, err error) {
	if o == Lost {
		s.store.Log.WarnContext(ctx, "a session is lost: a new one begins with a recap", "session", s.cmd.Session)
	}
	if call.System, call.Prompt, err = c.Prompts(o); err != nil {
		return agent.Outcome{}, err
	}
	call.Session = agent.Session{ID: s.cmd.Session, Resume: o == Resumed}
	defer s.saveWhileRunning(ctx, call.StateDir, c.Save)()
	return run(ctx, call)
}

// saveWhileRunning stores the session in intervals until stop is called, which waits
// for a save that is under way. So a replica that is killed loses at most seconds of
// work.
func (s Session) saveWhileRunning(ctx context.Context, stateDir string, save func(context.Context) ([]byte, error)) (stop func()) {
	if save == nil {
		save = func(context.Context) ([]byte, error) { return nil, nil }
	}
	w := saver{session: s, dir: stateDir, checkpoint: save, pause: savePause}
	if s.store.Objects == nil {
		w.pause = saveLocal
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// saver stores a session while its call runs.
type saver struct {
	// session holds the files that it stores.
	session Session
	// dir is the state directory with the session's files.
	dir string
	// checkpoint returns the worker's own state, see Call.Save.
	checkpoint func(context.Context) ([]byte, error)
	// pause is the least time between two saves.
	pause time.Duration
	// seen is the fingerprint of the files that were saved last.
	seen string
}

// run saves until ctx ends. An error is logged and tried again: the call goes on.
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
			s.session.store.Log.WarnContext(ctx, "cannot save what an agent does; trying again", "error", err)
		}
		next = time.Now().Add(max(s.pause, saveShare*time.Since(began)))
	}
}

// save stores the session if it has changed: the files are read first, then the
// worker's checkpoint is taken, so that the checkpoint is never behind what the agent
// remembers.
func (s *saver) save(ctx context.Context) error {
	files, err := s.session.files(s.dir)
	if err != nil {
		return err
	}
	now := fingerprint(s.dir, files)
	if now == s.seen && (now != "" || s.session.keeps()) {
		return nil // nothing was said since; or, of an agent that has no files, nobody knows
	}
	content, err := s.session.load(ctx, s.dir)
	if err != nil {
		return err
	}
	note, err := s.checkpoint(ctx)
	if err != nil {
		return err
	}
	if err := s.session.put(ctx, s.dir, content, note); err != nil {
		return err
	}
	s.seen = now
	return nil
}
