package flow

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/control"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/dispatch"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/obstacle"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/plan"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/retry"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// Summary is the state as lists show it.
func (s *Intent) Summary() forge.Summary {
	in := &s.Intent
	sum := forge.Summary{
		Key: s.key, Title: in.Title, Type: in.Type, Status: in.Status, Risk: in.Risk,
		Source: in.Source, Attributes: in.Attributes, RunSummary: forge.RunSummary{
			Run:       s.Run,
			Open:      s.Dispatch.Outbox.Attempts(),
			Idle:      s.Dispatch.Outbox.Idle(view{s}.looks),
			Goal:      s.Goal.Summary(in, s.goalTask(), s.Phase == control.Closed),
			TaskCount: len(s.Tasks.Tasks),
			TasksDone: s.Tasks.Done(),
		}, Reason: s.Reason, Plan: s.Plan.Gate.Hash,
		Usage:     s.History.Usage,
		CreatedAt: in.CreatedAt, UpdatedAt: s.UpdatedAt,
		Parent: in.Parent, Requester: plan.Publisher(in), Requesters: in.Requesters, Approval: view{s}.approval(),
		Children: s.Plan.Children.Summaries(),
	}
	if s.Phase != control.Closed {
		sum.Outline, sum.RelevantFiles = plan.Titles(s.Tasks.Tasks, s.Plan.Children), s.Tasks.Files(maxPlannedFiles)
	}
	sum.Waiting, sum.Activity = view{s}.waiting()
	if sum.Waiting == forge.WaitingPaused {
		sum.Reason = cmp.Or(s.Pause.Why(), sum.Reason)
	}
	if (consent{s}).first() {
		sum.Plan = s.Plan.Gate.Text(s.DecidedBy, &s.Intent)
	}
	if changes := s.Tasks.At(task.Protected); len(changes) > 0 {
		sum.Plan = task.HashChanges(changes)
	}
	if s.Phase == control.Approval {
		sum.Reason = consent{s}.rules().Reason(s.Reason, consent{s}.given())
	}
	strategy := s.strategy()
	for _, t := range s.Tasks.Tasks {
		switch t.Stage {
		case task.Done, task.Pending:
			continue
		case task.Waiting, task.Held, task.OverBudget, task.Asking, task.Red:
			sum.Reason = t.Failure
		case task.Disputed:
			sum.Reason = t.Failure
			if stuck := consent(view{s}).rules().Stuck(); stuck != "" {
				sum.Reason += "; to approve it, " + stuck
			}
		case task.Protected:
			sum.Reason = consent{s}.rules().Reason(t.Failure, consent{s}.given())
		default:
		}
		ts := t.Summary(strategy)
		ts.Paused = !t.Ended() && s.Pause.Holds(t.ID)
		sum.Tasks = append(sum.Tasks, ts)
	}
	if obstacle.Asks(sum.Activity) || sum.Waiting == forge.WaitingBase && s.Obstacles.Keeps {
		sum.Reason, _ = view{s}.outside()
	}
	if len(s.Plan.Heard.Told) > 0 {
		sum.Comments = new(s.Plan.Heard.Newest)
	}
	if s.Phase != control.Closed {
		sum.Reason = s.Plan.Taken.Beside(sum.Reason, in.Origin.System)
	}
	return sum
}

// approval returns who approved, and whose approval is needed. While nothing waits, those
// are shown who approved the plan and the changes that are under way.
func (s view) approval() forge.Approval {
	if s.Phase != control.Approval && !s.Tasks.Has(task.Protected) {
		return forge.Approval{By: consent(s).names(s.Tasks.Tasks...)}
	}
	rules := consent(s).rules()
	return forge.Approval{By: approval.Names(consent(s).given()), Needed: rules.Needed(), Barred: rules.Barred()}
}

// waiting says what the intent waits for a person to do, and what goes on.
func (s view) waiting() (forge.Waiting, string) {
	switch {
	case s.Intent.Status.Failed():
		return forge.WaitingFailed, ""
	case s.Phase == control.Asking, s.Tasks.Has(task.Asking), s.Tasks.Has(task.Disputed):
		return forge.WaitingClarification, "needs your answers"
	case consent(s).first():
		return forge.WaitingApproval, "needs your approval to be analyzed"
	case s.Phase == control.Approval:
		return forge.WaitingApproval, "needs your approval"
	case s.Tasks.Has(task.Protected):
		return forge.WaitingApproval, "needs your approval of its changes"
	case s.Phase != control.Closed && s.Pause.Whole():
		return forge.WaitingPaused, "paused"
	case s.Tasks.Has(task.Waiting):
		return forge.WaitingDirty, "waits for your files"
	case s.Tasks.Has(task.Held):
		return forge.WaitingPull, "waits for you at its pull request"
	case s.overBudgetNow() && !s.Policy.Reading:
		return forge.WaitingBudget, "waits for budget"
	// After what waits for this intent alone: a person who settles that comes back to the account.
	case s.Phase != control.Closed && s.asksForAccount():
		why, _ := s.outside()
		return obstacle.Asking(why, s.DecidedBy.Has(rules.PausedLook) && s.Tasks.BaseHeld(s.Pause.Holds))
	case len(s.Dispatch.Held) > 0:
		return forge.WaitingPaused, rule.Count(len(s.Dispatch.Held), "task") + " paused"
	case len(s.Tasks.OfBase()) > 0 && !s.Obstacles.Keeps: // one that is paused does not look
		return forge.WaitingBase, "waits for the base branch to pass"
	}
	return "", s.activity() + retry.Unable(s.Dispatch.Outbox.Attempts(), s.counter, s.Obstacles.Lacks > 0)
}

// outside returns, for a person, what the intent waits for that is outside of
// the project, and whether a person is told of that. A change in the merge
// queue waits for the origin like the steps that are held for it.
func (s view) outside() (why string, person bool) {
	why, person = s.Obstacles.Why(s.UpdatedAt)
	// An intent that looks waits all the same, for those who are told.
	if why != "" || !s.Tasks.Has(task.Merging) && len(s.Tasks.OfBase()) == 0 {
		return why, person
	}
	for _, of := range []string{forge.GitOrigin, forge.GitPush, forge.GitBase} {
		if c := s.Obstacles.Find(of, s.UpdatedAt); c != nil {
			return obstacle.Words(c), true
		}
	}
	return "", false
}

// asksForAccount reports whether this intent asks the person about an account.
func (s view) asksForAccount() bool {
	_, person := s.outside()
	return s.Obstacles.Asks && person
}

// looks reports whether a timer only looks now and then whether a person has
// mended the base branch.
func (s view) looks(timer string) bool {
	a, ok := dispatch.Parked(timer)
	t := s.Tasks.Find(a.Task)
	return ok && t != nil && t.Stage == task.Red
}

// activity returns, for a person, the part of the work that goes on by itself.
func (s view) activity() string {
	parked := s.Dispatch.Outbox.Earliest(dispatch.ParkPrefix)
	waits, person := s.outside()
	switch {
	case person && (len(s.Dispatch.Outbox.Commands) == 0 || s.Obstacles.Lacks > 0):
		return "waits: " + waits
	case s.Phase == control.Children:
		return fmt.Sprintf("%d of %d child intents done", s.Plan.Children.Done(), len(s.Plan.Children))
	case s.Phase == control.Depending:
		return "waits for " + plan.JoinIDs(s.Plan.Depends.Open(), ", ")
	case len(s.Dispatch.Outbox.Commands) == 0 && !parked.IsZero():
		return "tries again at " + parked.UTC().Format(time.DateTime) + " UTC"
	case s.Phase == control.Working && s.goalTask() != nil:
		g := s.Goal.Summary(&s.Intent, s.goalTask(), false)
		return fmt.Sprintf("iteration %d of %d, %d of %d criteria met", g.Used, g.Most, g.Met, g.Criteria)
	case s.Phase == control.Working:
		return fmt.Sprintf("%d of %d tasks done", s.Tasks.Done(), len(s.Tasks.Tasks))
	case s.Phase == control.Closed:
		return ""
	}
	return string(s.Phase)
}

// View is everything that is known of the intent.
func (s *Intent) View() forge.View {
	v := forge.View{
		Summary: s.Summary(), Intent: s.Intent,
		History: slices.Clone(s.History.Runs), Observations: slices.Clone(s.History.Observations), Audit: s.Plan.Audit,
	}
	for _, t := range s.Tasks.Tasks {
		v.Tasks = append(v.Tasks, t.Task)
		v.Reviews = append(v.Reviews, t.Reviews...)
	}
	v.Goal = s.Goal.View(&s.Intent, s.goalTask(), s.Phase == control.Closed, s.Reason)
	for _, c := range s.Plan.Children {
		v.Children = append(v.Children, c.Intent)
	}
	return v
}
