package repository

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/service"
)

// hostID names a state directory, wherever it is: who finds that it was the last to
// save a session has its files. It is made when the directory is.
func hostID(stateDir string) (string, error) {
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

// talks reports whether the command's agent has a conversation, which recipes do not.
func (j *Job) agentWithSession() (agent.Agent, bool, error) {
	a, err := j.Agent()
	if err != nil {
		return nil, false, err
	}
	return a, j.Command.Session != "" && a.Name() != config.AgentRecipe, nil
}

// sessionFiles lists the files of the command's conversation in a state directory.
func (j *Job) sessionFiles(stateDir string) ([]string, error) {
	a, _, err := j.agentWithSession()
	if err != nil {
		return nil, err
	}
	s, ok := a.(agent.Sessions)
	if !ok {
		return nil, nil
	}
	return s.SessionFiles(stateDir, j.Command.Session)
}

// keepsSessions reports whether the command's agent has conversations that can be
// gone on with.
func (j *Job) keepsSessions() bool {
	a, err := j.Agent()
	_, ok := a.(agent.Sessions)
	return ok && err == nil
}

func (j *Job) sessionObject() objects.Name {
	return sessionObject(j.Command.To, j.Command.Attempt.Task)
}

func sessionObject(intent forge.Key, task forge.TaskID) objects.Name {
	return objects.Name{Project: intent.Project, Intent: intent.Intent, Task: task, Kind: objects.Session}
}

// FetchSession brings the command's conversation to a state directory if another
// replica was the last to have it, in place of what is there, and returns what that
// replica's worker noted beside it. Otherwise it returns nil. What the attempt used there
// counts here from now on.
func (j *Job) FetchSession(ctx context.Context, stateDir string) (note []byte, err error) {
	a, talks, err := j.agentWithSession()
	if err != nil || !talks || j.host.Objects == nil {
		return nil, err
	}
	accept := func(head savedSession) error {
		if head.Host != j.host.id && head.Used != nil {
			j.takeOver(stateDir, head.Used)
		}
		if head.Host == j.host.id || head.Session != j.Command.Session || head.Agent != a.Name() {
			return errKnown
		}
		note = head.Checkpoint
		return j.dropSession(stateDir)
	}
	r, w := io.Pipe()
	got := make(chan error, 1)
	go func() {
		err := j.host.Objects.Get(ctx, j.sessionObject(), w)
		_ = w.CloseWithError(err)
		got <- err
	}()
	err = unpackSession(r, stateDir, accept)
	_ = r.CloseWithError(errKnown)
	stored := <-got
	switch {
	case errors.Is(err, errKnown), errors.Is(stored, bus.ErrNotFound):
		return nil, nil
	case err != nil && (stored == nil || errors.Is(stored, errKnown)):
		j.host.Log.Warn("the session that another replica left cannot be read", "session", j.Command.Session, "error", err)
		return nil, j.dropSession(stateDir)
	case err != nil:
		return nil, fmt.Errorf("fetch the session: %w", stored)
	}
	return note, nil
}

// dropSession removes the conversation's files, which are of no use.
func (j *Job) dropSession(stateDir string) error {
	files, err := j.sessionFiles(stateDir)
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

// SaveSession stores the command's conversation, with what the worker notes beside
// it, so that any replica can go on with it, unless the attempt may have been given
// to another one. That it cannot be stored is no reason to fail: the task goes on
// here, or without its conversation.
func (j *Job) SaveSession(ctx context.Context, stateDir string, note []byte) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveAtEnd) // also for who goes on with what was stopped
	defer cancel()
	j.markReported(ctx)
	files, err := j.loadSession(stateDir)
	if err == nil {
		err = j.storeSession(ctx, stateDir, files, note)
	}
	if err != nil && !errors.Is(err, work.ErrLeaseLost) {
		j.host.Log.Warn("a session cannot be handed on", "attempt", j.Command.ID(), "error", err)
	}
}

// loadSession reads the files of the command's conversation as they are now.
func (j *Job) loadSession(stateDir string) ([]sessionFile, error) {
	if j.host.Objects == nil {
		return nil, nil
	}
	names, err := j.sessionFiles(stateDir)
	if err != nil {
		return nil, err
	}
	files, err := readSession(stateDir, names)
	if errors.Is(err, objects.ErrTooLarge) {
		j.host.Log.Warn("a session is too large to be handed on", "session", j.Command.Session)
		return nil, nil
	}
	return files, err
}

func (j *Job) storeSession(ctx context.Context, stateDir string, files []sessionFile, note []byte) error {
	a, talks, err := j.agentWithSession()
	if err != nil || !talks || j.host.Objects == nil {
		return err
	}
	head := savedSession{Host: j.host.id, Session: j.Command.Session, Agent: a.Name(), Checkpoint: note, Used: j.readLedger(stateDir)}
	packed, err := packSession(head, files)
	if err == nil {
		err = service.Held(ctx)
	}
	if err == nil {
		err = j.host.Objects.Put(ctx, j.sessionObject(), bytes.NewReader(packed))
	}
	if err != nil {
		return fmt.Errorf("save the session: %w", err)
	}
	return nil
}

// ForgetSessions removes what is stored of the conversations of an intent's tasks;
// the empty one stands for its analysis.
func (r *Repository) ForgetSessions(ctx context.Context, intent forge.IntentID, tasks ...forge.TaskID) error {
	if r.host.Objects == nil {
		return nil
	}
	var errs []error
	for _, t := range tasks {
		errs = append(errs, r.host.Objects.Delete(ctx, sessionObject(forge.Key{Project: r.Project, Intent: intent}, t)))
	}
	return errors.Join(errs...)
}

// SweepSessions removes what is stored of conversations that keep does not want, such
// as after a time in which nobody listened. An empty task stands for an analysis.
func (r *Repository) SweepSessions(ctx context.Context, keep func(forge.IntentID, forge.TaskID) bool) error {
	if r.host.Objects == nil {
		return nil
	}
	list, err := r.host.Objects.List(ctx, objects.Name{Project: r.Project, Kind: objects.Session})
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range list {
		if !keep(o.Intent, o.Task) {
			errs = append(errs, r.host.Objects.Delete(ctx, o.Name))
		}
	}
	return errors.Join(errs...)
}

// fingerprint tells whether files have changed.
func fingerprint(dir string, files []string) string {
	var b strings.Builder
	for _, f := range files {
		if info, err := os.Lstat(filepath.Join(dir, f)); err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", f, info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}
