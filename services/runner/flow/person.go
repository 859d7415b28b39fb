package flow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/control"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/pause"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/plan"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// submit takes a new intent. One that is known by its origin is ignored, but
// another text of its publisher is remembered for people. Another one is refused.
func (s person) submit(m *forge.Submit, ev *forge.Event) (forge.Decision, error) {
	if m.Comments != nil {
		return s.hear(m.Comments)
	}
	in := m.Intent
	if in.CreatedAt.IsZero() {
		in.CreatedAt = ev.At
	}
	in.Project, in.ID = s.key.Project, s.key.Intent
	in.Status = forge.StatusProposed
	if e := in.Validate(); e != nil {
		return forge.Refused, e
	}
	if s.Phase != control.None {
		if !plan.SameOrigin(s.Intent.Origin, in.Origin) {
			return forge.Refused, &forge.FieldError{Field: "id", Reason: "is taken by another intent; choose another one"}
		}
		decision, known := rule.Ignore("the intent is known already")
		if s.Phase != control.Closed && ev.Actor == in.Origin.System && s.DecidedBy.Has(rules.LaterText) && s.Plan.Taken.Again(&in, ev.At) {
			s.adjust(rule.LaterText, "", "%s", cmp.Or(s.Plan.Taken.Words(ev.Actor), "its text at "+ev.Actor+" is again the one that was taken"))
			decision = forge.Applied
		}
		return decision, known
	}
	s.Plan.Taken.Take(&in)
	s.Intent = in
	s.Plan.Gate.Declared, s.Plan.Gate.Vouched = in.Risk, m.Preapproved
	s.Foreign = in.Source.Foreign()
	s.Plan.Step = plan.FirstStep(&in)
	course(s).askAdmission()
	return forge.Applied, nil
}

// hear takes that there are comments on the intent, from any system that may submit: it changes
// nothing of what is done.
func (s person) hear(c *forge.Comments) (forge.Decision, error) {
	if e := c.Validate(); e != nil {
		return forge.Refused, e
	}
	switch {
	case s.Phase == control.None:
		return forge.Refused, &forge.FieldError{Field: "comments", Reason: fmt.Sprintf("are about intent %q, and there is none", s.key.Intent)}
	case s.Phase == control.Closed:
		return rule.Ignore("the intent has ended")
	case !plan.Hears(s.DecidedBy) || !s.Plan.Heard.IsNews(c):
		return rule.Ignore("the comments are known already, or too many were told of")
	}
	s.Plan.Heard.Hear(c)
	s.adjust(rule.Commented, "", "%s by %s; %d there by now", c.Ref, c.Account, c.Count)
	return forge.Applied, nil
}

// place returns where the intent is, as far as a person's acts go. What is allowed
// there is up to control.Table; the methods below check only what depends on the
// words of the act.
func (s person) place() *control.Intent {
	return &control.Intent{
		Phase: s.Phase, Status: s.Intent.Status, Guarded: s.Tasks.Has(task.Protected),
		Waiting:  s.Tasks.Has(task.Waiting) || s.Tasks.Has(task.Held) || s.Tasks.Has(task.OverBudget) || len(s.Tasks.OfBase()) > 0,
		Disputed: s.Tasks.Has(task.Disputed), Blocked: s.Tasks.Has(task.Asking),
	}
}

// edit changes the submitted text, type or risk. Another body drops the plan, which was
// of the old one, unless a person is being asked about it; another risk may change
// whether the plan needs an approval.
func (s person) edit(e *forge.Edit, by string) (forge.Decision, error) {
	if decision, err := s.place().Check(control.Edit, ""); err != nil {
		return decision, err
	}
	if e.Body != nil && s.Tasks.Begun() {
		return rule.Refuse("work on the intent has started; create a new intent instead")
	}
	in, declared := plan.Edited(s.Intent, e), s.Plan.Gate.Declared
	if e.Risk != nil {
		declared = *e.Risk
	}
	if err := in.Validate(); err != nil {
		return forge.Refused, err
	}
	body := in.Body != s.Intent.Body && s.Phase != control.Asking
	if in.Title != s.Intent.Title || in.Body != s.Intent.Body {
		in.Requesters = approval.Join(in.Requesters, by)
	}
	s.Intent, s.Plan.Gate.Declared = in, declared
	s.bound().Lapse(in.Requesters)
	s.Intent.Risk = forge.MaxRisk(declared, s.Plan.Gate.Judged)
	if body {
		// The plan is of another text than the one that is to be done.
		s.drop(nil)
		s.Plan.TurnTo(s.names(), plan.FirstStep(&s.Intent))
	}
	if s.Plan.Gate.Hash != "" {
		// An approval of the plan is one of the title and the risk as well: it
		// must name what there is now.
		s.Plan.Gate.Name(plan.Hash(&s.Intent, s.Tasks.Tasks, s.Plan.Children))
	}
	switch {
	case body && s.Phase != control.Admission:
		course(s).withdrawAll()
		course(s).startStep()
	case consent(s).first():
		course(s).startStep()
	case s.Phase == control.Approval:
		course(s).gate()
	}
	return forge.Applied, nil
}

// drop forgets the plan. With a wish, the next one is made by that.
func (s person) drop(wish *forge.Wish) {
	s.Tasks.Replace(s.DecidedBy, nil)
	s.Goal.Started = false
	s.Plan.Drop(wish)
}

// answer takes a person's answer to a question. With the last one the step that
// asked goes on, in the same session.
func (s person) answer(a *forge.Answer, by, event string) (forge.Decision, error) {
	in := &s.Intent
	if a.Index < 0 || a.Index >= len(in.Clarifications) {
		return rule.Refuse("question %d does not exist; the intent has %d", a.Index+1, len(in.Clarifications))
	}
	c := in.Clarifications[a.Index]
	switch {
	case a.Question != "" && a.Question != c.Question:
		return rule.Refuse("question %d has changed, it is now: %q", a.Index+1, c.Question)
	case c.Answer != nil && *c.Answer == a.Answer:
		return rule.Ignore("question %d has that answer already", a.Index+1)
	case c.Answer != nil:
		return rule.Refuse("question %d was answered already with %q", a.Index+1, *c.Answer)
	}
	if decision, err := s.place().Check(control.Answer, ""); err != nil {
		return decision, err
	}
	if strings.TrimSpace(a.Answer) == "" {
		return rule.Refuse("the answer is empty")
	}
	t := s.Tasks.Find(c.Task)
	if t != nil && t.Stage == task.Disputed {
		return s.arbitrate(t, a, by, event)
	}
	if decision, err := s.bound().CheckAnswer(by, s.endings(), t); err != nil {
		return decision, err
	}
	plan.Answer(in, a)
	s.join(approval.Words{By: by}, nil)
	if t != nil {
		s.tasks(func(x *task.Turn) { task.Said{Task: t}.AnsweredBy(x, x.Strategy.Step(task.Implementing)) })
		return forge.Applied, nil
	}
	if !in.NeedsClarification() {
		s.Reason = ""
		course(s).startStep()
	}
	return forge.Applied, nil
}

// endings says how a person ends the intent where it is, who need not be able to answer.
func (s person) endings() string {
	text := fmt.Sprintf("pfl-forge cancel %s ends the intent", s.key.Intent)
	if _, err := s.place().Check(control.Reject, ""); err == nil {
		text += fmt.Sprintf(", and so does pfl-forge reject %s", s.key.Intent)
	}
	return text
}

// stop ends the intent because a person says so. What was merged stays. A run
// that is over already then ended otherwise.
func (s person) stop(v control.Verb, status forge.Status, reason string) (forge.Decision, error) {
	if decision, err := s.place().Check(v, ""); err != nil {
		return decision, err
	}
	course(s).withdrawAll()
	s.tasks(func(x *task.Turn) { s.Tasks.EndAll(x, string(status)) })
	s.Reason = reason
	s.Intent.Status = status
	if s.Phase == control.Closed {
		course(s).endOtherwise()
		return forge.Applied, nil
	}
	course(s).close(false)
	return forge.Applied, nil
}

// cancelTask gives up one task because a person says so.
func (s person) cancelTask(c *forge.Cancel) (forge.Decision, error) {
	t := s.Tasks.Find(c.Task)
	if t == nil {
		return rule.Refuse("the intent has no task %q", c.Task)
	}
	if decision, err := s.place().Check(control.CancelTask, string(c.Task)); err != nil {
		return decision, err
	}
	if t.Ended() {
		return rule.Refuse("task %s is %s already", t.ID, t.Status)
	}
	s.withdrawTask(t)
	s.tasks(func(x *task.Turn) { t.Cancel(x, c.Reason) })
	return forge.Applied, nil
}

// pause holds commands back: of a task, of the intent, or, with a number, of the project.
func (s person) pause(p *forge.Pause) (forge.Decision, error) {
	if p.Number > 0 && s.Pause.Known(p.Number) {
		return rule.Ignore("pause %d of the project is known", p.Number)
	}
	if p.Number <= 0 {
		if decision, err := s.mayPause(p); err != nil {
			return decision, err
		}
	}
	s.Pause.Pause(p)
	if s.Phase != control.Closed {
		s.adjust(rule.Pause, p.Task, "%s", p.Reason)
		s.holdBack()
	}
	return forge.Applied, nil
}

// mayPause checks a person's pause. That of a project needs no check.
func (s person) mayPause(p *forge.Pause) (forge.Decision, error) {
	if decision, err := s.place().Check(control.Pause, string(p.Task)); err != nil {
		return decision, err
	}
	of := pause.Task{ID: p.Task}
	if t := s.Tasks.Find(p.Task); t != nil {
		of.Status, of.Ended = t.Status, t.Ended()
	}
	return s.Pause.Begin(of)
}

// holdBack stops the steps that a pause holds. Each is made ready to be issued
// again, from the point where it stops.
func (s person) holdBack() {
	x := s.turn()
	open, parked := s.Dispatch.HoldBack(&x, s.Policy.Reading)
	for _, a := range open {
		if t := s.Tasks.Find(a.Task); t != nil {
			t.Stopped(a.Step)
		}
	}
	for _, a := range slices.Concat(open, parked) {
		access(s).drop(a.Task)
		s.again(s.Tasks.Find(a.Task), a.Step)
	}
	s.commands(s.Dispatch.Commit)
	s.commands(s.Dispatch.Reserve)
}

// resume ends a pause, and sends the commands that it held.
func (s person) resume(r *forge.Resume) (forge.Decision, error) {
	if r.Number > 0 && r.Number <= s.Pause.Over {
		return rule.Ignore("the end of pause %d is known", r.Number)
	}
	if r.Number <= 0 {
		if decision, err := s.mayResume(r); err != nil {
			return decision, err
		}
	}
	s.Pause.Resume(r)
	if s.Phase != control.Closed {
		s.adjust(rule.Resume, r.Task, "")
		s.commands(s.Dispatch.Resume)
	}
	return forge.Applied, nil
}

// mayResume checks a person's end of a pause.
func (s person) mayResume(r *forge.Resume) (forge.Decision, error) {
	verb := control.Resume
	if r.Task != "" {
		verb = control.ResumeTask
	}
	if decision, err := s.place().Check(verb, string(r.Task)); err != nil {
		return decision, err
	}
	return s.Pause.End(r.Task, len(s.Obstacles.Held) > 0)
}
