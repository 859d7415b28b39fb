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
			got := reviews(command(r, "", ""))
			verdict := forge.As[*forge.Review](got.Output)
			if got.Failure() != nil || verdict == nil {
				t.Fatalf("an error for a person: %+v", got.Failure())
			}
			fails(t, []string{"A file"}, verdict.Claims, lie.want)
			if last := string(model.Requests("model")[len(model.Requests("model"))-1].Body); !strings.Contains(last, "code looked up what the answer cites") {
				t.Error("it was not told what code found")
			}
			r, judges := goalWorld(t, cli)
			got = judges(goalCommand(r, "There is a new.txt"))
			judged := forge.As[*forge.Judgment](got.Output)
			if got.Failure() != nil || judged == nil {
				t.Fatalf("an error for a person: %+v", got.Failure())
			}
			fails(t, []string{"There is a new.txt"}, judged.Claims, lie.want)
		})
	}
}

// fails checks that claims do not show what was asked, for a reason.
func fails(t *testing.T, asked []string, claims []forge.Claim, want string) {
	t.Helper()
	weighed, _ := verdict.Weigh(asked, claims, 0)
	if _, found := verdict.Shortfalls(weighed); len(found) == 0 || !strings.Contains(strings.Join(found, "\n"), want) {
		t.Errorf("%+v count: %q, want %q", claims, found, want)
	}
}
