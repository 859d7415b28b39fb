package flow

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// admitted starts the run: with an analysis, or, when a retry follows a plan
// that stands, with its tasks.
func (s *Intent) admitted(a *forge.Admitted) (forge.Decision, error) {
	if s.phase != phaseEntering || a.Run != s.run {
		return ignore("the intent does not wait for admission to run %d", a.Run)
	}
	s.open.closeNote("enter")
	s.active = a.Active
	if !s.known {
		s.policy.Budget = a.Budget
	}
	if len(s.tasks) > 0 {
		s.gate()
	} else {
		s.startAnalysis()
	}
	return forge.Applied, nil
}

func (s *Intent) startAnalysis() {
	s.phase = phaseAnalyzing
	s.analyze.number++
	s.analyze.claim = 1
	if s.talk.number == 0 {
		s.begin(&s.talk, "", forge.StepAnalyze)
	}
	c := forge.Command{
		To:           s.key,
		Attempt:      forge.Attempt{Step: forge.StepAnalyze, Number: s.analyze.number, Claim: 1},
		Intent:       s.intent,
		Active:       s.active,
		Avoid:        s.avoided(),
		Instructions: s.instructions,
	}
	s.talk.in(&c)
	s.send(c)
}

// analyzed takes an analysis: questions, or a plan.
func (s *Intent) analyzed(r *forge.Result) {
	a := r.Analysis
	if s.refreshing {
		s.refreshed(r)
		return
	}
	s.talk.heardOf(r.Session)
	if a.Policy != nil {
		first := !s.known
		s.policy, s.known = *a.Policy, true
		if first && s.usage.CostUSD > 0 {
			s.settle() // of what was spent before it was known that there is a budget
		}
	}
	if len(a.Clarifications) > 0 {
		s.analyze.worked()
		s.ask(a.Clarifications)
		return
	}
	tasks, err := plan(s.key.Intent, a.Tasks)
	if err == nil && len(tasks) == 0 && a.NothingToDo == "" {
		err = errors.New("the analysis found neither tasks nor questions")
	}
	if err != nil {
		s.outcome(string(forge.FailInvalidOutput))
		s.failed(nil, &forge.Result{Attempt: r.Attempt, Failure: &forge.Failure{
			Reason: forge.FailInvalidOutput, Message: err.Error(),
		}})
		return
	}
	s.analyze.worked()
	if s.intent.Type == "" {
		s.intent.Type = a.Type
	}
	s.judged = a.Risk
	if s.judged.Rank() == 0 {
		s.judged = forge.RiskMed // not judged is not harmless
	}
	s.intent.Risk = forge.MaxRisk(s.declared, s.judged)
	s.tasks = tasks
	s.planHash = hashPlan(s.intent, tasks)
	s.reason = a.NothingToDo
	s.depends = nil
	for _, id := range slices.Concat(s.intent.DependsOn, a.DependsOn) {
		if !slices.ContainsFunc(s.depends, func(d dependency) bool { return d.id == id }) {
			s.depends = append(s.depends, dependency{id: id})
		}
	}
	s.gate()
}

// ask pauses the intent until a person has answered. Questions that were
// answered before stay, for the record and for the agent.
func (s *Intent) ask(questions []forge.Clarification) {
	list := slices.Clone(s.intent.Clarifications)
	for _, q := range questions {
		q.Answer = nil
		list = append(list, q)
	}
	s.intent.Clarifications = list
	s.phase = phaseAsking
	s.reason = fmt.Sprintf("%d question(s) to answer", len(questions))
	s.adjust(ruleClarify, "", "%d question(s)", len(questions))
}

// gate holds an intent that a person has to approve, and lets the others go on.
func (s *Intent) gate() {
	if why := s.needsApproval(); why != "" && !s.approved {
		if s.phase != phaseApproval {
			s.adjust(ruleAwaitApproval, "", "%s", why)
		}
		s.phase = phaseApproval
		s.reason = why
		return
	}
	s.intent.Status = forge.StatusApproved
	s.await()
}

// needsApproval says why a person has to approve, or nothing.
func (s *Intent) needsApproval() string {
	origin := s.intent.Origin.System
	switch {
	case len(s.tasks) == 0:
		return ""
	case s.intent.Risk.Rank() > forge.RiskLow.Rank():
		return fmt.Sprintf("risk is %s", s.intent.Risk)
	case s.intent.Source == forge.SourceSystem && !slices.Contains(s.policy.TrustedOrigins, origin):
		return fmt.Sprintf("it comes from %q, which may not run unapproved (policy.trusted_origins)", origin)
	}
	return ""
}

// await waits for the intents that this one depends on, if any, and tells the
// lane the plan.
func (s *Intent) await() {
	p := forge.Planned{Run: s.run, Plan: planSummary(s.tasks), Budget: s.policy.Budget}
	for _, t := range s.tasks {
		for _, f := range t.RelevantFiles {
			if !slices.Contains(p.RelevantFiles, f) && len(p.RelevantFiles) < 100 {
				p.RelevantFiles = append(p.RelevantFiles, f)
			}
		}
	}
	var missing []string
	for i := range s.depends {
		if s.depends[i].status != forge.StatusDone {
			s.depends[i].status = ""
			p.DependsOn = append(p.DependsOn, s.depends[i].id)
			missing = append(missing, string(s.depends[i].id))
		}
	}
	s.tellLane("planned", false, forge.Event{Planned: &p})
	if len(missing) == 0 {
		s.work()
		return
	}
	s.phase = phaseDepending
	s.adjust(ruleAwaitDependency, "", "%s", strings.Join(missing, ", "))
}

func (s *Intent) dependencyEnded(d *forge.DependencyEnded) (forge.Decision, error) {
	i := slices.IndexFunc(s.depends, func(x dependency) bool { return x.id == d.Intent })
	if s.phase != phaseDepending || d.Run != s.run || i < 0 || s.depends[i].status != "" {
		return ignore("the intent does not wait for %q", d.Intent)
	}
	switch {
	case len(d.Cycle) > 0:
		s.block(ruleCycle, "the intents wait for each other: "+joinIDs(d.Cycle, " -> "))
	case d.Status == "":
		s.block(ruleBlockDependency, fmt.Sprintf("it depends on %q, and there is no such intent", d.Intent))
	case d.Status != forge.StatusDone:
		s.depends[i].status = d.Status
		s.block(ruleBlockDependency, fmt.Sprintf("it depends on %q, which ended %s", d.Intent, d.Status))
	default:
		s.depends[i].status = d.Status
		if !slices.ContainsFunc(s.depends, func(x dependency) bool { return x.status != forge.StatusDone }) {
			s.work()
		}
	}
	return forge.Applied, nil
}

// block ends a run that cannot start its tasks.
func (s *Intent) block(rule, why string) {
	s.adjust(rule, "", "%s", why)
	for _, t := range s.tasks {
		if !t.ended() {
			s.endTask(t, forge.TaskFailed, why)
		}
	}
	s.reason = why
	s.finish(forge.StatusBlocked)
}

// plan gives an analysis's tasks their ids, and refuses dependencies that
// cannot be met.
func plan(intent forge.IntentID, plans []forge.TaskPlan) ([]*task, error) {
	ids := make(map[string]forge.TaskID, len(plans))
	for i, p := range plans {
		name := p.Name
		if name == "" {
			name = fmt.Sprintf("%d", i+1)
		}
		if _, dup := ids[name]; dup {
			return nil, fmt.Errorf("two tasks are named %q", name)
		}
		ids[name] = forge.NewTaskID(intent, i+1)
	}
	tasks := make([]*task, 0, len(plans))
	for i, p := range plans {
		t := &task{stage: stagePending, Task: forge.Task{
			ID: forge.NewTaskID(intent, i+1), IntentID: intent, Title: p.Title, Plan: p.Plan,
			RelevantFiles: p.RelevantFiles, Steps: p.Steps, Context: p.Context, Complexity: p.Complexity,
			Status: forge.TaskPending, Name: p.Name, Item: p.Item,
		}}
		for _, d := range p.DependsOn {
			id, ok := ids[d]
			if !ok {
				return nil, fmt.Errorf("task %q depends on %q, which is no task of this plan", p.Title, d)
			}
			t.DependsOn = append(t.DependsOn, id)
		}
		tasks = append(tasks, t)
	}
	return tasks, acyclic(tasks)
}

// acyclic reports tasks that wait for each other.
func acyclic(tasks []*task) error {
	done := make(map[forge.TaskID]bool, len(tasks))
	for len(done) < len(tasks) {
		before := len(done)
		for _, t := range tasks {
			if !slices.ContainsFunc(t.DependsOn, func(d forge.TaskID) bool { return !done[d] }) {
				done[t.ID] = true
			}
		}
		if len(done) == before {
			var stuck []string
			for _, t := range tasks {
				if !done[t.ID] {
					stuck = append(stuck, string(t.ID))
				}
			}
			return fmt.Errorf("these tasks wait for each other: %s", strings.Join(stuck, ", "))
		}
	}
	return nil
}

// hashPlan names a plan, so that an approval is of exactly that plan.
func hashPlan(in forge.Intent, tasks []*task) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q\n", in.Title, in.Body, in.Risk)
	for _, t := range tasks {
		fmt.Fprintf(h, "%q %q %q %q %q %q %q\n", t.ID, t.Title, t.Plan, t.RelevantFiles, t.Steps, t.DependsOn, t.Item)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

func planSummary(tasks []*task) string {
	var b strings.Builder
	for i, t := range tasks {
		if i == 10 {
			fmt.Fprintf(&b, "... and %d more", len(tasks)-i)
			break
		}
		fmt.Fprintf(&b, "%s\n", t.Title)
	}
	return strings.TrimSpace(b.String())
}

func joinIDs(ids []forge.IntentID, sep string) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = string(id)
	}
	return strings.Join(list, sep)
}

// noteID names a note; the same decision always makes the same name.
func noteID(from forge.Key, key string, ev forge.Event) string {
	n := 0
	switch {
	case ev.Enter != nil:
		n = ev.Enter.Run
	case ev.Planned != nil:
		n = ev.Planned.Run
	case ev.Spend != nil:
		n = ev.Spend.Number
	case ev.Settle != nil:
		n = ev.Settle.Number
	case ev.Land != nil:
		n = ev.Land.Number
	case ev.Reserve != nil:
		n = ev.Reserve.Number
	case ev.Withdraw != nil:
		n = ev.Withdraw.Number
	case ev.End != nil:
		n = ev.End.Number
	}
	return fmt.Sprintf("%s/%s/%d", from.Intent, key, n)
}
