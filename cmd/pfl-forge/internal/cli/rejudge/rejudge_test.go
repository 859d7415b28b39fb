package rejudge

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
)

// claim returns a claim whose evidence was found, or was not for a reason.
func claim(n int, reason string) forge.Claim {
	e := forge.Citation{Kind: forge.CitationFile, Ref: "a.go:1", Quote: "x", Resolved: reason == "", Reason: reason}
	return forge.Claim{Number: n, Text: []string{"one", "two"}[n-1], Met: true, Confidence: 1, Note: "seen", Evidence: []forge.Citation{e}}
}

// TestCompare has pairs of answers: a verdict is that of the rules, whatever an answer says itself.
func TestCompare(t *testing.T) {
	review := func(v forge.Verdict, issues []string, claims ...forge.Claim) *forge.Result {
		return &forge.Result{Agent: "a", Output: &forge.Review{Verdict: v, Issues: issues, Claims: claims}}
	}
	c := &forge.Command{Attempt: forge.Attempt{Step: forge.StepReview}, Task: forge.Task{Aims: forge.Aims{Requirements: []string{"one", "two"}}}}
	good := review(forge.VerdictApproved, nil, claim(1, ""), claim(2, ""))
	for name, test := range map[string]struct {
		now     *forge.Result
		verdict string
		flips   string
	}{
		"the same": {good, "approved", ""},
		"a lie": {
			review(forge.VerdictApproved, nil, claim(1, ""), claim(2, "it is gone")), "rejected",
			"requirement 2 (two): met: seen, and now not met: file a.go:1: it is gone",
		},
		"left out":      {review(forge.VerdictApproved, nil, claim(1, "")), "rejected", "requirement 2 (two): met: seen, and now not met: it was left out"},
		"an issue":      {review(forge.VerdictRejected, []string{"it is slow"}, claim(1, ""), claim(2, "")), "rejected", ""},
		"contradiction": {review(forge.VerdictApproved, []string{"it is slow"}, claim(1, ""), claim(2, "")), "rejected", ""},
	} {
		before, now := weigh(c, good, 0.7), weigh(c, test.now, 0.7)
		agrees, flips := compare("requirement", &before, &now)
		if got := strings.Join(flips, "\n"); now.Verdict != test.verdict || agrees != (test.verdict == "approved") || got != test.flips {
			t.Errorf("%s: %s, agrees: %v, %q: %q", name, now.Verdict, agrees, got, now.Reasons)
		}
	}
	if rv := forge.As[*forge.Review](good.Output); len(rv.Issues) > 0 || rv.Claims[0].Unproven != "" {
		t.Error("weighing changed the answer")
	}
}

// TestCollector has an intent's records: only verdicts of models count that a
// command asked for, once.
func TestCollector(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	to := forge.Key{Project: "shop", Intent: "one"}
	at := func(step forge.Step, n, claim int) forge.Attempt {
		return forge.Attempt{Task: "one-001", Step: step, Number: n, Claim: claim}
	}
	ask := func(list ...forge.Attempt) *forge.Record {
		rec := &forge.Record{}
		for _, a := range list {
			rec.Effects.Commands = append(rec.Effects.Commands, forge.Command{To: to, Attempt: a})
		}
		return rec
	}
	tell := func(minute int, a forge.Attempt, agent string, out forge.Output) *forge.Record {
		r := &forge.Result{To: to, Attempt: a, Agent: agent, Output: out}
		return &forge.Record{Events: []forge.Event{{At: noon.Add(time.Duration(minute) * time.Minute), Message: r}}}
	}
	c := collector{
		query: &query{steps: []forge.Step{forge.StepReview}, since: noon.Add(2 * time.Minute)}, open: map[string]forge.Command{},
	}
	for _, rec := range []*forge.Record{
		ask(at(forge.StepReview, 1, 1)),
		tell(1, at(forge.StepReview, 1, 1), "claude", &forge.Review{}), // too early
		ask(at(forge.StepReview, 2, 1), at(forge.StepJudge, 1, 1)),
		tell(2, at(forge.StepReview, 2, 1), "claude", &forge.Failure{Reason: forge.FailCrashed}),
		ask(at(forge.StepReview, 3, 1)),
		ask(at(forge.StepReview, 3, 2)), // the first replica was lost
		tell(3, at(forge.StepReview, 3, 2), "", &forge.Started{}),
		tell(4, at(forge.StepReview, 3, 2), "claude", &forge.Review{}),
		tell(5, at(forge.StepReview, 3, 2), "claude", &forge.Review{}), // twice
		tell(6, at(forge.StepReview, 9, 1), "claude", &forge.Review{}), // nobody asked
		ask(at(forge.StepReview, 5, 1)),
		tell(7, at(forge.StepReview, 5, 1), "", &forge.Review{}), // commands decided alone
		ask(at(forge.StepReview, 4, 1)),
		tell(7, at(forge.StepReview, 4, 1), "recipe", &forge.Review{}),
		tell(8, at(forge.StepJudge, 1, 1), "claude", &forge.Judgment{}), // another role
	} {
		c.add(rec)
	}
	var got []string
	for _, q := range c.list {
		got = append(got, q.command.Attempt.String())
	}
	if diff := cmp.Diff([]string{"one-001/review/3.2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFlags has command lines that are refused, by the name of the flag.
func TestFlags(t *testing.T) {
	for want, f := range map[string]flags{
		"--limit":       {limit: -1, budget: 1},
		"--model":       {model: "-x", budget: 1},
		"--until":       {until: "soon", budget: 1},
		"--prompt-file": {prompt: t.TempDir(), role: "judge", budget: 1},
		"--budget":      {budget: 1e9},
	} {
		if _, _, err := f.parse(nil, time.Now()); err == nil || !strings.HasPrefix(err.Error(), want+":") {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, _, err := (&flags{budget: 1}).parse([]string{"../x"}, time.Now()); err == nil {
		t.Error("an id that is none")
	}
}

// TestCommand has commands of then: whom they named has no say where somebody else is asked.
func TestCommand(t *testing.T) {
	second := forge.ReviewInput{Second: &forge.Reviewer{Agent: "codex"}, First: forge.Reviewer{Agent: "claude"}, Unchanged: true}
	old := forge.Command{
		Intent: forge.Intent{Settings: forge.Settings{Agent: "gemini"}}, Attempt: forge.Attempt{Step: forge.StepReview}, Replica: "r", Resume: true,
		Session: "s", LimitedAgents: []string{"claude"}, Stronger: &forge.Stronger{Model: "opus"}, Input: &second,
	}
	same := (&other{}).command(&old, 2)
	if same.Intent.Agent != "gemini" || same.Stronger == nil || same.Review().Second == nil || same.BudgetUSD != 2 {
		t.Errorf("the same reviewer is asked otherwise: %+v", same)
	}
	if same.Replica != "" || same.Resume || same.Session == "s" || same.LimitedAgents != nil {
		t.Errorf("it goes on with what is over: %+v", same)
	}
	if c := (&other{agent: "codex"}).command(&old, 2); c.Stronger != nil {
		t.Errorf("codex is asked for %s", c.Stronger.Model)
	}
	c := (&other{agent: "claude", model: "m"}).command(&old, 2)
	if in := c.Review(); c.Intent.Agent != "" || c.Stronger != nil || in.Second != nil || in.First != (forge.Reviewer{}) || !in.Unchanged {
		t.Errorf("another one is named: %+v", c)
	}
	if second.Second == nil || old.Session != "s" {
		t.Error("the command of then was changed")
	}
}
