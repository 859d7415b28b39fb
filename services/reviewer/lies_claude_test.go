package reviewer_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// TestClaudeLies has the real CLI answer as reviewer and judge with claims that do not hold. It
// is told once what code found, in the same session, and its second answer counts as it is.
func TestClaudeLies(t *testing.T) {
	for name, lie := range map[string]struct {
		claims []object
		want   string
	}{
		"a file that is not there": {[]object{claim(1, "file", "main_test.go:10", "passes")}, "main_test.go does not exist"},
		"another quote":            {[]object{claim(1, "file", "new.txt:1", "newer")}, "does not stand at new.txt:1"},
		"no evidence":              {[]object{{"number": 1, "met": true, "confidence": 1, "note": "I am sure", "evidence": []object{}}}, "it has no evidence"},
		"a run that was not":       {[]object{claim(1, "command", "tests", "")}, "no command of the name or id"},
		"left out":                 {[]object{}, "it was left out"},
		"a run that failed":        {[]object{claim(1, "command", "v2", "")}, "v2 did not pass: it exited with 1"},
		"a run of another commit":  {[]object{claim(1, "command", "make race", "")}, "make race ran on another tree"},
		"an id of nothing":         {[]object{claim(1, "command", "v9", "")}, "no command of the name or id"},
		"what it did not print":    {[]object{claim(1, "command", "v1", "0 skipped")}, "the quote is not in the output of v1"},
		"one run for another":      {[]object{claim(1, "command", "tests", "ok")}, `the name or id "tests" ran`},
		"one twice":                {[]object{claim(1, "command", "v1", ""), claim(1, "command", "v1", "")}, "answered more than once"},
		"of the base":              {[]object{claim(1, "diff", "a.txt:1", "a")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			review := agenttest.Answer(object{"requirements": lie.claims, "verdict": "approved", "issues": []string{}})
			judgment := agenttest.Answer(object{"criteria": lie.claims, "overall_reason": "I say so.", "is_complete": true})
			cli, model := repotest.Claude(t, func(r agenttest.Request) agenttest.Reply {
				if strings.Contains(r.System, "You review one change") {
					return review(r)
				}
				return judgment(r)
			})
			r, reviews := world(t, cli)
			c := command(r, "", "")
			c.Input = &forge.ReviewInput{Verify: ranOn(r.Git("rev-parse", "change^{tree}"))}
			got := reviews(c)
			verdict := forge.As[*forge.Review](got.Output)
			if got.Failure() != nil || verdict == nil {
				t.Fatalf("an error for a person: %+v", got.Failure())
			}
			fails(t, []string{"A file"}, verdict.Claims, lie.want)
			if last := string(model.Requests("model")[len(model.Requests("model"))-1].Body); !strings.Contains(last, "code looked up what the answer cites") {
				t.Error("it was not told what code found")
			}
			r, judges := goalWorld(t, cli)
			c = goalCommand(r, "There is a new.txt")
			forge.As[*forge.IterationInput](c.Input).Verify = ranOn(r.Git("rev-parse", c.Task.Head+"^{tree}"))
			got = judges(c)
			judged := forge.As[*forge.Judgment](got.Output)
			if got.Failure() != nil || judged == nil {
				t.Fatalf("an error for a person: %+v", got.Failure())
			}
			fails(t, []string{"There is a new.txt"}, judged.Claims, lie.want)
		})
	}
}

// ranOn is a report of commands on a tree: one passed, one did not, and one ran elsewhere.
func ranOn(tree string) *forge.VerifyReport {
	return &forge.VerifyReport{Passed: true, Runs: []forge.CheckRun{
		{ID: "v1", Command: "make test", Tree: tree, Passed: true, Output: "ok 12 tests"},
		{ID: "v2", Command: "make lint", Tree: tree, ExitCode: 1, Output: "new.txt:1: too new"},
		{ID: "v3", Command: "make race", Tree: "0123456789012345678901234567890123456789", Passed: true},
	}}
}

// fails checks that claims do not show what was asked, for a reason.
func fails(t *testing.T, asked []string, claims []forge.Claim, want string) {
	t.Helper()
	weighed, against := verdict.Weigh(asked, claims, 0)
	_, found := verdict.Shortfalls(weighed)
	if found = append(found, against...); len(found) == 0 || !strings.Contains(strings.Join(found, "\n"), want) {
		t.Errorf("%+v count: %q, want %q", claims, found, want)
	}
}
