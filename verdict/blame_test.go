package verdict_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// Whose fault a failure is follows from trials alone. A change is excused only
// by a failure without it, and passes only by a pass of its own tree.
func TestBlame(t *testing.T) {
	for name, c := range map[string]struct {
		passed bool
		trials string
		want   verdict.Fault
	}{
		"passed":                                {true, "", verdict.NoFault},
		"failed, and nothing else is known":     {false, "", verdict.FaultOfChange},
		"broken":                                {false, "change- change- base+", verdict.FaultOfChange},
		"broken on a check that is flaky, too":  {false, "change- change- base- base+ change-", verdict.FaultOfChange},
		"flaky":                                 {true, "change- change+ base+ base-", verdict.FaultOfCheck},
		"flaky, third time":                     {true, "change- change- base- base+ change+", verdict.FaultOfCheck},
		"passes on a red base":                  {true, "change- change+ base-", verdict.FaultOfCheck},
		"flaky with the change only":            {true, "change- change+ base+ base+ base+", verdict.FaultOfChange},
		"failed once, then passed three times":  {true, "change- change+ change+ change+", verdict.FaultOfCheck},
		"failed once, then passed twice":        {true, "change- change+ change+", verdict.FaultOfChange},
		"failed twice of five":                  {true, "change- change+ change- change+ change+ base+", verdict.FaultOfChange},
		"failed twice of four, flaky":           {true, "change- change+ change+ change- base+ base-", verdict.FaultOfCheck},
		"passed three times":                    {true, "change+ change+ change+", verdict.NoFault},
		"passed twice, and called that":         {true, "change+ change+", verdict.FaultOfChange},
		"called failed, and passed three times": {false, "change- change+ change+ change+", verdict.FaultOfChange},
		"the base fails at another command":     {true, "change- change+ base-other base-other base-other", verdict.FaultOfChange},
		"no word of the base":                   {true, "change- change+", verdict.FaultOfChange},
		"the pass is of another tree":           {true, "change- elsewhere+ base-", verdict.FaultOfChange},
		"called passed, and never did":          {true, "change- change- base- base-", verdict.FaultOfChange},
		"passed, and something else is missing": {false, "change- change+ base-", verdict.FaultOfChange},
		"red base":                              {false, "change- change- base- base-", verdict.FaultOfBase},
		"the base failed once only":             {false, "change- change- base-", verdict.FaultOfChange},
		"red base, of another command":          {false, "change- change- base-other base-other", verdict.FaultOfChange},
		"together":                              {false, "change- change- base+ alone+", verdict.FaultOfBoth},
		"fails alone":                           {false, "change- change- base+ alone-", verdict.FaultOfChange},
		"nothing changed, flaky":                {true, "base- base+", verdict.FaultOfCheck},
		"nothing changed, red":                  {false, "base- base-", verdict.FaultOfBase},
	} {
		r := report(c.passed, c.trials)
		if got := verdict.Blame(r, "tree"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if flaky := verdict.Flaky(r, "tree"); (flaky == "make test") != (c.want == verdict.FaultOfCheck) {
			t.Errorf("%s: flaky is %q", name, flaky)
		}
	}
	if verdict.Blame(nil, "tree") != verdict.NoFault {
		t.Error("without commands somebody is blamed")
	}
}

// A change is known to fail where it failed each time and the base branch never did.
func TestFails(t *testing.T) {
	for trials, fails := range map[string]bool{
		"":                             false,
		"change- change- base+":        true,
		"change- change- base+ alone-": true,
		"change- change- base+ alone+": false, // only together with what landed
		"change- change- base- base+":  false,
		"change- change+ base+ base+":  false,
		"change- change- base-other":   false,
		"change- change-other base+":   false,
		"change- base+":                false,
		"change- change-":              false,
		"base- base-":                  false,
	} {
		want := ""
		if fails {
			want = "make test"
		}
		if got := verdict.Fails(report(false, trials).Trials); got != want {
			t.Errorf("%q: it fails %q, want %q", trials, got, want)
		}
	}
}

// A patch that was to blame is so again by one failure of the same command, or
// by two of another one, where the base branch passes.
func TestFailsAgain(t *testing.T) {
	for trials, want := range map[string]bool{
		"":                                false,
		"change- base+":                   true,
		"change- base+ alone-":            true,
		"change- base+ alone+":            false,
		"change- base-":                   false,
		"change- change+ base+":           false,
		"change-other base+":              false,
		"change-other change-other base+": true,
		"change- change- base- base-":     false,
		"base+":                           false,
		"change+":                         false,
	} {
		again := report(false, trials).Trials
		if got := verdict.FailsAgain(report(false, "change- change- base+").Trials, again); got != want {
			t.Errorf("%q: %v", trials, got)
		}
		if verdict.FailsAgain(report(false, "change- change- base-").Trials, again) || verdict.FailsAgain(nil, again) {
			t.Errorf("%q: a patch fails again that was not to blame", trials)
		}
	}
}

// Two failures on one tree are handed on as what is known of it, with the end of their outputs.
func TestTwice(t *testing.T) {
	run := func(tree string, passed bool) *forge.Rebase {
		return &forge.Rebase{Tree: tree, Verify: &forge.VerifyReport{
			Passed: passed, Command: "make test", Output: strings.Repeat("é", 600) + "x", Runs: []forge.CheckRun{{Duration: 2}, {Duration: 3}},
		}}
	}
	failed := run("tree", false)
	first := verdict.TrialOf(failed)
	if first == nil || first.Duration != 5 || len(first.Output) > 1024 || !strings.HasSuffix(first.Output, "éx") || !utf8.ValidString(first.Output) {
		t.Fatalf("first %+v", first)
	}
	for _, c := range []struct {
		first  *forge.CheckRun
		second *forge.Rebase
	}{{nil, failed}, {first, run("tree", true)}, {first, run("another", false)}, {first, &forge.Rebase{Tree: "tree"}}} {
		if got := verdict.Twice(c.first, nil, c.second); got != nil {
			t.Errorf("%+v and %+v: %+v", c.first, c.second, got)
		}
	}
	got := verdict.Twice(first, nil, failed)
	if got == nil || len(failed.Verify.Trials) > 0 || !verdict.FailedTwice(got.Verify.Trials, "tree") || verdict.FailedTwice(got.Verify.Trials, "another") {
		t.Errorf("got %+v", got)
	}
	pass := verdict.PassOf(run("base", true))
	if pass == nil || verdict.PassOf(failed) != nil || verdict.PassOf(&forge.Rebase{Tree: "base"}) != nil {
		t.Errorf("passed %+v", pass)
	}
	on := *failed
	on.BaseTree = "base"
	between := verdict.Twice(first, pass, &on).Verify.Trials
	if len(between) != 3 || between[2].ID != "t3" || verdict.PassedBetween(between) != "base" || !verdict.FailedTwice(between, "tree") {
		t.Errorf("between %+v", between)
	}
	if got := verdict.Twice(first, pass, failed).Verify.Trials; len(got) != 2 || verdict.PassedBetween(got) != "" {
		t.Errorf("another base: %+v", got)
	}
	for i := range between {
		other := slices.Clone(between)
		if other[i].Passed = !other[i].Passed; verdict.FailedTwice(other, "tree") || i == 1 && verdict.PassedBetween(other) != "" {
			t.Errorf("%d is otherwise: %+v", i, other)
		}
	}
	if verdict.FailedTwice(got.Verify.Trials[:1], "tree") || verdict.FailedTwice(nil, "tree") {
		t.Error("one failure is taken for two")
	}
}

// report returns one with trials such as "change- base+": a failure is that of
// "make test", or of another command that follows the sign.
func report(passed bool, trials string) *forge.VerifyReport {
	r := &forge.VerifyReport{Passed: passed, Command: "make test"}
	for word := range strings.FieldsSeq(trials) {
		at := strings.IndexAny(word, "+-")
		run := forge.CheckRun{Name: word[:at], Tree: "tree", Passed: word[at] == '+'}
		if !run.Passed {
			run.Command = "make test" + word[at+1:]
		}
		if run.Name == "elsewhere" {
			run.Name, run.Tree = verdict.TrialChange, "another"
		}
		r.Trials = append(r.Trials, run)
	}
	return r
}

// A change that was unsteady passes only once the check is seen to fail without
// it; where nothing has moved, a red base is red still.
func TestRecall(t *testing.T) {
	run := func(name, tree string, passed bool) forge.CheckRun {
		r := forge.CheckRun{Name: name, Tree: tree, Passed: passed, Output: "FAIL"}
		if !passed {
			r.Command = "make test"
		}
		return r
	}
	red := []forge.CheckRun{run("change", "new", false), run("change", "new", false), run("base", "b", false), run("base", "b", false)}
	with := func(base bool) forge.VerifyReport {
		return forge.VerifyReport{Passed: true, Trials: []forge.CheckRun{run("change", "new", true), run("base", "b", base)}}
	}
	steady := func(tree string) []forge.CheckRun {
		return []forge.CheckRun{run("change", tree, true), run("change", tree, true), run("change", tree, true)}
	}
	unsteady := []forge.CheckRun{run("change", "old", false), run("change", "old", true), run("base", "b", true)}
	for name, c := range map[string]struct {
		tried []forge.CheckRun
		now   forge.VerifyReport
		want  verdict.Fault
	}{
		"passes once more":               {unsteady, forge.VerifyReport{Passed: true}, verdict.FaultOfChange},
		"nor does the base fail":         {unsteady, with(true), verdict.FaultOfChange},
		"the base fails":                 {unsteady, with(false), verdict.FaultOfCheck},
		"passes, and was broken before":  {unsteady[:1], forge.VerifyReport{Passed: true}, verdict.NoFault},
		"passes, and nothing was before": {nil, forge.VerifyReport{Passed: true}, verdict.NoFault},
		"passes three times":             {unsteady, forge.VerifyReport{Passed: true, Trials: steady("new")}, verdict.NoFault},
		"three times, on another tree":   {unsteady, forge.VerifyReport{Passed: true, Trials: steady("old")}, verdict.FaultOfChange},
		"the base is red now":            {unsteady, forge.VerifyReport{Command: "make test", Trials: red}, verdict.FaultOfBase},
	} {
		all := verdict.Recall(c.tried, &c.now, "new")
		if got := verdict.Blame(all, "new"); got != c.want || all.Passed != (c.want == verdict.NoFault || c.want == verdict.FaultOfCheck) {
			t.Errorf("%s: %q, passed %v; want %q", name, got, all.Passed, c.want)
		}
		if c.want == verdict.FaultOfChange && (all.Command != "make test" || !strings.Contains(all.Output, "never failed without it")) {
			t.Errorf("%s: %q %q", name, all.Command, all.Output)
		}
	}
	still := verdict.StillRed
	if !still(red, "new", "b") || still(red, "new", "mended") || still(red, "another", "b") || still(unsteady, "old", "b") || still(nil, "new", "b") {
		t.Error("a base is taken for red, or mended, that is not")
	}
}
