package implementer

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/live"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// of makes a command one for the first task of another intent.
func of(intent forge.IntentID, c forge.Command) forge.Command {
	id := forge.NewTaskID(intent, 1)
	c.To.Intent, c.Intent.ID, c.Attempt.Task, c.Task.ID, c.Task.IntentID = intent, intent, id, id, intent
	if m, ok := c.Input.(*forge.MergeInput); ok {
		m.Change.Task = id
	}
	return c
}

// says journals how far the first task of an intent has come.
func (w *world) says(intent forge.IntentID, status forge.Status, task forge.TaskStatus) {
	w.t.Helper()
	key := forge.Key{Project: repotest.Project, Intent: intent}
	w.journal(key, forge.Record{Summary: forge.Summary{
		Key: key, Status: status, RunSummary: forge.RunSummary{
			Tasks: []forge.TaskSummary{{ID: forge.NewTaskID(intent, 1), Status: task}},
		},
	}})
}

// begins implements the first task of an intent that is under way: a line in a file.
func (w *world) begins(intent forge.IntentID, file, text string) *forge.Implementation {
	w.t.Helper()
	w.says(intent, forge.StatusExecuting, forge.TaskImplementing)
	return w.implemented(of(intent, recipe(1, "write", "FILE", file, "TEXT", text)))
}

// overlaps rebases what was implemented, and returns what that does not merge with.
func (w *world) overlaps(intent forge.IntentID, im *forge.Implementation) []forge.Overlap {
	w.t.Helper()
	c := of(intent, command(forge.StepRebase, 1))
	c.Task.Base, c.Task.Head = im.Base, im.Head
	r := w.imp.rebase(w.t.Context(), c, silent)
	if r.Failure() != nil {
		w.t.Fatalf("%s: %s", r.Failure().Reason, r.Failure().Message)
	}
	return forge.As[*forge.Rebase](r.Output).Overlaps
}

func wantOverlaps(t *testing.T, got []forge.Overlap, want ...forge.Overlap) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Whatever order two tasks go on in, the one that is committed or rebased later finds
// the other one, in one repository and in two clones.
func TestTasksThatDoNotMergeAreFound(t *testing.T) {
	t.Parallel()
	worlds := map[string]func(t *testing.T) (one, two *world){
		"local": func(t *testing.T) (one, two *world) {
			t.Helper()
			w := newWorld(t)
			return w, w
		},
		"clones": func(t *testing.T) (one, two *world) {
			t.Helper()
			r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "a.txt": "a\n", "b.txt": "b\n"})
			origin, b := gittest.At(t, r.Origin()), bustest.Start(t)
			return worldOn(t, origin, repotest.Clone(t, origin.Dir), b), worldOn(t, origin, repotest.Clone(t, origin.Dir), b)
		},
	}
	for name, begin := range worlds {
		t.Run(name, func(t *testing.T) {
			one, two := begin(t)
			mine := one.begins("mine", "a.txt", "mine")
			wantOverlaps(t, one.overlaps("mine", mine))
			apart := two.begins("apart", "b.txt", "apart")
			wantOverlaps(t, two.overlaps("apart", apart))
			theirs := two.begins("theirs", "a.txt", "theirs")
			wantOverlaps(t, theirs.Overlaps, forge.Overlap{TaskID: "mine-001", Files: []string{"a.txt"}})
			wantOverlaps(t, two.overlaps("theirs", theirs), forge.Overlap{TaskID: "mine-001", Files: []string{"a.txt"}})
			wantOverlaps(t, one.overlaps("mine", mine), forge.Overlap{TaskID: "theirs-001", Files: []string{"a.txt"}})

			// One of them ended, and another one says so.
			one.says("mine", forge.StatusBlocked, forge.TaskFailed)
			wantOverlaps(t, two.overlaps("theirs", theirs))
			wantOverlaps(t, one.overlaps("apart", apart))
			two.says("theirs", forge.StatusExecuting, forge.TaskDone)
			released := live.Control{To: forge.Key{Project: repotest.Project, Intent: "theirs"}, Released: []forge.TaskID{"theirs-001"}}
			one.imp.release(t.Context(), released)
			two.imp.release(t.Context(), released)
			if refs := one.heads(); cmp.Diff([]string{"apart-001"}, refs) != "" {
				t.Errorf("there are heads of %q", refs)
			}
		})
	}
}

// heads lists the tasks whose heads are known where everybody finds them.
func (w *world) heads() []string {
	w.t.Helper()
	s, err := store.OpenLocal(w.t.Context(), store.LocalConfig{Path: w.repo.Dir, AllowBare: true})
	if err != nil {
		w.t.Fatal(err)
	}
	list, err := s.TaskHeads(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	var tasks []string
	for _, h := range list {
		tasks = append(tasks, string(h.Task))
	}
	return tasks
}

// What is on the base branch is nobody's overlap, nor is what the task itself did before.
func TestWhatIsNoOverlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.begins("mine", "a.txt", "one")
	again := of("mine", recipe(2, "write", "FILE", "a.txt", "TEXT", "two"))
	again.Task.Base, again.Task.Head, input(&again).Fresh = first.Base, first.Head, true
	second := w.implemented(again)
	wantOverlaps(t, w.overlaps("mine", second))

	theirs := w.begins("theirs", "b.txt", "theirs")
	w.repo.Git("merge", "-q", "--ff-only", theirs.Head)
	late := w.begins("late", "b.txt", "late")
	wantOverlaps(t, w.overlaps("late", late))
	if len(w.heads()) != 3 {
		t.Errorf("there are heads of %q", w.heads())
	}
}

// The next start forgets the heads of tasks that ended, and of those that nobody knows.
func TestReconcileForgetsHeads(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	w := newWorld(t)
	w.begins("ended", "a.txt", "1")
	w.begins("open", "b.txt", "1")
	w.begins("failed", "c.txt", "1")
	w.says("ended", forge.StatusCancelled, forge.TaskImplementing)
	w.says("failed", forge.StatusExecuting, forge.TaskFailed)
	gone := store.Attempt{Intent: "gone", Task: "gone-001", Number: 1, Newest: true}
	if _, err := w.repository().Store.Keep(t.Context(), gone, w.repo.Head("main")); err != nil {
		t.Fatal(err)
	}
	if err := w.imp.reconcile(t.Context(), w.repository()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"open-001"}, w.heads()); diff != "" {
		t.Error(diff)
	}
}
