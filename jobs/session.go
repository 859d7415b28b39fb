package jobs

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

// hostID returns the id of a state directory, made on first use. A replica that finds
// this id in a stored session was the last to save it, and so has its files already.
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

// A sessionStore hands the session of a job's command on to other replicas: it reads
// the files that the agent keeps of it, and puts them into the host's object store.
type sessionStore struct{ job *Job }

// sessions returns the store of the command's session.
func (j *Job) sessions() sessionStore { return sessionStore{job: j} }

// agent returns the command's agent, and whether it has a session: recipes do not.
func (s sessionStore) agent() (agent.Agent, bool, error) {
	a, err := s.job.Agent()
	if err != nil {
		return nil, false, err
	}
	return a, s.job.Command.Session != "" && a.Name() != config.AgentRecipe, nil
}

// files lists the files of the command's session, relative to the state directory;
// none if the agent keeps no sessions.
func (s sessionStore) files(stateDir string) ([]string, error) {
	a, _, err := s.agent()
	if err != nil {
		return nil, err
	}
	keeper, ok := a.(agent.Sessions)
	if !ok {
		return nil, nil
	}
	return keeper.SessionFiles(stateDir, s.job.Command.Session)
}

// keeps reports whether the command's agent has sessions that can be resumed.
func (s sessionStore) keeps() bool {
	a, err := s.job.Agent()
	_, ok := a.(agent.Sessions)
	return ok && err == nil
}

// object returns the name under which the command's session is stored.
func (s sessionStore) object() objects.Name {
	return sessionObject(s.job.Command.To, s.job.Command.Attempt.Task)
}

// sessionObject returns the name of a task's session in the object store; an empty
// task stands for the analysis of the intent.
func sessionObject(intent forge.Key, task forge.TaskID) objects.Name {
	return objects.Name{Project: intent.Project, Intent: intent.Intent, Task: task, Kind: objects.Session}
}

// FetchSession downloads the command's session into a state directory, in place of
// the files there, if another replica saved it last, and returns that replica's
// checkpoint. It returns nil if this process was the last, or if nothing is stored.
// The usage that the other replica counted for the attempt is added to this job's
// result.
func (j *Job) FetchSession(ctx context.Context, stateDir string) (note []byte, err error) {
	a, talks, err := j.sessions().agent()
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
		return j.sessions().drop(stateDir)
	}
	r, w := io.Pipe()
	got := make(chan error, 1)
	go func() {
		err := j.host.Objects.Get(ctx, j.sessions().object(), w)
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
		j.host.Log.WarnContext(ctx, "the session that another replica left cannot be read", "session", j.Command.Session, "error", err)
		return nil, j.sessions().drop(stateDir)
	case err != nil:
		return nil, fmt.Errorf("fetch the session: %w", stored)
	}
	return note, nil
}

// drop removes the session's files from the state directory.
func (s sessionStore) drop(stateDir string) error {
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

// SaveSession stores the command's session together with the worker's checkpoint, so
// that any replica can resume it, unless the lease of the attempt is lost. It uses up
// to a minute even if ctx has ended. A failure is only logged: the task then goes on
// here, or without its session elsewhere.
func (j *Job) SaveSession(ctx context.Context, stateDir string, note []byte) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveAtEnd) // also for who goes on with what was stopped
	defer cancel()
	j.markReported(ctx)
	files, err := j.sessions().load(ctx, stateDir)
	if err == nil {
		err = j.sessions().put(ctx, stateDir, files, note)
	}
	if err != nil && !errors.Is(err, work.ErrLeaseLost) {
		j.host.Log.WarnContext(ctx, "a session cannot be handed on", "error", err)
	}
}

// load reads the session's files as they are now; nothing if there is no object
// store, or if they are too large to be stored.
func (s sessionStore) load(ctx context.Context, stateDir string) ([]sessionFile, error) {
	if s.job.host.Objects == nil {
		return nil, nil
	}
	names, err := s.files(stateDir)
	if err != nil {
		return nil, err
	}
	files, err := readSession(stateDir, names)
	if errors.Is(err, objects.ErrTooLarge) {
		s.job.host.Log.WarnContext(ctx, "a session is too large to be handed on", "session", s.job.Command.Session)
		return nil, nil
	}
	return files, err
}

// put stores the given files with the worker's checkpoint and the attempt's usage. It
// checks the lease right before the upload, and returns work.ErrLeaseLost if another
// replica may have the attempt.
func (s sessionStore) put(ctx context.Context, stateDir string, files []sessionFile, note []byte) error {
	a, talks, err := s.agent()
	if err != nil || !talks || s.job.host.Objects == nil {
		return err
	}
	head := savedSession{Host: s.job.host.id, Session: s.job.Command.Session, Agent: a.Name(), Checkpoint: note, Used: s.job.readLedger(stateDir)}
	packed, err := packSession(head, files)
	if err == nil {
		err = service.Held(ctx)
	}
	if err == nil {
		err = s.job.host.Objects.Put(ctx, s.object(), bytes.NewReader(packed))
	}
	if err != nil {
		return fmt.Errorf("save the session: %w", err)
	}
	return nil
}

// ForgetSessions removes the stored sessions of an intent's tasks; the empty task
// stands for its analysis.
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

// SweepSessions removes the stored sessions that keep does not accept. It is called
// at the start, for intents that ended while no worker listened. An empty task stands
// for an analysis.
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
