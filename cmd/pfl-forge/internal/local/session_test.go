package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/natsd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func logger(t *testing.T) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// newRepository makes a repository with the files given, committed on main.
func newRepository(t *testing.T, files map[string]string) *Repository {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "My Repo")
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "init", "-q", "-b", "main")
	gitIn(t, dir, "config", "user.name", "Ada")
	gitIn(t, dir, "config", "user.email", "ada@example.com")
	gitIn(t, dir, "add", "-A")
	gitIn(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
	repo, err := OpenRepository(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(repo.Close)
	return repo
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func submission(repo *Repository, id forge.IntentID, recipe string) forge.Event {
	return forge.Event{ID: "submit-" + string(id), To: forge.Key{Project: repo.Project, Intent: id}, Message: &forge.Submit{
		Intent: forge.Intent{
			Settings: forge.Settings{
				Title:  "Title",
				Body:   "Body",
				Recipe: recipe,
			}, Source: forge.SourceHuman, Origin: forge.Origin{System: "test", EventID: string(id)},
		},
	}}
}

func TestOpenRepository(t *testing.T) {
	repo := newRepository(t, nil)
	if repo.Project != "my-repo" || repo.Actor != "Ada" || filepath.Base(repo.Root) != "My Repo" {
		t.Errorf("project %q, actor %q, root %q", repo.Project, repo.Actor, repo.Root)
	}
	below := filepath.Join(repo.Root, "a", "b")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	again, err := OpenRepository(t.Context(), below)
	if err != nil || again.Root != repo.Root {
		t.Fatalf("from below: %v, %v", again, err)
	}
	again.Close()
}

func TestReaderChangesNothing(t *testing.T) {
	repo := newRepository(t, nil)
	if _, err := OpenReader(t.Context(), repo, logger(t)); !errors.Is(err, ErrNoStore) {
		t.Fatalf("a reader where nothing was submitted: %v", err)
	}
	if _, err := os.Stat(filepath.Join(repo.Root, ".forge")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf(".forge: %v", err)
	}
}

// Commands that start at the same moment wait for each other, and each gets its
// ruling.
func TestCommandsTakeTurns(t *testing.T) {
	repo := newRepository(t, nil)
	const n = 6
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			s, err := Open(t.Context(), repo, logger(t))
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			defer s.Close(t.Context())
			r, err := s.Bus.Submissions.Ask(t.Context(), submission(repo, forge.IntentID(fmt.Sprint("intent-", i)), ""))
			if err != nil || r.Decision != forge.Applied {
				t.Errorf("ruling %+v, %v", r, err)
			}
		})
	}
	all.Wait()
	s, err := OpenReader(t.Context(), repo, logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	intents, err := s.Bus.Journal.Summaries(t.Context(), repo.Project)
	if err != nil || len(intents) != n || !s.Owner() {
		t.Errorf("%d intents, %v, owner %t", len(intents), err, s.Owner())
	}
	for i := range n {
		if _, err := os.Stat(filepath.Join(repo.Root, ".forge", "intents", fmt.Sprintf("intent-%d.yaml", i))); err != nil {
			t.Error(err)
		}
	}
}

// A queue of commands is waited for however long it is, since each of them ends; one that does not
// end is waited for 15 seconds.
func TestPatienceIsForOneCommand(t *testing.T) {
	for _, test := range []struct {
		name  string
		turn  time.Duration
		waits time.Duration
		fails bool
	}{
		{"six commands of ten seconds", 10 * time.Second, time.Minute, false},
		{"one that hangs", time.Hour, commandPatience, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, err := retried(t.Context(), func() (*Session, error) {
					if gone := time.Since(began); gone < time.Minute {
						return nil, &natsd.HeldError{PID: 7, Purpose: purposeCommand, Since: began.Add(gone.Truncate(test.turn))}
					}
					return &Session{}, nil
				})
				if _, held := errors.AsType[*natsd.HeldError](err); held != test.fails {
					t.Errorf("%v", err)
				}
				if took := time.Since(began); took < test.waits || took > test.waits+time.Second {
					t.Errorf("waited %s, want %s", took, test.waits)
				}
			})
		})
	}
}

// quietly observes nothing.
type quietly struct{}

func (quietly) Decided(_, _ *forge.Summary, _ *forge.Record) {}
func (quietly) Progress(forge.Progress)                      {}
func (quietly) State([]forge.Summary)                        {}
func (quietly) Notice(string)                                {}

// running starts a run that goes on until the test ends it.
func running(t *testing.T, repo *Repository) (end func() *Outcome) {
	t.Helper()
	return runningWith(t, repo, quietly{})
}

func runningWith(t *testing.T, repo *Repository, o Observer) (end func() *Outcome) {
	t.Helper()
	base, err := repo.Base(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	outcome := make(chan *Outcome, 1)
	go func() {
		o, err := Run(ctx, RunConfig{Repo: repo, Base: base, Observer: o, Log: logger(t), Trust: trusting(t, repo, base), Watch: true})
		if err != nil {
			t.Errorf("run: %v", err)
		}
		outcome <- o
	}()
	end = sync.OnceValue(func() *Outcome {
		cancel()
		return <-outcome
	})
	t.Cleanup(func() { end() })
	wait.Until(t, "the run is up", func() bool {
		select {
		case o := <-outcome:
			outcome <- o
			t.Fatal("the run ended at once")
		default:
		}
		_, err := natsd.Find(ctx, repo.Root, storeDir)
		return err == nil
	})
	return end
}

func TestOnlyOneRun(t *testing.T) {
	repo := newRepository(t, map[string]string{"pfl-forge.yaml": "recipes:\n  touch:\n    run: echo x > \"$FORGE_INTENT\"\n"})
	end := running(t, repo)

	base, err := repo.Base(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), RunConfig{Repo: repo, Base: base, Observer: quietly{}, Log: logger(t), Trust: trusting(t, repo, base)})
	var held *natsd.HeldError
	if !errors.As(err, &held) || held.PID != os.Getpid() || held.Purpose != purposeRun {
		t.Fatalf("a second run: %v, want it to name who holds the store", err)
	}

	s, err := Open(t.Context(), repo, logger(t))
	if err != nil {
		t.Fatal(err)
	}
	if s.Owner() || s.Gone(t.Context()) {
		t.Errorf("owner %t, gone %t", s.Owner(), s.Gone(t.Context()))
	}
	if r, err := s.Bus.Submissions.Ask(t.Context(), submission(repo, "one", "touch")); err != nil || r.Decision != forge.Applied {
		t.Fatalf("ruling %+v, %v", r, err)
	}
	joined, err := Join(t.Context(), repo, "", quietly{}, logger(t))
	if err != nil || len(joined.Intents) != 1 || joined.Intents[0].Status != forge.StatusDone {
		t.Errorf("joined: %+v, %v", joined, err)
	}

	if o := end(); o == nil || !o.Interrupted || len(o.Intents) != 1 {
		t.Errorf("outcome %+v", o)
	}
	if !s.Gone(t.Context()) {
		t.Error("the run has ended, and the session does not know")
	}
	s.Close(t.Context())
	if got := gitIn(t, repo.Root, "show", "main:one"); got != "x\n" {
		t.Errorf("one: %q", got)
	}
	if _, err := Join(t.Context(), repo, "", quietly{}, logger(t)); !errors.Is(err, natsd.ErrNotRunning) {
		t.Errorf("join without a run: %v", err)
	}
}

// What a process sent that did not live to see the ruling is not lost, and not done
// twice.
func TestDraftThatWasSentBefore(t *testing.T) {
	repo := newRepository(t, nil)
	s, err := Open(t.Context(), repo, logger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	path := filepath.Join(repo.Root, ".forge", "intent-drafts", "draft.md")
	if err := os.WriteFile(path, []byte("A draft\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	inputs, problems, err := s.files.files.Drafts(t.Context())
	if err != nil || len(inputs) != 1 || len(problems) != 0 {
		t.Fatalf("%d drafts, %v, %v", len(inputs), problems, err)
	}
	if _, err := s.Bus.Submissions.Ask(t.Context(), inputs[0].Events[0]); err != nil {
		t.Fatal(err)
	}
	n, err := s.files.drafts(t.Context(), func() map[forge.IntentID][]forge.IntentID { return map[forge.IntentID][]forge.IntentID{} })
	if err != nil || n != 1 {
		t.Fatalf("%d drafts taken in, %v", n, err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the draft is still there: %v", err)
	}
	records, _, err := s.Bus.Journal.Load(t.Context(), forge.Key{Project: repo.Project, Intent: "draft"})
	submits := 0
	for i := range records {
		for k := range records[i].Events {
			if forge.As[*forge.Submit](records[i].Events[k].Message) != nil {
				submits++
			}
		}
	}
	if err != nil || submits != 1 {
		t.Errorf("submitted %d times, %v", submits, err)
	}
}

// A command does not forget what a run found wrong with drafts, and forgets it when
// the draft is gone.
func TestProblemsOfDraftsStay(t *testing.T) {
	repo := newRepository(t, nil)
	draft := filepath.Join(repo.Root, ".forge", "intent-drafts", "bad.md")
	if err := os.MkdirAll(filepath.Dir(draft), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(draft, []byte("---\nnever: closed\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	base, err := repo.Base(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o, err := Run(t.Context(), RunConfig{Repo: repo, Base: base, Observer: quietly{}, Log: logger(t), Trust: trusting(t, repo, base)})
	if err != nil || len(o.Problems) == 0 || repo.Drafts() != 1 {
		t.Fatalf("outcome %+v, %v, %d drafts", o, err, repo.Drafts())
	}
	command := func() int {
		s, err := Open(t.Context(), repo, logger(t))
		if err != nil {
			t.Fatal(err)
		}
		s.Close(t.Context())
		list, err := repo.Problems()
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if n := command(); n != len(o.Problems) {
		t.Errorf("%d problems after a command, want %d", n, len(o.Problems))
	}
	if err := os.Remove(draft); err != nil {
		t.Fatal(err)
	}
	if n := command(); n != 0 {
		t.Errorf("%d problems after the draft is gone", n)
	}
}
