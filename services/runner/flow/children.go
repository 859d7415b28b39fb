package flow

import (
	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/budget"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/control"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/plan"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// split submits the children that have not begun, and retries those that
// failed. A child that a person rejected or cancelled stays as it is.
func (s course) split() {
	children := s.Plan.Children
	s.Phase = control.Children
	s.Intent.Status = forge.StatusExecuting
	s.adjust(rule.Split, "", "%s", plan.JoinIDs(children.IDs(), ", "))
	for _, c := range children {
		switch {
		case c.Run == 0:
			in := c.Intent
			in.CreatedAt = s.now
			in.BudgetUSD = budget.Own(&s.Intent, s.Policy.Budget, s.Foreign) // so that it knows of a budget; the project keeps it for all of them
			s.sendToChild(c, forge.Event{Message: &forge.Submit{Intent: in, Preapproved: s.Plan.Gate.Approved != nil || s.Plan.Gate.Vouched}})
		case c.Status.Failed():
			c.Status = ""
			s.sendToChild(c, forge.Event{Message: s.childRetry()})
		}
	}
	s.sumUp()
}

// childRetry returns the retry of a child. With the words of people it gets
// their authors, who may not approve what comes of them.
func (s course) childRetry() *forge.Retry {
	r := &forge.Retry{Instructions: s.Instructions, BudgetUSD: budget.Own(&s.Intent, s.Policy.Budget, s.Foreign)}
	if r.Instructions != "" {
		r.Requesters = s.Intent.Requesters
	}
	return r
}

// childChanged takes the news that a child began or ended.
func (s answers) childChanged(c *forge.ChildChanged) (forge.Decision, error) {
	children := s.Plan.Children
	child, err := children.Changed(s.key.Intent, c)
	if err != nil {
		return forge.Ignored, err
	}
	s.Dispatch.Outbox.Answered(childKey(child.Intent.ID))
	if child.Status != "" {
		s.Dispatch.Outbox.Answered(raiseKey(child.Intent.ID))
	}
	switch {
	case s.Phase == control.Children:
		course(s).sumUp()
	case s.Phase == control.Closed && s.Intent.Status.Failed() && child.Status != "":
		course(s).correct(course(s).childrenStatus(), children.Reason())
	}
	return forge.Applied, nil
}

// childrenStatus sums up the children.
func (s course) childrenStatus() forge.Status {
	return plan.StatusOf(s.Plan.Children.Done(), len(s.Plan.Children))
}

// sumUp ends the run when all children have ended.
func (s course) sumUp() {
	if s.Plan.Children.Ended() {
		s.Reason = s.Plan.Children.Reason()
		s.finish(s.childrenStatus())
	}
}
