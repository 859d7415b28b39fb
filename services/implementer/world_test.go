package implementer

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

const settings = `
verify:
  - '! grep -rq BROKEN --include=*.txt .'
recipes:
  write:
    params: [{name: FILE}, {name: TEXT}]
    run: printf '%s\n' "$TEXT" >> "$FILE"
  nothing: {run: 'true'}
  fine: {run: 'true', allow_empty: true}
  fails: {run: 'echo half > half.txt; echo sorry; exit 3'}
  commits: {run: 'echo one > one.txt; git add one.txt; git commit -qm one; echo two > two.txt'}
  hollow: {run: 'git commit -q --allow-empty -m "all done"'}
  reverts: {run: 'git rm -q new.txt; git commit -qm "back to where it was"'}
  slow: {run: 'echo begun > begun.txt; exec sleep 60'}
  feedback: {run: 'cat "$FORGE_FEEDBACK" > said.txt; echo "$FORGE_ATTEMPT" >> said.txt'}
  link: {run: 'ln -s /etc/passwd here'}
`

// world is a repository with an implementer, and a bus on which a project wants what the
// test says.
type world struct {
	t    testing.TB
	repo gittest.Repo
	set  *jobs.Set
	bus  *bus.Bus
	imp  *Implementer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "a.txt": "1\n2\n3\n4\n5\n6\n7\n", "b.txt": "b\n"})
	return worldOn(t, r, repotest.Local(t, r.Dir), bustest.Start(t))
}

func worldOn(t testing.TB, r gittest.Repo, set *jobs.Set, b *bus.Bus) *world {
	t.Helper()
	return &world{t: t, repo: r, set: set, bus: b, imp: New(Config{
		Repositories: set, Bus: b, Replica: "w1", Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})}
}

func (w *world) repository() *jobs.Repository {
	w.t.Helper()
	r, err := w.set.Get(repotest.Project)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func silent(forge.Progress) {}

// command is for task fix-001 of intent fix.
func command(step forge.Step, number int) forge.Command {
	c := forge.Command{
		BudgetUSD: 5,
		To:        forge.Key{Project: repotest.Project, Intent: "fix"},
		Attempt:   forge.Attempt{Task: "fix-001", Step: step, Number: number, Claim: 1},
		Intent:    forge.Intent{ID: "fix", Project: repotest.Project, Settings: forge.Settings{Title: "Fix it"}},
		Task:      forge.Task{ID: "fix-001", IntentID: "fix", Title: "Write a file", Attempts: number},
		Input:     &forge.ImplementInput{},
	}
	if step == forge.StepRebase {
		c.Input = &forge.RebaseInput{}
	}
	return c
}

// input returns the input of a command for implement or execute, to be changed.
func input(c *forge.Command) *forge.ImplementInput {
	in := c.Implement()
	c.Input = &in
	return &in
}

// recipe is an implement command for a recipe with alternating names and values.
func recipe(number int, name string, with ...string) forge.Command {
	c := command(forge.StepImplement, number)
	c.Intent.Recipe, c.Intent.With = name, map[string]string{}
	for i := 0; i+1 < len(with); i += 2 {
		c.Intent.With[with[i]] = with[i+1]
	}
	return c
}

func (w *world) implement(c forge.Command) forge.Result {
	w.t.Helper()
	return w.imp.implement(w.t.Context(), c, silent)
}

// implemented fails the test unless there is an implementation.
func (w *world) implemented(c forge.Command) *forge.Implementation {
	w.t.Helper()
	r := w.implement(c)
	if r.Failure() != nil {
		w.t.Fatalf("%s: %s", r.Failure().Reason, r.Failure().Message)
	}
	return forge.As[*forge.Implementation](r.Output)
}

// rebased puts an implementation on the base branch's tip.
func (w *world) rebased(im *forge.Implementation) *forge.Rebase {
	w.t.Helper()
	c := command(forge.StepRebase, 1)
	c.Task.Base, c.Task.Head = im.Base, im.Head
	c.Input = &forge.RebaseInput{Settle: true}
	r := w.imp.rebase(w.t.Context(), c, silent)
	if r.Failure() != nil {
		w.t.Fatalf("%s: %s", r.Failure().Reason, r.Failure().Message)
	}
	return forge.As[*forge.Rebase](r.Output)
}

// merge is the command to be merged what was rebased.
func merge(number int, rb *forge.Rebase) forge.Command {
	return forge.Command{
		BudgetUSD: 5,
		To:        forge.Key{Project: repotest.Project, Intent: "fix"},
		Attempt:   forge.Attempt{Task: "fix-001", Step: forge.StepMerge, Number: number, Claim: 1},
		Input: &forge.MergeInput{Change: &forge.QueueMerge{
			Run: 1, Task: "fix-001", Number: number, Base: rb.Base, Head: rb.Head, Tree: rb.Tree, PatchID: rb.PatchID, Files: rb.Files,
		}, Settle: true},
	}
}

// want journals that the project waits for just these attempts.
func (w *world) want(open ...forge.Command) {
	w.t.Helper()
	project := forge.Key{Project: repotest.Project}
	rec := forge.Record{Summary: forge.Summary{Key: project}}
	for _, c := range open {
		rec.Summary.Open = append(rec.Summary.Open, c.Attempt)
	}
	w.journal(project, rec)
}

func (w *world) journal(key forge.Key, rec forge.Record) {
	w.t.Helper()
	ctx := wait.Context(w.t)
	seq, err := w.bus.Journal.Last(ctx, key)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.bus.Journal.Append(ctx, key, seq, rec); err != nil {
		w.t.Fatal(err)
	}
}

// ready makes a change to a file and takes it to where it can be merged.
func (w *world) ready(file, text string) *forge.Rebase {
	w.t.Helper()
	return w.rebased(w.implemented(recipe(1, "write", "FILE", file, "TEXT", text)))
}

// is merged has a change merged, with the project waiting for it.
func (w *world) merges(c forge.Command) *forge.MergeResult {
	w.t.Helper()
	w.want(c)
	r := w.imp.merge(w.t.Context(), c, silent)
	if r.Failure() != nil {
		w.t.Fatalf("%s: %s", r.Failure().Reason, r.Failure().Message)
	}
	return forge.As[*forge.MergeResult](r.Output)
}

// refs lists the hidden refs of the intent that hold a word.
func (w *world) refs(word string) []string {
	w.t.Helper()
	var list []string
	for ref := range strings.Lines(w.repo.Git("for-each-ref", "--format=%(refname)", "refs/forge/")) {
		if ref = strings.TrimSpace(ref); strings.Contains(ref, word) {
			list = append(list, ref)
		}
	}
	return list
}

func fails(t testing.TB, r forge.Result, reason forge.FailureReason, message string) {
	t.Helper()
	if r.Failure() == nil || r.Failure().Reason != reason || !strings.Contains(r.Failure().Message, message) {
		t.Errorf("got %+v, want %s: ...%s...", r.Failure(), reason, message)
	}
	if forge.As[*forge.Implementation](r.Output) != nil || forge.As[*forge.Rebase](r.Output) != nil || forge.As[*forge.MergeResult](r.Output) != nil {
		t.Error("a failure comes with a payload")
	}
}

func TestMain(m *testing.M) {
	wait.Beside()
	os.Exit(m.Run())
}
