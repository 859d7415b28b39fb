package verdict_test

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// A check is met by a run that passed, of its criterion, its command and
// exactly the tree that is judged, and by nothing else.
func TestOfChecks(t *testing.T) {
	criteria := []string{"words", "check tests passes", "`make` exits with 0"}
	checks := []forge.Check{{Criterion: 2, Name: "tests"}, {Criterion: 3, Command: "make"}}
	tests := forge.CheckRun{ID: verdict.RunID(&checks[0]), Name: "tests", Command: "go test", Tree: "t", Passed: true}
	own := forge.CheckRun{ID: verdict.RunID(&checks[1]), Command: "make", Tree: "t", Passed: true}
	const notRun, ended, other = "its command did not run on this commit", "it was ended before it was finished", "exit status 0, and the output does not match "
	with := func(r forge.CheckRun, change func(*forge.CheckRun)) forge.CheckRun { change(&r); return r }
	of := func(c forge.Check) func(*forge.CheckRun) { return func(r *forge.CheckRun) { r.ID = verdict.RunID(&c) } }
	hidden := func(r *forge.CheckRun) { r.Name, r.Command = "[redacted]", "[redacted]" }
	for name, c := range map[string]struct {
		runs []forge.CheckRun
		met  bool
		note string
	}{
		"both pass":       {[]forge.CheckRun{tests, own}, true, "exit status 0"},
		"none ran":        {nil, false, notRun},
		"another tree":    {[]forge.CheckRun{with(tests, func(r *forge.CheckRun) { r.Tree = "u" }), own}, false, notRun},
		"another check":   {[]forge.CheckRun{with(tests, of(forge.Check{Criterion: 2, Name: "lint"})), own}, false, notRun},
		"another one's":   {[]forge.CheckRun{with(own, of(forge.Check{Criterion: 2, Command: "make"})), own}, false, notRun},
		"it fails":        {[]forge.CheckRun{with(tests, func(r *forge.CheckRun) { r.Passed, r.ExitCode = false, 2 }), own}, false, "exit status 2, 0 expected"},
		"it says another": {[]forge.CheckRun{with(tests, func(r *forge.CheckRun) { r.Passed = false }), own}, false, other},
		"it was ended":    {[]forge.CheckRun{with(tests, func(r *forge.CheckRun) { r.Passed, r.ExitCode = false, -1 }), own}, false, ended},
		"as a verify run": {[]forge.CheckRun{with(tests, func(r *forge.CheckRun) { r.ID = "v1" }), own}, false, notRun},
		"another status": {[]forge.CheckRun{tests, with(own, func(r *forge.CheckRun) {
			r.ID = verdict.RunID(&forge.Check{Criterion: 3, Command: "make", ExitCode: 1})
		})}, false, "exit status 0"},
		"redacted":        {[]forge.CheckRun{with(tests, hidden), with(own, hidden)}, true, "exit status 0"},
		"another command": {[]forge.CheckRun{tests, with(own, of(forge.Check{Criterion: 3, Command: "true"}))}, false, "exit status 0"},
	} {
		claims := verdict.OfChecks(criteria, checks, &forge.VerifyReport{Passed: true, Checks: c.runs}, "t")
		if met := claims[0].Counts() && claims[1].Counts(); len(claims) != 2 || met != c.met || claims[0].Note != c.note {
			t.Errorf("%s: %+v", name, claims)
		}
		weighed, against := verdict.Weigh(criteria[1:], []forge.Claim{renumber(claims[0], 1), renumber(claims[1], 2)}, 0.7)
		said, found := verdict.Shortfalls(weighed)
		if counts := len(said)+len(found)+len(against) == 0; counts != c.met {
			t.Errorf("%s: %q %q %q", name, said, found, against)
		}
	}
	if claims := verdict.OfChecks(criteria, checks, nil, "t"); claims[0].Counts() || claims[1].Counts() {
		t.Errorf("without a report: %+v", claims)
	}
}

func renumber(c forge.Claim, n int) forge.Claim { c.Number = n; return c }

// What is about to be merged on a moved tip fails with its first check.
func TestStrict(t *testing.T) {
	r := &forge.VerifyReport{Passed: true, Checks: []forge.CheckRun{{Command: "a", Passed: true}, {Command: "b", Output: "no"}}}
	if s := verdict.Strict(r); s.Passed || s.Command != "b" || s.Output != "no" || !r.Passed || verdict.Failing(r) != "b" {
		t.Errorf("%+v of %+v", s, r)
	}
	if verdict.Failing(nil) != "" || verdict.Failing(&forge.VerifyReport{Passed: true}) != "" || verdict.Failing(&forge.VerifyReport{}) == "" {
		t.Error("a report is not told by what it says")
	}
}
