package flow_test

import (
	"cmp"
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

// work plays a worker: it answers the open command of a step.
func (s *script) work(t *testing.T, d *datadriven.TestData, target string, arg func(string) string, list func(string) []string) {
	t.Helper()
	step := forge.Step(d.Cmd)
	if d.Cmd == "fail" || d.Cmd == "started" {
		step = forge.Step(arg("step"))
	}
	i := slices.IndexFunc(s.open, func(c forge.Command) bool {
		return c.Attempt.Step == step && (string(c.Attempt.Task) == target || c.Attempt.Task == "" && string(c.To.Intent) == target)
	})
	if i < 0 {
		t.Fatalf("%s: no command %q for %s", d.Pos, step, target)
	}
	c := s.open[i]
	replica := forge.ReplicaID(cmp.Or(arg("replica"), "r1"))
	r := forge.Result{To: c.To, Attempt: c.Attempt, Replica: replica, Session: c.Session, Agent: arg("agent")}
	for _, text := range list("notes") {
		r.Observations = append(r.Observations, forge.Observation{Content: text})
	}
	if v := arg("cost"); v != "" {
		r.Usage.Calls, r.Usage.CostUSD = 1, usd(v)
	}
	switch d.Cmd {
	case "started":
		r.Output = &forge.Started{}
	case "probe":
		r.Output = &forge.Probed{}
	case "fail":
		r.Output = &forge.Failure{Reason: forge.FailureReason(arg("reason")), Message: "it failed"}
		if u := arg("until"); u != "" {
			after, err := time.ParseDuration(u)
			if err != nil {
				t.Fatal(err)
			}
			r.Failure().Until = s.now.Add(after)
		}
	default:
		s.answer(t, &r, c, d, arg, list)
	}
	if !d.HasArg("again") && !r.IsStart() { // again: the command stays, as when a worker's report is repeated
		s.open = slices.Delete(s.open, i, i+1)
	}
	s.send(forge.Event{To: r.Machine(), Message: &r})
}

func (s *script) answer(t *testing.T, r *forge.Result, c forge.Command, d *datadriven.TestData, arg func(string) string, list func(string) []string) {
	t.Helper()
	files := list("files")
	if files == nil {
		files = []string{"main.go"}
	}
	commit := func(kind string) string { return fmt.Sprintf("%s-%s-%d", kind, c.Attempt.Task, c.Attempt.Number) }
	switch forge.Step(d.Cmd) {
	case forge.StepAnalyze, forge.StepArchitect:
		out := analysisOf(arg, list)
		if c.Analyze().PolicyOnly {
			out = &forge.Analysis{Policy: out.Policy}
		}
		r.Output = out
	case forge.StepImplement:
		n := 1
		if v := arg("commits"); v != "" {
			n, _ = strconv.Atoi(v)
		}
		out := &forge.Implementation{
			Base: "main", Head: commit("head"), Commits: n, Files: files,
			Unchanged: d.HasArg("unchanged"), Leftover: arg("leftover"), Denied: list("denied"),
		}
		out.NothingToDo, out.Blocked = spaced(arg("nothing")), questionOf(arg)
		if n == 0 && c.Task.Head != "" { // the change as it was
			out.Base, out.Head = c.Task.Base, c.Task.Head
		} else if n == 0 && out.NothingToDo != "" {
			out.Head = out.Base
		}
		r.Output = out
		for _, o := range list("overlaps") {
			out.Overlaps = append(out.Overlaps, forge.Overlap{TaskID: forge.TaskID(o), Files: files})
		}
	case forge.StepRebase:
		if names := c.Rebase().Asked; len(names) > 0 {
			r.Output = s.asked(c, d, names)
			break
		}
		out := &forge.Rebase{Conflicts: list("conflicts"), Files: files, Guarded: list("guarded"), Landed: list("landed")}
		r.Output = out
		for _, o := range list("overlaps") {
			out.Overlaps = append(out.Overlaps, forge.Overlap{TaskID: forge.TaskID(o), Files: files})
		}
		if out.Conflicts == nil {
			out.Base, out.Head, out.Tree, out.PatchID = "main", commit("rebased"), commit("tree"), commit("patch")
			if name := arg("patch"); name != "" { // as an earlier attempt had it
				out.PatchID = name
			}
			if out.Unverified = d.HasArg("unverified"); out.Unverified {
				adoption(out, arg)
				break
			}
			out.Verify = tried(out.Tree, list("trials"), &forge.VerifyReport{Passed: !d.HasArg("broken"), Command: "make test", Output: "FAIL"})
			s.check(out, c.Task.Checks, list("failing"), list("elsewhere"))
			if c.Task.Head == c.Task.Base { // a goal that has changed nothing
				out.Head, out.PatchID, out.Files = out.Base, "", nil
			}
		}
		adoption(out, arg)
	case forge.StepReview:
		out := &forge.Review{TaskID: c.Task.ID, Head: c.Task.Head, Verdict: forge.VerdictApproved, Claims: claimtest.Met(c.Task.Required())}
		r.Output = out
		if way := arg("claims"); way != "" {
			out.Claims = claimtest.Lie(c.Task.Required(), way)
		}
		if d.HasArg("rejected") || d.HasArg("without-issue") {
			out.Verdict = forge.VerdictRejected
		}
		if d.HasArg("rejected") || d.HasArg("with-issue") {
			out.Issues = []string{"a test is missing"}
		}
		if d.HasArg("of-another-commit") {
			out.Head = "something-else"
		}
		for _, name := range list("asks") {
			out.Asked = append(out.Asked, forge.CheckRun{Name: name})
		}
		if len(out.Asked) > 0 && !d.HasArg("approves") {
			out.Verdict, out.Claims = "", nil
		}
		if second := c.Review().Second; second != nil && !d.HasArg("as-first") {
			out.By, out.Second = *second, true
		} else if c.Intent.Recipe == "" {
			out.By = forge.Reviewer{Agent: "claude", Model: "sonnet"}
		}
		if name := arg("by"); name != "" {
			out.By.Agent, out.By.Model, _ = strings.Cut(name, ":")
		}
		out.Second = out.Second || d.HasArg("as-second")
		r.Agent, r.Model, _ = strings.Cut(arg("answered"), ":")
	case forge.StepMerge:
		out := &forge.MergeResult{Outcome: forge.MergeOutcome(arg("outcome")), Files: files}
		r.Output = out
		switch out.Outcome {
		case "", forge.MergeDone:
			out.Outcome, out.Commit, out.Parent, out.Tree = forge.MergeDone, commit("merged"), commit("tip"), commit("tree")
			out.Unproven = spaced(arg("unproven"))
			if d.HasArg("trials") {
				out.Verify = tried(out.Tree, list("trials"), &forge.VerifyReport{Passed: true})
			}
		case forge.MergeVerifyFailed:
			out.Candidate = &forge.Rebase{
				Base: "main2", Head: commit("moved"), Tree: commit("moved-tree"), PatchID: commit("patch"), Files: files, Landed: list("landed"),
			}
			out.Verify = tried(out.Candidate.Tree, list("trials"), &forge.VerifyReport{Command: "make test", Output: "FAIL"})
		case forge.MergePatchChanged:
			out.Candidate = &forge.Rebase{Base: "main2", Head: commit("again"), PatchID: commit("other"), Files: files, Guarded: list("guarded")}
		case forge.MergeTried:
			var on string
			out.Batch, on = ridden(&c, arg("on"), list("batch"))
			out.Candidate = triedMerge(on, commit, list("conflicts"), d.HasArg("broken"))
		case forge.MergeRefused:
			out.Refusal, out.Candidate = spaced(arg("says")), triedMerge(arg("on"), commit, nil, false)
		case forge.MergeProposed:
			proposedOf(out, &c, arg("on"))
		case forge.MergeEdited:
			out.Branch, out.Pull = "forge/"+string(c.Attempt.Task), editedAt(arg("head"), "forge/"+string(c.Attempt.Task))
		case forge.MergeConflict, forge.MergeDirty, forge.MergeOvertaken, forge.MergeClosed, forge.MergeChecksFailed, forge.MergeUnwanted,
			forge.MergeDenied, forge.MergeOverdue:
		}
	case forge.StepOpenPull, forge.StepMergePull:
		r.Output = s.look(t, d, c.Attempt.Task, arg, list)
	case forge.StepReflect:
		out := &forge.Reflection{}
		r.Output = out
		for _, title := range list("proposes") {
			out.Proposals = append(out.Proposals, forge.Intent{
				ID: forge.IntentID(arg("spelled")), Settings: forge.Settings{
					Title: strings.ReplaceAll(title, "-", " "), Body: "body", Type: "fix", Risk: forge.Risk(arg("risk")),
				},
			})
		}
		for _, o := range c.Reflect().Observations {
			out.Read = append(out.Read, o.ID)
		}
	case forge.StepAudit:
		r.Output, r.Policy = &forge.Audit{Summary: "all is well"}, policyOf(arg, list)
	case forge.StepObserve:
		out := &forge.Observed{NothingFound: arg("nothing")}
		r.Output = out
		for _, name := range list("patterns") {
			out.Patterns = append(out.Patterns, forge.Pattern{Name: name})
		}
	case forge.StepAbstract:
		out := &forge.Abstraction{NothingNew: arg("nothing")}
		r.Output = out
		for _, name := range list("skills") {
			out.Skills = append(out.Skills, forge.Skill{Name: name, Description: "When to use it", Body: "How"})
		}
	default:
		if !s.towards(t, r, c, d, arg, list) {
			t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
		}
	}
}

// questionOf reads the question of an agent that is blocked; nil if it is not.
func questionOf(arg func(string) string) *forge.Clarification {
	if arg("blocked") == "" {
		return nil
	}
	return &forge.Clarification{Question: spaced(arg("blocked")), Context: "nothing says so", SuggestedAnswers: []string{"this", "that"}}
}

// spaced returns a word of a script as text.
func spaced(word string) string { return strings.ReplaceAll(word, "-", " ") }

// analysisOf reads tasks=N, or tasks=(a,b:a) with dependencies, and the rest.
func analysisOf(arg func(string) string, list func(string) []string) *forge.Analysis {
	a := &forge.Analysis{Risk: forge.Risk(arg("risk")), Type: "fix", NothingToDo: arg("nothing"), Insufficient: arg("insufficient"), Base: arg("read")}
	if a.Risk == "" {
		a.Risk = forge.RiskLow
	}
	for _, name := range list("tasks") {
		name, after, _ := strings.Cut(name, ":")
		t := forge.TaskPlan{Name: name, Title: name, Requirements: words(list("requirements")), Complexity: forge.Complexity(arg("complexity"))}
		if after != "" {
			t.DependsOn = strings.Split(after, "+")
		}
		a.Tasks = append(a.Tasks, t)
	}
	for _, name := range list("children") {
		name, after, _ := strings.Cut(name, ":")
		c := forge.ChildPlan{Name: name, Title: "child " + name, Body: "body", Risk: forge.Risk(arg("child-risk"))}
		if after != "" {
			c.DependsOn = strings.Split(after, "+")
		}
		a.Children = append(a.Children, c)
	}
	for _, q := range list("ask") {
		a.Clarifications = append(a.Clarifications, forge.Clarification{Question: q})
	}
	for _, id := range list("after") {
		a.DependsOn = append(a.DependsOn, forge.IntentID(id))
	}
	a.Policy = policyOf(arg, list)
	return a
}

// tried adds trials to a report: "change-" is one of the change that failed,
// "base+" one of its parent that passed, "other-" one of another tree.
func tried(tree string, list []string, r *forge.VerifyReport) *forge.VerifyReport {
	for _, s := range list {
		run := forge.CheckRun{Name: s[:len(s)-1], Tree: tree, Passed: strings.HasSuffix(s, "+")}
		if run.Name == "other" {
			run.Name, run.Tree = verdict.TrialChange, "another"
		}
		if !run.Passed {
			run.Command = "make test"
		}
		r.Trials = append(r.Trials, run)
	}
	return r
}

func usd(s string) float64 {
	v, _ := strconv.ParseFloat(s, 64)
	return v
}
