package flow_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

func describeCommand(c forge.Command) string {
	analyze, observe, implement, reflect := c.Analyze(), c.Observe(), c.Implement(), c.Reflect()
	past, observations := slices.Concat(analyze.Past, observe.Past), slices.Concat(observe.Observations, reflect.Observations)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", c.To.Intent, c.Attempt)
	if c.Replica != "" {
		fmt.Fprintf(&b, " on %s", c.Replica)
	}
	if c.Resume {
		fmt.Fprintf(&b, " resuming %.4s", c.Session)
	}
	if c.Patience > rule.Patience(0) {
		fmt.Fprintf(&b, " patient for %s", c.Patience)
	}
	if implement.Continue {
		b.WriteString(" going on")
	}
	if c.Wish != nil {
		fmt.Fprintf(&b, " as %s wants: %q", c.Wish.Person, c.Wish.Words)
	}
	if implement.Answered {
		b.WriteString(" answered")
	}
	if c.Stronger != nil {
		fmt.Fprintf(&b, " with %s:%s", c.Stronger.Model, c.Stronger.Effort)
	}
	if rv := c.Review(); rv.Second != nil {
		fmt.Fprintf(&b, " by the second, %s:%s, after %s:%s, told of %d reviews", rv.Second.Agent, rv.Second.Model, rv.First.Agent, rv.First.Model, len(rv.Reviews))
	}
	if names := c.Rebase().Asked; len(names) > 0 {
		fmt.Fprintf(&b, " checks %v", names)
	}
	for _, run := range c.Review().Asked {
		fmt.Fprintf(&b, " told that %s %s passed=%t %q", run.ID, run.Name, run.Passed, run.Output)
	}
	if n := c.Review().MayAsk; n > 0 {
		fmt.Fprintf(&b, " may ask for %d", n)
	}
	if c.Review().Unchanged {
		b.WriteString(" of the base")
	}
	if analyze.PolicyOnly {
		b.WriteString(" policy only")
	}
	if c.BudgetUSD > 0 {
		fmt.Fprintf(&b, " for $%.2f", c.BudgetUSD)
	}
	if len(c.LimitedAgents) > 0 {
		fmt.Fprintf(&b, " avoiding %v", c.LimitedAgents)
	}
	if len(c.ClosedAgents) > 0 {
		fmt.Fprintf(&b, " not calling %v", c.ClosedAgents)
	}
	if implement.Fresh {
		b.WriteString(" fresh")
	}
	if len(past) > 0 {
		fmt.Fprintf(&b, " knowing of %d runs", len(past))
	}
	for _, k := range slices.Concat(analyze.Knowledge, implement.Knowledge) {
		fmt.Fprintf(&b, " knowing %s %q", k.ID, k.Content)
	}
	if implement.Analyzed != "" {
		fmt.Fprintf(&b, " planned for %s", implement.Analyzed)
	}
	if len(reflect.Proposed) > 0 {
		fmt.Fprintf(&b, " knowing of proposals %v", reflect.Proposed)
	}
	if len(observations) > 0 {
		fmt.Fprintf(&b, " with %d observations", len(observations))
	}
	if len(reflect.Histories) > 0 {
		fmt.Fprintf(&b, " and %d runs more", len(reflect.Histories))
	}
	if len(implement.Overlaps) > 0 {
		fmt.Fprintf(&b, " overlapping %v", implement.Overlaps)
	}
	if analyze.Insufficient != "" {
		fmt.Fprintf(&b, " because %q", analyze.Insufficient)
	}
	if len(c.Abstract().Patterns) > 0 {
		fmt.Fprintf(&b, " of %d patterns", len(c.Abstract().Patterns))
	}
	if c.Task.Write != nil {
		fmt.Fprintf(&b, " writing %s", c.Task.Write.Path)
	}
	if merge := c.Merge().Change; merge != nil {
		fmt.Fprintf(&b, " commit %s%s", merge.Head, describeTrial(c.Merge()))
	}
	b.WriteString(describePull(&c) + describeAdoption(&c))
	if c.Rebase().VerifyInMerge {
		b.WriteString(" may leave verify")
	}
	if c.Review().Unverified || cmp.Or(c.Merge().Change, &forge.QueueMerge{}).Unverified {
		b.WriteString(" unverified")
	}
	if by := cmp.Or(c.Rebase().Approver, cmp.Or(c.Merge().Change, &forge.QueueMerge{}).Approver); by != "" {
		fmt.Fprintf(&b, " approved by %s", by)
	}
	if implement.Feedback != "" {
		fmt.Fprintf(&b, " feedback %q", implement.Feedback)
	}
	if goal := c.Goal(); goal != nil {
		b.WriteString(describeLoop(goal))
		if c.Attempt.Step == forge.StepJudge && len(c.Task.Checks) > 0 {
			fmt.Fprintf(&b, ", of %q", goal.Criteria)
		}
	}
	if c.Instructions != "" {
		fmt.Fprintf(&b, " instructions %q", c.Instructions)
	}
	return b.String()
}

func describeMessage(n forge.Event) string {
	from := "project to " + string(n.To.Intent)
	if n.To.IsProject() {
		from = n.Actor + " to project"
	} else if n.Actor != "" {
		from = n.Actor + " to " + string(n.To.Intent)
	}
	what := ""
	switch m := n.Message.(type) {
	case *forge.AdmitRun:
		what = fmt.Sprintf("admit run %d", m.Run)
	case *forge.RunAdmitted:
		what = "admitted"
		if m.Paused > 0 {
			what += ", paused"
		}
	case *forge.Submit:
		what = fmt.Sprintf("submit %q, %s, risk %q, after %v", m.Intent.Title, m.Intent.Source, m.Intent.Risk, m.Intent.DependsOn)
	case *forge.Retry:
		what = "retry"
	case *forge.Cancel:
		what = "cancel: " + m.Reason
	case *forge.Pause:
		what = fmt.Sprintf("pause %d", m.Number)
	case *forge.Resume:
		what = fmt.Sprintf("resume %d", m.Number)
	case *forge.ChildChanged:
		what = fmt.Sprintf("%s run %d is %s, end %d", m.Intent, m.Run, m.Status, m.Number)
	case *forge.RunReflected:
		r := m
		what = fmt.Sprintf("reflected on run %d: %s, read %v, proposed %v, dropped %v", r.Run, r.Step.Outcome, r.Read, r.Proposed, details(r.Dropped))
	case *forge.OverlapChanged:
		what = fmt.Sprintf("%s does not merge with %s: %v", m.TaskID, m.Other.TaskID, m.Other.Files)
	case *forge.RunPlanned:
		what = fmt.Sprintf("planned, after %v", m.DependsOn)
		if m.Children != nil {
			what += fmt.Sprintf(", children %v", m.Children)
		}
	case *forge.DependencyEnded:
		what = fmt.Sprintf("%s ended %q", m.Intent, m.Status)
		if m.Cycle != nil {
			what = fmt.Sprintf("cycle %v", m.Cycle)
		}
	case *forge.LockFiles:
		what = fmt.Sprintf("%s wants a file lock on %v", m.Task, m.Files)
	case *forge.FilesLocked:
		what = fmt.Sprintf("%s has a file lock: %t", m.Task, m.Granted)
	case *forge.QueueMerge:
		what = fmt.Sprintf("merge %s", m.Head)
	case *forge.MergeEnded:
		what = fmt.Sprintf("%s could not be merged", m.Task)
		if m.Result != nil {
			what = fmt.Sprintf("%s %s", m.Task, m.Result.Outcome)
		}
	case *forge.WithdrawRequests:
		what = fmt.Sprintf("%s withdraws", m.Task)
	case *forge.RunEnded:
		what = fmt.Sprintf("run %d ended %s", m.Run, m.Status)
		if m.Knowledge != nil || m.Applied != nil {
			what += fmt.Sprintf(", found out %d, applied %v", len(m.Knowledge), m.Applied)
		}
		if m.SpentUSD > 0 {
			what += fmt.Sprintf(", spent $%.2f", m.SpentUSD)
		}
	case *forge.ReserveBudget:
		what = fmt.Sprintf("wants $%.2f for %s", m.USD, m.Attempt)
	case *forge.CommitBudget:
		what = fmt.Sprintf("spent $%.2f, open %v", m.SpentUSD, m.Open)
	case *forge.BudgetReserved:
		what = fmt.Sprintf("$%.2f for %s %s", m.USD, m.Attempt, m.Reason)
	case *forge.ObstacleReported:
		what = fmt.Sprintf("the account of %s: %s, seen %d", m.Agent, m.Failure.Reason, m.Seen)
	case *forge.ObstaclesChanged:
		what = describeAccounts(m)
	case *forge.Answer, *forge.Approve, *forge.RequestChanges, *forge.Edit, *forge.Reflect, *forge.Reject, *forge.Result, *forge.Teach,
		*forge.SetSchedules, *forge.PauseSchedule, *forge.TimerFired:
		what = fmt.Sprintf("%T, which no machine sends", m)
	}
	return from + ": " + what
}

func details(list []forge.Adjustment) []string {
	var all []string
	for _, a := range list {
		all = append(all, a.Detail)
	}
	return all
}
