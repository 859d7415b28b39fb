package implementer

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// counted is a world whose verify command counts its runs in a file outside of the tree,
// and then runs a line in which $n is the number. more follows in the configuration.
func counted(t *testing.T, line string, files map[string]string, more ...string) (w *world, runs func() int) {
	t.Helper()
	count := filepath.Join(t.TempDir(), "count")
	if err := os.WriteFile(count, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	verify := fmt.Sprintf("verify:\n  - 'n=$(( $(cat %s) + 1 )); echo $n > %s; %s'\n", count, count, line)
	all := map[string]string{
		"a.txt":          "1\n",
		"pfl-forge.yaml": strings.Replace(settings, "verify:\n", verify, 1) + strings.Join(more, ""),
	}
	maps.Copy(all, files)
	r := gittest.New(t, all)
	return worldOn(t, r, repotest.Unconfined(t, r.Dir), bustest.Start(t)), func() int {
		t.Helper()
		data, err := os.ReadFile(count)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// trialsOf returns the trials of a report in short: "change- base+".
func trialsOf(r *forge.VerifyReport) string {
	var list []string
	for _, run := range r.Trials {
		list = append(list, run.Name+map[bool]string{true: "+", false: "-"}[run.Passed])
	}
	return strings.Join(list, " ")
}

// Whose fault it is that a change does not pass is found out by running the same tree once
// more, and its parent. No change is excused because it makes a check fail now and then.
func TestWhoseFaultAFailedVerifyIs(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	for name, c := range map[string]struct {
		line   string            // of the check
		files  map[string]string // of the base
		text   string            // what the change writes into new.txt
		trials string
		passed bool
		fault  verdict.Fault
	}{
		"passes":             {"true", nil, "x", "", true, verdict.NoFault},
		"flaky check":        {"test $((n % 3)) != 1", nil, "x", "change- change+ change+ change- base+ base+ base-", true, verdict.FaultOfCheck},
		"fails once":         {"test $n != 1", nil, "x", "change- change+ change+ change+", true, verdict.FaultOfCheck},
		"fails twice, flaky": {"test $n -gt 3", nil, "x", "change- change- base- base+ change+", true, verdict.FaultOfCheck},
		"broken change":      {"! grep -q bad new.txt", nil, "bad", "change- change- base+", false, verdict.FaultOfChange},
		"flaky change": {
			"! grep -q bad new.txt || test $((n % 2)) = 0", nil, "bad", "change- change+ change- base+ base+ base+", false, verdict.FaultOfChange,
		},
		"red base":             {"! test -e red.txt", map[string]string{"red.txt": "red\n"}, "x", "change- change- base- base-", false, verdict.FaultOfBase},
		"repairs the red base": {"! test -e red.txt || test -e new.txt", map[string]string{"red.txt": "red\n"}, "x", "", true, verdict.NoFault},
	} {
		t.Run(name, func(t *testing.T) {
			w, runs := counted(t, c.line, c.files)
			rb := w.ready("new.txt", c.text)
			v := rb.Verify
			if got := trialsOf(v); got != c.trials || v.Passed != c.passed {
				t.Errorf("trials %q, passed %v; want %q, %v", got, v.Passed, c.trials, c.passed)
			}
			if want := max(len(v.Trials), 1); runs() != want {
				t.Errorf("%d runs for %d trials", runs(), want)
			}
			if fault := verdict.Blame(v, rb.Tree); fault != c.fault {
				t.Errorf("blamed is %q, want %q", fault, c.fault)
			}
			if name == "flaky change" && !strings.HasPrefix(v.Output, `"n=$((`) || v.Passed == (v.Output != "") {
				t.Errorf("its output is %q", v.Output)
			}
		})
	}
}

// Two changes that pass alone and fail together are neither's fault.
func TestTogetherTheyFail(t *testing.T) {
	t.Parallel()
	w, runs := counted(t, "! test -e new.txt -a -e other.txt", nil)
	im := w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "x"))
	w.repo.Commit("somebody else", map[string]string{"other.txt": "y\n"})
	rb := w.rebased(im)
	if got := trialsOf(rb.Verify); got != "change- change- base+ alone+" || rb.Verify.Passed || runs() != 4 || !slices.Equal(rb.Landed, []string{"other.txt"}) {
		t.Errorf("trials %q, passed %v, %d runs", got, rb.Verify.Passed, runs())
	}
	if fault := verdict.Blame(rb.Verify, rb.Tree); fault != verdict.FaultOfBoth {
		t.Errorf("blamed is %q", fault)
	}
}

// A check that fails now and then does not keep a change from being merged on a
// tip that has moved; the merge says so. One that a change makes do so does.
func TestFlakyMerge(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]forge.MergeOutcome{
		"test $((n % 3)) != 2":                     forge.MergeDone,
		"test $((n % 2)) = 1 || test ! -e new.txt": forge.MergeVerifyFailed,
	} {
		w, runs := counted(t, line, nil)
		rb := w.ready("new.txt", "x")
		if !rb.Verify.Passed || runs() != 1 {
			t.Fatalf("%+v", rb.Verify)
		}
		tip := w.repo.Commit("meanwhile", map[string]string{"other.txt": "y\n"})
		got := w.merges(merge(1, rb))
		if got.Outcome != want || got.Verify == nil {
			t.Fatalf("%s: %+v", line, got)
		}
		if merged := w.repo.Head("main") != tip; merged != (want == forge.MergeDone) {
			t.Errorf("%s: merged is %v", line, merged)
		}
		if fault := verdict.Blame(got.Verify, got.Verify.Trials[0].Tree); (fault == verdict.FaultOfCheck) != (want == forge.MergeDone) {
			t.Errorf("%s: blamed is %q: %s", line, fault, trialsOf(got.Verify))
		}
	}
}

// A goal that has changed nothing is not told that it failed where the check fails now and then.
func TestFlakyBase(t *testing.T) {
	t.Parallel()
	w, _ := counted(t, "test $n != 1", nil)
	c := command(forge.StepRebase, 1)
	c.Task.Base = string(w.repo.Head("main"))
	c.Task.Head = c.Task.Base
	r := w.imp.rebase(t.Context(), c, silent)
	if r.Failure() != nil {
		t.Fatalf("%+v", r.Failure())
	}
	rb := forge.As[*forge.Rebase](r.Output)
	if got := trialsOf(rb.Verify); got != "base- base+" || !rb.Verify.Passed || verdict.Blame(rb.Verify, rb.Tree) != verdict.FaultOfCheck {
		t.Errorf("%q, %+v", got, rb.Verify)
	}
}

// rebasedKnowing puts a change on the tip again, with what is known of it.
func (w *world) rebasedKnowing(im *forge.Implementation, tried []forge.CheckRun) *forge.Rebase {
	w.t.Helper()
	return w.rebasedWith(im, &forge.RebaseInput{Tried: tried, Settle: true})
}

// rebasedWith puts a change on the tip again.
func (w *world) rebasedWith(im *forge.Implementation, in *forge.RebaseInput) *forge.Rebase {
	w.t.Helper()
	c := command(forge.StepRebase, 2)
	c.Task.Base, c.Task.Head = im.Base, im.Head
	c.Input = in
	r := w.imp.rebase(w.t.Context(), c, silent)
	if r.Failure() != nil {
		w.t.Fatalf("%s: %s", r.Failure().Reason, r.Failure().Message)
	}
	return forge.As[*forge.Rebase](r.Output)
}

// A task that waits for a red base branch looks without running anything, as
// long as nothing has moved.
func TestLookAtARedBase(t *testing.T) {
	t.Parallel()
	w, runs := counted(t, "! test -e red.txt", map[string]string{"red.txt": "red\n"})
	im := w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "x"))
	rb := w.rebased(im)
	before := runs()
	again := w.rebasedKnowing(im, rb.Verify.Trials)
	if runs() != before || verdict.Blame(again.Verify, again.Tree) != verdict.FaultOfBase || again.Verify.Command == "" {
		t.Errorf("%d runs more, %+v", runs()-before, again.Verify)
	}
	w.repo.Git("rm", "-q", "red.txt")
	w.repo.Git("commit", "-qm", "mended")
	if mended := w.rebasedKnowing(im, rb.Verify.Trials); !mended.Verify.Passed || runs() != before+1 {
		t.Errorf("%d runs more, %+v", runs()-before, mended.Verify)
	}
}

// A recipe that makes the same change again, which was to blame, has it run once, and
// its parent. An agent's is run as ever, since the agent may have had nothing to mend.
func TestTheSameChangeFailsAgain(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	for name, c := range map[string]struct {
		recipe, line, trials string
		again                bool
	}{
		"by a recipe":     {"write", "! grep -q bad new.txt", "change- base+", true},
		"by an agent":     {"", "! grep -q bad new.txt", "change- change- base+", true},
		"the base is red": {"write", "! grep -q bad new.txt && test $n -lt 4", "change- base- base-", false},
		"it passes now":   {"write", "test $n != 1 -a $n != 2", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := counted(t, c.line, nil)
			im := w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "bad"))
			rb := w.rebased(im)
			if verdict.Fails(rb.Verify.Trials) == "" {
				t.Fatalf("at first %s", trialsOf(rb.Verify))
			}
			cmd := command(forge.StepRebase, 2)
			cmd.Intent.Recipe, cmd.Task.Base, cmd.Task.Head = c.recipe, im.Base, im.Head
			cmd.Input = &forge.RebaseInput{Tried: rb.Verify.Trials, Settle: true}
			again := forge.As[*forge.Rebase](w.imp.rebase(t.Context(), cmd, silent).Output)
			if got := trialsOf(again.Verify); got != c.trials || verdict.FailsAgain(rb.Verify.Trials, again.Verify.Trials) != c.again {
				t.Errorf("then %s", got)
			}
		})
	}
}

// A change that was unsteady is looked at more closely where it passes: whether
// it passes often enough in a row, or the check fails without it.
func TestUnsteadyIsRemembered(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	const first, base = "! -e new.txt -o $n != 1 -a $n != 3", "change- change+ change- base+ base+ base+"
	for name, c := range map[string]struct {
		line, trials string
		excused      bool
	}{
		"fails once more":        {"test " + first + " -a $n != 8", "change+ change- base+ base+ base+", false},
		"the check fails, too":   {"test " + first + " -a $n != 8 && test $n != 9", "change+ change- base-", true},
		"passes often enough":    {"test " + first, "change+ change+ change+", true},
		"fails, passes, does so": {"test " + first + " -a $n != 7 -a $n != 9", "change- change+ change- base+ base+ base+", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := counted(t, c.line, nil)
			im := w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "x"))
			rb := w.rebased(im)
			if got := trialsOf(rb.Verify); got != base {
				t.Fatalf("at first %s", got)
			}
			again := w.rebasedKnowing(im, rb.Verify.Trials)
			all := verdict.Recall(rb.Verify.Trials, again.Verify, again.Tree)
			fault := verdict.Blame(all, again.Tree)
			if passed := fault == verdict.FaultOfCheck || fault == verdict.NoFault; trialsOf(again.Verify) != c.trials || passed != c.excused {
				t.Errorf("excused is %v: %s", passed, trialsOf(again.Verify))
			}
		})
	}
}
