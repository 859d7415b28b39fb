package implementer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/proof"
	"github.com/pfl-forge/pfl-forge/verdict"
)

const withChecks = settings + `
checks:
  there: test -e new.txt
  slow: {command: exec sleep 60, timeout: 1s}
`

// Checks run on exactly the commit that is judged, each in a checkout of its own, all of
// them, also where nothing was changed; exit status and output both have to be as expected.
func TestChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.Commit("checks", map[string]string{"pfl-forge.yaml": withChecks})
	im := w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "coverage: 90%"))
	checks := []forge.Check{
		{Criterion: 1, Name: "there"},
		{Criterion: 3, Command: "touch left.txt"},
		{Criterion: 4, Command: "test ! -e left.txt"}, // what the others leave behind decides nothing
		{Criterion: 5, Command: "exit 3", ExitCode: 3},
		{Criterion: 6, Command: "cat new.txt", Output: `coverage: (8|9)\d%`},
		{Criterion: 7, Command: "cat new.txt; exit 1", Output: `coverage: (8|9)\d%`}, // what is printed is not enough
		{Criterion: 8, Command: "cat b.txt", Output: `coverage`},
		{Criterion: 9, Name: "slow"},
	}
	rebase := command(forge.StepRebase, 1)
	rebase.Task.Base, rebase.Task.Head, rebase.Task.Checks = im.Base, im.Head, checks
	passed := func(c forge.Command) (list []string) {
		t.Helper()
		r := w.imp.rebase(t.Context(), c, silent)
		if r.Failure() != nil {
			t.Fatalf("%+v", r.Failure())
		}
		rb := forge.As[*forge.Rebase](r.Output)
		if !rb.Verify.Passed || len(rb.Verify.Checks) != len(checks) {
			t.Fatalf("%+v", rb.Verify)
		}
		for i, run := range rb.Verify.Checks {
			if run.Tree != rb.Tree || run.Name != checks[i].Name || run.Command == "" {
				t.Errorf("%+v is not a run of %+v on %s", run, checks[i], rb.Tree)
			}
			if run.Passed {
				number, _, _ := strings.Cut(run.ID, "-")
				list = append(list, number)
			}
		}
		if run := rb.Verify.Checks[len(checks)-1]; run.ExitCode != -1 || !strings.Contains(run.Output, "1s") {
			t.Errorf("the slow one: %+v", run)
		}
		return list
	}
	if diff := cmp.Diff([]string{"c1", "c3", "c4", "c5", "c6"}, passed(rebase)); diff != "" {
		t.Error(diff)
	}
	unchanged := rebase
	unchanged.Task.Head = im.Base
	unchanged.Task.Base = im.Base
	if diff := cmp.Diff([]string{"c3", "c4", "c5"}, passed(unchanged)); diff != "" {
		t.Error(diff)
	}
	unknown := rebase
	unknown.Task.Checks = []forge.Check{{Criterion: 2, Name: "slot"}}
	fails(t, w.imp.rebase(t.Context(), unknown, silent), forge.FailConfig, `criteria[1].check: pfl-forge.yaml at `)
	fails(t, w.imp.rebase(t.Context(), unknown, silent), forge.FailConfig, `has no check "slot" (did you mean "slow"?)`)
}

// A change that takes the checks out of pfl-forge.yaml is checked by those of the base branch.
func TestChecksAreThoseOfTheBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.Commit("checks", map[string]string{"pfl-forge.yaml": strings.Replace(withChecks, "test -e new.txt", "exit 9", 1)})
	im := w.implemented(recipe(1, "write", "FILE", "pfl-forge.yaml", "TEXT", "  there: 'true'"))
	c := command(forge.StepRebase, 1)
	c.Task.Base, c.Task.Head, c.Task.Checks = im.Base, im.Head, []forge.Check{{Criterion: 1, Name: "there"}}
	r := w.imp.rebase(t.Context(), c, silent)
	if r.Failure() != nil {
		t.Fatalf("%+v", r.Failure())
	}
	if run := forge.As[*forge.Rebase](r.Output).Verify.Checks[0]; run.Passed || run.ExitCode != 9 || run.Command != "exit 9" {
		t.Errorf("%+v", run)
	}
}

// Nobody reads a change over which checks decide, so tests that were there
// before have a word on it as they were: a person approves what passes only
// without them. Tests that the change adds, or changes in vain, ask for nothing.
func TestTestsThatWereThereAreHeard(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	checks := []forge.Check{{Criterion: 1, Command: "for t in tests/*; do sh $t || exit; done"}}
	for name, tt := range map[string]struct {
		file, text string
		checks     []forge.Check
		want       []string
	}{
		"skipped":     {"tests/sum.sh", "true", checks, []string{`with tests/sum.sh as it was, "for t in tests/*; do sh $t || exit; done" fails`}},
		"in vain":     {"tests/fine.sh", "true", checks, nil},
		"added":       {"tests/more.sh", "true", checks, nil},
		"no goal":     {"tests/sum.sh", "true", nil, nil},
		"not a test":  {"sum.sh", "true", checks, nil},
		"still fails": {"tests/fine.sh", "exit 1", checks, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			was := map[string]string{"tests/sum.sh": "test -e gone.txt\n", "tests/fine.sh": "test -e b.txt\n"}
			if tt.file != "tests/sum.sh" {
				was["tests/sum.sh"] = "test -e b.txt\n"
			}
			w.repo.Commit("tests", was)
			im := w.implemented(recipe(1, "write", "FILE", tt.file, "TEXT", tt.text))
			c := command(forge.StepRebase, 1)
			c.Task.Base, c.Task.Head, c.Task.Checks = im.Base, im.Head, tt.checks
			r := w.imp.rebase(t.Context(), c, silent)
			if r.Failure() != nil {
				t.Fatalf("%+v", r.Failure())
			}
			if diff := cmp.Diff(tt.want, forge.As[*forge.Rebase](r.Output).Guarded); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What a command decided before has to hold also where the base branch has moved meanwhile.
func TestMergeThatACheckRefusesOnTheMovedTip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rb := w.ready("new.txt", "x")
	c := merge(1, rb)
	c.Merge().Change.Checks = []forge.Check{{Criterion: 2, Command: "test ! -e more.txt"}}
	tip := w.repo.Commit("one more", map[string]string{"more.txt": "more\n"})
	got := w.merges(c)
	if got.Outcome != forge.MergeVerifyFailed || got.Verify == nil || got.Verify.Passed || got.Verify.Command != "test ! -e more.txt" {
		t.Errorf("got %+v", got)
	}
	if w.repo.Head("main") != tip {
		t.Error("it merged")
	}
}

// Somebody lands the same patch, and more with which the check of the goal
// fails. All of it is there already, and the goal is not done.
func TestMergeThatIsThereAlreadyAndTheCheckFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rb := w.ready("new.txt", "x")
	c := merge(1, rb)
	c.Merge().Change.Checks = []forge.Check{{Criterion: 1, Command: "test ! -e more.txt"}}
	w.repo.Commit("the same, and what breaks it", map[string]string{"new.txt": "x\n", "more.txt": "more\n"})
	if got := w.merges(c); got.Outcome != forge.MergeVerifyFailed || got.Verify == nil || got.Verify.Passed {
		t.Errorf("merged as %s although the check fails there: %+v", got.Commit, got)
	}
}

// A statement that a change was verified names the checks of its goal; there is
// none where one of them failed.
func TestTheProofOfAGoalNamesItsChecks(t *testing.T) {
	t.Parallel()
	w, _, _ := signedWorld(t)
	im := w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "x"))
	stated := func(line string, status int) forge.Envelope {
		t.Helper()
		c := command(forge.StepRebase, 1)
		c.Task.Base, c.Task.Head, c.Task.Checks = im.Base, im.Head, []forge.Check{{Criterion: 1, Command: line, ExitCode: status}}
		r := w.imp.rebase(t.Context(), c, silent)
		if r.Failure() != nil {
			t.Fatalf("%+v", r.Failure())
		}
		return forge.As[*forge.Rebase](r.Output).Statement
	}
	if e := stated("exit 7", 0); e != "" {
		t.Errorf("a failed check is signed: %s", e)
	}
	s, err := proof.Unseal(stated("exit 7", 7))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(s.Payload); !strings.Contains(text, `"checks":[{"command":"exit 7","exit":7}]`) {
		t.Errorf("it does not name the check: %s", text)
	}
}

// What a reviewer asks for runs on exactly the commit that it reads, by the
// checks of the base branch, and is reported by names that it can cite. Nothing
// is rebased, and a name that there is not is answered in words.
func TestAskedChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.Commit("checks", map[string]string{"pfl-forge.yaml": strings.Replace(withChecks, "test -e new.txt", "grep -q mine pfl-forge.yaml", 1)})
	im := w.implemented(recipe(1, "write", "FILE", "pfl-forge.yaml", "TEXT", "# mine\nchecks: {there: 'false', mine: 'true'}"))
	w.repo.Commit("meanwhile", map[string]string{"else.txt": "else"}) // the base branch moves, the commit stays
	c := command(forge.StepRebase, 2)
	c.Task.Base, c.Task.Head = im.Base, im.Head
	c.Input = &forge.RebaseInput{Asked: []string{"there", "mine", "slow"}}
	r := w.imp.rebase(t.Context(), c, silent)
	rb := forge.As[*forge.Rebase](r.Output)
	if r.Failure() != nil || rb.Head != im.Head || rb.Base != im.Base || rb.Statement != "" || len(rb.Verify.Checks) != 3 {
		t.Fatalf("%+v %+v", r.Failure(), rb)
	}
	want := []struct {
		name, output string
		passed       bool
		exit         int
	}{{"there", "", true, 0}, {"mine", "no check of that name: slow, there", false, -1}, {"slow", "1s", false, -1}}
	for i, run := range rb.Verify.Checks {
		if run.ID != verdict.RunID(&forge.Check{Name: want[i].name}) || run.Name != want[i].name || run.Tree != rb.Tree || run.Passed != want[i].passed ||
			run.ExitCode != want[i].exit || !strings.Contains(run.Output, want[i].output) {
			t.Errorf("%+v, want %+v", run, want[i])
		}
	}
	if r.Executor == "" {
		t.Error("it is not said where they ran")
	}
}
