// Package sessions hands the session of an attempt on to other replicas: the files that the
// agent keeps of it are read while it works, and put into the host's object store with the
// worker's checkpoint and what was used. A [Session] is that of one command; [Session.Call]
// resumes or begins it.
package sessions

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/jobs/ledger"
	"github.com/pfl-forge/pfl-forge/service"
)

// HostID returns the id of a state directory, made on first use. A replica that finds
// this id in a stored session was the last to save it, and so has its files already.
func HostID(stateDir string) (string, error) {
	path := filepath.Join(stateDir, "id")
	id, err := os.ReadFile(path)
	if err == nil && len(id) > 0 {
		return string(id), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	fresh := rand.Text()
	tmp := path + ".new"
	if err := os.WriteFile(tmp, []byte(fresh), 0o600); err != nil {
		return "", err
	}
	return fresh, os.Rename(tmp, path)
}

// Store has the sessions of a process.
type Store struct {
	// Objects is where they are stored for other replicas; nil: they stay on this machine.
	Objects *objects.Store
	// Host is the id of the process's state directory, see HostID.
	Host string
	// Log receives failures that end no attempt.
	Log *slog.Logger
}

// Of returns the session of a command, whose back end is a.
func (s Store) Of(cmd *forge.Command, a agent.Agent) Session {
	return Session{store: s, cmd: cmd, agent: a}
}

// Session is that of one command: the files that the agent keeps of it, and what is stored
// of it for other replicas.
type Session struct {
	store Store
	cmd   *forge.Command
	agent agent.Agent
}

// hasSession reports whether the command has a session: recipes do not.
func (s Session) hasSession() bool {
	return s.cmd.Session != "" && s.agent.Name() != config.AgentRecipe
}

// files lists the files of the session, relative to the state directory; none if the agent
// keeps no sessions.
func (s Session) files(stateDir string) ([]string, error) {
	keeper, ok := s.agent.(agent.Sessions)
	if !ok {
		return nil, nil
	}
	return keeper.SessionFiles(stateDir, s.cmd.Session)
}

// keeps reports whether the agent has sessions that can be resumed.
func (s Session) keeps() bool {
	_, ok := s.agent.(agent.Sessions)
	return ok
}

// object returns the name under which the session is stored.
func (s Session) object() objects.Name {
	n := object(s.cmd.To, s.cmd.Attempt.Task)
	if s.cmd.Attempt.Step == forge.StepReview { // a task has another session beside that of its author
		n.ID = string(forge.StepReview)
	}
	return n
}

// object returns the name of a task's session in the object store; an empty
// task stands for the analysis of the intent.
func object(intent forge.Key, task forge.TaskID) objects.Name {
	return objects.Name{Project: intent.Project, Intent: intent.Intent, Task: task, Kind: objects.Session}
}

// Fetch downloads the session into a state directory, in place of the files there, if
// another replica saved it last, and returns that replica's checkpoint. It returns nil if
// this process was the last, or if nothing is stored. used gets what another replica
// counted for the attempt, whether or not its files are taken.
func (s Session) Fetch(ctx context.Context, stateDir string, used func(*ledger.Ledger)) (checkpoint []byte, err error) {
	if !s.hasSession() || s.store.Objects == nil {
		return nil, nil
	}
	accept := func(head saved) error {
		if head.Host != s.store.Host && head.Used != nil {
			used(head.Used)
		}
		if head.Host == s.store.Host || head.Session != s.cmd.Session || head.Agent != s.agent.Name() {
			return errKnown
		}
		checkpoint = head.Checkpoint
		return s.Drop(stateDir)
	}
	r, w := io.Pipe()
	got := make(chan error, 1)
	go func() {
		err := s.store.Objects.Get(ctx, s.object(), w)
		_ = w.CloseWithError(err)
		got <- err
	}()
	err = unpack(r, stateDir, accept)
	_ = r.CloseWithError(errKnown)
	stored := <-got
	switch {
	case errors.Is(err, errKnown), errors.Is(stored, bus.ErrNotFound):
		return nil, nil
	case err != nil && (stored == nil || errors.Is(stored, errKnown)):
		s.store.Log.WarnContext(ctx, "the session that another replica left cannot be read", "session", s.cmd.Session, "error", err)
		return nil, s.Drop(stateDir)
	case err != nil:
		return nil, fmt.Errorf("fetch the session: %w", stored)
	}
	return checkpoint, nil
}

// Drop removes the session's files from the state directory.
func (s Session) Drop(stateDir string) error {
	files, err := s.files(stateDir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Remove(filepath.Join(stateDir, f)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Save stores the session together with the worker's checkpoint, so that any replica can
// resume it, unless the lease of the attempt is lost. It uses up to a minute even if ctx
// has ended. A failure is only logged: the task then goes on here, or without its session
// elsewhere.
func (s Session) Save(ctx context.Context, stateDir string, checkpoint []byte) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveAtEnd) // also for who goes on with what was stopped
	defer cancel()
	files, err := s.load(ctx, stateDir)
	if err == nil {
		err = s.put(ctx, stateDir, files, checkpoint)
	}
	if err != nil && !errors.Is(err, work.ErrLeaseLost) {
		s.store.Log.WarnContext(ctx, "a session cannot be handed on", "error", err)
	}
}

// load reads the session's files as they are now; nothing if there is no object
// store, or if they are too large to be stored.
func (s Session) load(ctx context.Context, stateDir string) ([]file, error) {
	if s.store.Objects == nil {
		return nil, nil
	}
	names, err := s.files(stateDir)
	if err != nil {
		return nil, err
	}
	files, err := read(stateDir, names)
	if errors.Is(err, objects.ErrTooLarge) {
		s.store.Log.WarnContext(ctx, "a session is too large to be handed on", "session", s.cmd.Session)
		return nil, nil
	}
	return files, err
}

// put stores the given files with the worker's checkpoint and the attempt's usage. It
// checks the lease right before the upload, and returns work.ErrLeaseLost if another
// replica may have the attempt.
func (s Session) put(ctx context.Context, stateDir string, files []file, note []byte) error {
	if !s.hasSession() || s.store.Objects == nil {
		return nil
	}
	head := saved{
		Host: s.store.Host, Session: s.cmd.Session, Agent: s.agent.Name(), Checkpoint: note, Used: ledger.Read(stateDir, s.cmd.Attempt),
	}
	packed, err := pack(head, files)
	if err == nil {
		err = service.Held(ctx)
	}
	if err == nil {
		err = s.store.Objects.Put(ctx, s.object(), bytes.NewReader(packed))
	}
	if err != nil {
		return fmt.Errorf("save the session: %w", err)
	}
	return nil
}

// Forget removes the stored sessions of an intent's tasks; the empty task stands for its
// analysis.
func (s Store) Forget(ctx context.Context, intent forge.Key, tasks ...forge.TaskID) error {
	if s.Objects == nil {
		return nil
	}
	var errs []error
	for _, t := range tasks {
		name := object(intent, t)
		errs = append(errs, s.Objects.Delete(ctx, name))
		if t != "" {
			name.ID = string(forge.StepReview)
			errs = append(errs, s.Objects.Delete(ctx, name))
		}
	}
	return errors.Join(errs...)
}

// Sweep removes the stored sessions of a project that keep does not accept. An empty task
// stands for an analysis.
func (s Store) Sweep(ctx context.Context, project forge.ProjectID, keep func(forge.IntentID, forge.TaskID) bool) error {
	if s.Objects == nil {
		return nil
	}
	list, err := s.Objects.List(ctx, objects.Name{Project: project, Kind: objects.Session})
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range list {
		if !keep(o.Intent, o.Task) {
			errs = append(errs, s.Objects.Delete(ctx, o.Name))
		}
	}
	return errors.Join(errs...)
}

// fingerprint returns a text that differs when names, sizes or modification times of
// files differ.
func fingerprint(dir string, files []string) string {
	var b strings.Builder
	for _, f := range files {
		if info, err := os.Lstat(filepath.Join(dir, f)); err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", f, info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}
