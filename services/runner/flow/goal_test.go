package flow_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/claimtest"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// towards plays the workers of a goal's steps, and reports whether the step is one of
// them.
func (s *script) towards(t *testing.T, r *forge.Result, c forge.Command, d *datadriven.TestData, arg func(string) string, list func(string) []string) bool {
	t.Helper()
	switch forge.Step(d.Cmd) {
	case forge.StepIntake:
		out := &forge.Intake{Task: "what to do", Criteria: words(list("criteria")), Risk: forge.Risk(arg("risk")), Type: "feature"}
		r.Output = out
		for _, q := range list("ask") {
			out.Clarifications = append(out.Clarifications, forge.Clarification{Question: q})
		}
		r.Policy = policyOf(arg, list)
	case forge.StepExecute:
		out := &forge.Implementation{
			Base: "main", Head: fmt.Sprintf("head-%s-%d", c.Attempt.Task, c.Attempt.Number), Commits: 1, Leftover: arg("leftover"),
			Execution: &forge.Execution{
				Status: forge.ExecutionSuccess, Output: "it is done", Approach: "straight", Applied: list("applied"),
				Metadata: forge.SummaryMetadata{TokensUsed: 100},
			},
		}
		out.Blocked = questionOf(arg)
		r.Output = out
		if v := arg("status"); v != "" {
			out.Execution.Status = forge.ExecutionStatus(v)
		}
		if d.HasArg("nothing") {
			out.Head, out.Commits = "main", 0
		}
	case forge.StepSummarize:
		e := c.Goal().Execution
		out := &forge.Summarization{Summary: forge.ExecutionSummary{Approach: e.Approach, Result: e.Status, Reason: "so it is"}}
		r.Output = out
		for _, k := range words(list("found")) {
			out.Knowledge = append(out.Knowledge, forge.Knowledge{
				Type: forge.KnowledgeDiscovery, Category: "testing", Content: k, Confidence: forge.ConfidenceMedium,
			})
		}
	case forge.StepJudge:
		r.Output = judgmentOf(c, d, arg)
	default:
		return false
	}
	return true
}

// checksOf has a check for each criterion that says that one of these checks passes.
func checksOf(criteria, names []string) []forge.Check {
	var list []forge.Check
	for i, text := range criteria {
		for _, name := range names {
			if c := (forge.Check{Criterion: i + 1, Name: name}); c.Text() == text {
				list = append(list, c)
			}
		}
	}
	return list
}

// check reports runs of checks. Those that fail and those that ran on another commit are named.
func (s *script) check(out *forge.Rebase, checks []forge.Check, failing, elsewhere []string) {
	for _, c := range checks {
		run := forge.CheckRun{
			ID: verdict.RunID(&c), Name: c.Name, Command: "make " + c.Name, Tree: out.Tree, Passed: true, Output: "ok", Duration: time.Second,
		}
		if slices.Contains(failing, c.Name) {
			run.Passed, run.ExitCode, run.Output = false, 1, "FAIL"
		}
		if slices.Contains(elsewhere, c.Name) {
			run.Tree = "another"
		}
		out.Verify.Checks = append(out.Verify.Checks, run)
	}
}

// judgmentOf is a judgment by which as many criteria are met as met says, all if it
// says nothing.
func judgmentOf(c forge.Command, d *datadriven.TestData, arg func(string) string) *forge.Judgment {
	j := &forge.Judgment{Head: c.Task.Head, Complete: true, Reason: "looked at", NextAction: arg("next")}
	most := len(c.Goal().Criteria)
	if v := arg("met"); v != "" {
		most, _ = strconv.Atoi(v)
		j.Complete = d.HasArg("hasty")
	}
	j.Claims = claimtest.Met(c.Goal().Criteria)
	if way := arg("claims"); way != "" {
		j.Claims = claimtest.Lie(c.Goal().Criteria, way)
	}
	for i := most; i < len(j.Claims); i++ {
		j.Claims[i].Met, j.Claims[i].Note, j.Claims[i].Evidence = false, "it is missing", nil
	}
	if d.HasArg("of-another-commit") {
		j.Head = "something-else"
	}
	return j
}

// words puts spaces where a script cannot.
func words(list []string) []string {
	var out []string
	for _, w := range list {
		out = append(out, strings.ReplaceAll(w, "-", " "))
	}
	return out
}

func describeLoop(l *forge.GoalContext) string {
	var b strings.Builder
	fmt.Fprintf(&b, " iteration %d, %d left", l.Iteration, l.Left)
	for i := range l.Summaries {
		fmt.Fprintf(&b, ", #%d %s", l.Summaries[i].Iteration, l.Summaries[i].Result)
	}
	if l.Judgment != nil {
		fmt.Fprintf(&b, ", next %q", l.Judgment.NextAction)
	}
	for i := range l.Knowledge {
		fmt.Fprintf(&b, ", knowing %s %q used %d", l.Knowledge[i].ID, l.Knowledge[i].Content, l.Knowledge[i].AppliedCount)
	}
	return b.String()
}

func (s *script) showGoal(g *forge.GoalView) {
	if j := g.FinalJudgment(); j != nil && slices.ContainsFunc(j.Claims, func(c forge.Claim) bool { return c.Run != nil }) {
		for _, c := range j.Claims {
			s.print("criterion %d, met: %t, %s: %s", c.Number, c.Counts(), c.Text, c.Note)
		}
	}
	s.print("goal: iteration %d, %d of %d used, %d of %d criteria met, %q %s", g.Iteration, g.Used, g.Most, g.Met, g.Criteria, g.Status, g.Error)
	for _, it := range g.Iterations {
		s.print("  #%d at %s, summed up: %t, judged: %t", it.Number, it.Head, it.Summary != nil, it.Judgment != nil)
	}
	for i := range g.Knowledge {
		s.print("  %s: %s, of %q", g.Knowledge[i].ID, g.Knowledge[i].Content, g.Knowledge[i].SourceTask)
	}
}

// asked reports checks that a reviewer asked for.
func (s *script) asked(c forge.Command, d *datadriven.TestData, names []string) *forge.Rebase {
	list := func(key string) (list []string) {
		for _, a := range d.CmdArgs {
			if a.Key == key {
				list = a.Vals
			}
		}
		return list
	}
	tree := strings.Replace(c.Task.Head, "rebased", "tree", 1)
	out := &forge.Rebase{Base: c.Task.Base, Head: c.Task.Head, Tree: tree, Verify: &forge.VerifyReport{Passed: true}}
	var checks []forge.Check
	for _, name := range names {
		if !slices.Contains(list("absent"), name) {
			checks = append(checks, forge.Check{Name: name})
		}
	}
	s.check(out, checks, list("failing"), list("elsewhere"))
	if d.HasArg("rebases") { // an old worker, which does not know of checks that are asked for
		out.Head = "rebased-elsewhere"
	}
	return out
}
