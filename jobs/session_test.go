package jobs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
	"github.com/pfl-forge/pfl-forge/jobs/sessions"
)

// talker is an agent whose conversations are files, to which each call adds its prompt.
type talker struct {
	loses atomic.Bool       // the next conversation that is to go on
	while func(file string) // what happens while it works
	calls []agent.Session   // so far
}

func (*talker) Name() string { return "claude" }

func (*talker) file(id string) string { return filepath.Join("talks", id+".txt") }

func (a *talker) SessionFiles(stateDir, id string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(stateDir, a.file(id))); err != nil {
		return nil, nil //nolint:nilerr // there is none
	}
	return []string{a.file(id)}, nil
}

func (a *talker) Run(_ context.Context, c agent.Call, _ func(agent.Event)) (agent.Outcome, error) {
	a.calls = append(a.calls, c.Session)
	if c.Session.Resume && a.loses.Swap(false) {
		return agent.Outcome{}, agent.Fail(forge.FailLostSession, "it is gone")
	}
	path := filepath.Join(c.StateDir, a.file(c.Session.ID))
	said, _ := os.ReadFile(path)
	if (len(said) > 0) != c.Session.Resume {
		return agent.Outcome{}, agent.Fail(forge.FailCrashed, "session %q: %q", c.Session.ID, said)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, append(said, c.Prompt+"\n"...), 0o600)); err != nil {
		return agent.Outcome{}, err
	}
	if a.while != nil {
		a.while(path)
	}
	return agent.Outcome{Session: c.Session.ID}, nil
}

const talk = "0d0ae1b9-0000-4000-8000-000000000001"

// host is a replica with an agent.
type host struct {
	t   *testing.T
	set *jobs.Set
	// step and talk are of the next job: its step, and its session.
	step forge.Step
	talk string
}

func newHost(t *testing.T, origin string, store *objects.Store, a agent.Agent) *host {
	t.Helper()
	return &host{t, repotest.Replica(t, origin, store, a), forge.StepImplement, talk}
}

// job does work on a conversation.
func (h *host) job(resume bool, work func(context.Context, *jobs.Job) error) forge.Result {
	h.t.Helper()
	cmd := &forge.Command{
		BudgetUSD: 5,
		To:        forge.Key{Project: repotest.Project, Intent: "fix"},
		Attempt:   forge.Attempt{Task: "fix-001", Step: h.step, Number: 1, Claim: 1},
		Session:   h.talk, Resume: resume,
	}
	return h.set.Do(h.t.Context(), cmd, func(forge.Progress) {}, work)
}

// say says something, and returns how the call began, what was noted elsewhere, and
// what the conversation is then.
func (h *host) say(what, note string, resume bool) (opening sessions.Start, noted, said string) {
	h.t.Helper()
	r := h.job(resume, func(ctx context.Context, j *jobs.Job) error {
		dir := j.StateDir("fix-001-" + string(h.step))
		n, err := j.FetchSession(ctx, dir)
		if err != nil {
			return err
		}
		noted = string(n)
		_, err = j.CallInSession(ctx, agent.Call{Role: agent.RoleImplement, StateDir: dir}, sessions.Call{
			Prompts: func(o sessions.Start) (string, string, error) {
				opening = o
				return "", what, nil
			},
		})
		if err != nil {
			return err
		}
		j.SaveSession(ctx, dir, []byte(note))
		content, err := os.ReadFile(filepath.Join(dir, "talks", h.talk+".txt"))
		said = strings.TrimSpace(string(content))
		return err
	})
	if r.Failure() != nil {
		h.t.Fatalf("%+v", r.Failure())
	}
	return opening, noted, said
}

func hosts(t *testing.T) (one, two *host, a *talker, store *objects.Store) {
	t.Helper()
	origin := gittest.New(t, map[string]string{"pfl-forge.yaml": "agent: claude\n"}).Origin()
	store = bustest.Start(t).Objects
	a = &talker{}
	return newHost(t, origin, store, a), newHost(t, origin, store, a), a, store
}

// A conversation goes on wherever it was last.
func TestConversationMoves(t *testing.T) {
	t.Parallel()
	one, two, a, _ := hosts(t)
	steps := []struct {
		host    *host
		opening sessions.Start
		noted   string
		said    string
	}{
		{one, sessions.New, "", "0"},
		{one, sessions.Resumed, "", "0 1"},
		{two, sessions.Resumed, `"1"`, "0 1 2"},
		{two, sessions.Resumed, "", "0 1 2 3"},
		{one, sessions.Resumed, `"3"`, "0 1 2 3 4"}, // not what it has itself
	}
	for i, s := range steps {
		what := string(rune('0' + i))
		opening, noted, said := s.host.say(what, `"`+what+`"`, i > 0)
		if opening != s.opening || noted != s.noted || strings.Join(strings.Fields(said), " ") != s.said {
			t.Errorf("step %d: %s, noted %s, said %q", i, opening, noted, said)
		}
	}
	for _, c := range a.calls {
		if c.ID != talk {
			t.Errorf("another session: %+v", c)
		}
	}
}

// The review of a task has a session of its own beside that of its author, and
// goes on wherever that was last. Both end with the task.
func TestConversationOfAReview(t *testing.T) {
	t.Parallel()
	one, two, _, store := hosts(t)
	one.say("made", "", false)
	review := func(h *host) {
		h.step, h.talk = forge.StepReview, "0d0ae1b9-0000-4000-8000-000000000002"
	}
	review(one)
	one.say("asks", "", false)
	if opening, _, said := two.say("made again", "", true); opening != sessions.Resumed || said != "made\nmade again" {
		t.Errorf("of its author: %s, %q", opening, said)
	}
	review(two)
	if opening, _, said := two.say("is told", "", true); opening != sessions.Resumed || said != "asks\nis told" {
		t.Errorf("of its reviewer: %s, %q", opening, said)
	}
	r, err := one.set.Get(repotest.Project)
	if err == nil {
		err = r.ForgetSessions(t.Context(), "fix", "fix-001")
	}
	if list, failed := store.List(t.Context(), objects.Name{Project: repotest.Project, Kind: objects.Session}); err != nil || failed != nil || len(list) > 0 {
		t.Errorf("it is kept: %+v, %v, %v", list, err, failed)
	}
}

// What nobody has any more begins again under its own name: whether its files are
// gone, or its agent does not know them.
func TestConversationIsLost(t *testing.T) {
	t.Parallel()
	one, _, a, store := hosts(t)
	one.say("a", "", false)
	a.loses.Store(true)
	if opening, _, said := one.say("b", "", true); opening != sessions.Lost || said != "b" {
		t.Errorf("%s: %q", opening, said)
	}
	name := objects.Name{Project: repotest.Project, Intent: "fix", Task: "fix-001", Kind: objects.Session}
	if err := store.Put(t.Context(), name, strings.NewReader("garbage")); err != nil {
		t.Fatal(err)
	}
	if opening, _, said := one.say("c", "", true); opening != sessions.Lost || said != "c" {
		t.Errorf("with garbage in the store: %s: %q", opening, said)
	}
}

// A conversation is stored while it goes on, its files before what the worker has.
func TestConversationIsStoredMeanwhile(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	one, two, a, _ := hosts(t)
	saved := make(chan struct{}, 10)
	a.while = func(file string) {
		<-saved
		if err := os.WriteFile(file, []byte("later"), 0o600); err != nil {
			t.Error(err)
		}
		select {
		case <-saved:
		case <-wait.Context(t).Done():
			t.Error("a change is not stored")
		}
	}
	r := one.job(false, func(ctx context.Context, j *jobs.Job) error {
		n := 0
		_, err := j.CallInSession(ctx, agent.Call{Role: agent.RoleImplement, StateDir: j.StateDir("fix-001")}, sessions.Call{
			Prompts: func(sessions.Start) (string, string, error) { return "", "a", nil },
			Save: func(context.Context) ([]byte, error) {
				n++
				saved <- struct{}{}
				if n == 3 {
					t.Error("what did not change is stored again")
				}
				return []byte(`"while"`), nil
			},
		})
		return err
	})
	if r.Failure() != nil {
		t.Fatalf("%+v", r.Failure())
	}
	a.while = nil
	if opening, noted, _ := two.say("b", "", false); opening != sessions.Resumed || noted != `"while"` {
		t.Errorf("%s, noted %s", opening, noted)
	}
}
