// Package report tells readers what became of an intent: it folds the intent's journal once
// more, for facts that its state does not keep because no rule needs them, such as the output
// of a verify command or the gateway through which a person approved. Rules never read it.
//
// Who asks has the rights of one project, and gets nothing of another one: everything here is from
// the journal of one intent. What the merge queue of the project knows beside it, such as the order
// of others, is not told.
//
// Texts of agents and commands are as workers sent them, and so without secrets. Names of
// accounts at a gateway and its references are left out, because they are for auditors; the name of
// the gateway itself is told, because who approved and through whom belong together. Who commented,
// and where, is told: that is all that is known of a comment.
//
// A journal is folded anew for each reader. Nothing is kept beside it that
// could say something else.
package report

import (
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/document/asked"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/plan"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// Of returns the state of an intent, and the account of its work that readers
// get, both made of its whole journal.
func Of(key forge.Key, records []forge.Record) (forge.View, document.Work) {
	r := reader{intent: flow.NewIntent(key), products: map[forge.TaskID]*document.Product{}}
	r.fold(records)
	view := r.intent.View()
	return view, r.of(&view)
}

// reader is the state of a fold: the machine as it is before the next event, and everything that
// was found in those before.
type reader struct {
	intent *flow.Intent
	// products has the newest change of each task.
	products map[forge.TaskID]*document.Product
	verified []document.Verified
	decided  []document.Decided
	made     []Made
}

// before looks at an event that is applied next. The machine still has its
// questions and its open attempts.
func (r *reader) before(ev *forge.Event) {
	switch m := ev.Message.(type) {
	case *forge.Result:
		// The costs of one that came too late count, and what it found does not.
		if slices.Contains(r.intent.Dispatch.Outbox.Attempts(), m.Attempt) {
			r.result(ev, m)
		}
	case *forge.MergeEnded:
		r.merged(ev, m)
	default:
		if d, ok := r.decision(ev); ok {
			r.decided = append(r.decided, d)
		}
	}
}

// product returns the newest change of a task, to be written to.
func (r *reader) product(id forge.TaskID) *document.Product {
	if r.products[id] == nil {
		r.products[id] = new(document.Product)
	}
	return r.products[id]
}

// result takes the facts of a step.
func (r *reader) result(ev *forge.Event, m *forge.Result) {
	switch out := m.Output.(type) {
	case *forge.Implementation:
		if len(out.Files) > 0 { // an attempt that changed nothing leaves the change as it was
			r.change(m.Attempt, out.Base, out.Head, out.PatchID)
			*r.product(m.Attempt.Task) = document.Product{Changed: out.Files}
		}
	case *forge.Rebase:
		if !verdict.Asked(out.Verify) { // which is of a change that was put there before
			r.change(m.Attempt, out.Base, out.Head, out.PatchID)
		}
		r.rebased(ev, m.Attempt.Task, m.Attempt.Step, out)
	default:
	}
}

// merged takes the facts of a merge.
func (r *reader) merged(ev *forge.Event, m *forge.MergeEnded) {
	switch res := m.Result; {
	case res == nil:
	case res.Candidate != nil:
		r.rebased(ev, m.Task, forge.StepMerge, res.Candidate)
	case res.Outcome == forge.MergeDone || res.Verify != nil || res.Outcome == forge.MergeConflict:
		if res.PatchID != "" {
			r.product(m.Task).PatchID = res.PatchID
		}
		v := document.Verified{
			Task: m.Task, Step: forge.StepMerge, At: ev.At.UTC(), Base: res.Parent, Head: res.Commit, Tree: res.Tree, PatchID: res.PatchID,
		}
		if res.Outcome == forge.MergeConflict {
			v.Conflicts = res.Files
		}
		v.Add(res.Verify)
		r.verified = append(r.verified, v)
	}
}

// rebased takes a report about a change on the tip of the base branch. What ran
// because a reviewer asked for it stands with the review.
func (r *reader) rebased(ev *forge.Event, task forge.TaskID, step forge.Step, out *forge.Rebase) {
	if verdict.Asked(out.Verify) {
		return
	}
	if p := r.product(task); len(out.Conflicts) == 0 {
		p.PatchID = out.PatchID
		if len(out.Files) > 0 {
			p.Changed = out.Files
		}
	}
	v := document.VerifiedOf(task, step, out)
	v.At = ev.At.UTC()
	r.verified = append(r.verified, v)
}

// decision returns the wish of a person or system; false for messages of machines and workers.
func (r *reader) decision(ev *forge.Event) (d document.Decided, ok bool) {
	if ev.Anchor != "" {
		return d, false
	}
	d = document.Decided{By: ev.Actor, Via: through(ev), At: ev.At.UTC()}
	switch m := ev.Message.(type) {
	case *forge.Submit:
		d.What = "submit"
		switch {
		case m.Comments != nil:
			d.What, d.Reason = "comments", m.Comments.Ref+" by "+m.Comments.Account
		case r.intent.Plan.Taken.Text != "": // it was taken before
			d.What = "edit_at_origin"
		}
		if d.By == "" {
			d.By = m.Intent.Origin.System
		}
	case *forge.Edit:
		d.What = "edit"
		d.Fields = edited(m)
	case *forge.Approve:
		d.What, d.Plan = "approve", m.Plan
	case *forge.RequestChanges:
		d.What, d.Plan, d.Reason, d.Task = "request_changes", m.Hash, m.Words, m.Task
	case *forge.Reject:
		d.What, d.Reason = "reject", m.Reason
	case *forge.Answer:
		d.What, d.Question, d.Answer = "answer", m.Question, m.Answer
		if asked := r.intent.Intent.Clarifications; m.Index >= 0 && m.Index < len(asked) {
			d.Question, d.Task = asked[m.Index].Question, asked[m.Index].Task
		}
	case *forge.Retry:
		d.What, d.Reason, d.Budget, d.Plan = "retry", m.Instructions, m.BudgetUSD, m.Adopt
	case *forge.Cancel:
		d.What, d.Reason, d.Task = "cancel", m.Reason, m.Task
	case *forge.Pause:
		d.What, d.Reason, d.Task = "pause", m.Reason, m.Task
		return d, m.Number == 0
	case *forge.Resume:
		d.What, d.Task = "resume", m.Task
		return d, m.Number == 0
	default:
		return d, false
	}
	return d, true
}

// edited returns the names of the fields that an edit changes, in their order.
func edited(m *forge.Edit) (names []string) {
	for _, f := range []struct {
		name  string
		given bool
	}{{"title", m.Title != nil}, {"body", m.Body != nil}, {"type", m.Type != nil}, {"risk", m.Risk != nil}} {
		if f.given {
			names = append(names, f.name)
		}
	}
	return names
}

// through returns the gateway that an event came through; empty if its author
// came without one. Only events of a gateway have an account.
func through(ev *forge.Event) string {
	if ev.Account == "" {
		return ""
	}
	return ev.Via
}

// candidates returns the changes that wait for a person's word.
func candidates(set *task.Set) (list []document.Candidate) {
	waits := map[task.Stage]forge.Waiting{task.Protected: forge.WaitingApproval, task.Disputed: forge.WaitingClarification}
	for _, t := range set.Tasks {
		if waits[t.Stage] == "" {
			continue
		}
		one := document.Candidate{Task: t.ID, Title: t.Title, Waiting: waits[t.Stage], Reason: t.Failure}
		if c := t.Candidate; c != nil {
			one.Base, one.Head, one.PatchID = c.Base, c.Head, c.PatchID
		}
		list = append(list, one)
	}
	return list
}

// of returns the work of an intent in the state that the reader has come to.
func (r *reader) of(v *forge.View) document.Work {
	w := document.Work{Verified: r.verified, Decisions: r.decided}
	for i := range v.Tasks {
		t := &v.Tasks[i]
		w.PlanTasks = append(w.PlanTasks, document.TaskOf(t, *r.product(t.ID)))
		for _, review := range document.ReviewsOf(v, t.ID) {
			review.Task = t.ID
			w.Reviews = append(w.Reviews, review)
		}
	}
	w.Candidates = candidates(&r.intent.Tasks)
	for i := range v.Children {
		c := &v.Children[i]
		w.Parts = append(w.Parts, document.Part{ID: c.ID, Title: c.Title, Body: c.Body, Type: c.Type, Risk: c.Risk, DependsOn: c.DependsOn})
	}
	told := 0
	for i := range v.History {
		told = v.History[i].Run
		w.AddRun(told, v.History[i].StepResults, v.History[i].Adjustments)
	}
	// The steps of a run that has ended stay in its state until the next one begins.
	if r.intent.Run > told {
		w.AddRun(r.intent.Run, r.intent.History.Steps, r.intent.History.Adjustments)
	}
	w.Costs = document.CostsOf(w.Steps)
	w.Asked = r.asked(v)
	if t := &r.intent.Plan.Taken; t.Text != "" {
		w.Text = &asked.Text{Taken: t.Text, Later: t.Later}
		if t.Later != "" {
			w.Text.At = new(t.At.UTC())
		}
	}
	if plan.Hears(r.intent.DecidedBy) { // who tells of comments goes by that
		w.Comments = &asked.Heard{Newest: asked.CommentsOf(v.Summary.Comments), Told: append([]string{}, r.intent.Plan.Heard.Told...)}
	}
	return w
}

// asked returns all that is approved while the request itself waits for that; nil otherwise.
func (r *reader) asked(v *forge.View) (list []asked.Part) {
	gate := &r.intent.Plan.Gate
	if v.Summary.Waiting != forge.WaitingApproval || v.Summary.Plan != gate.Text(r.intent.DecidedBy, &v.Intent) {
		return nil
	}
	for _, p := range gate.Asked(r.intent.DecidedBy, &v.Intent) {
		if texts := p.Texts(); len(texts) > 0 {
			list = append(list, asked.Part{Name: p.Name, Texts: texts})
		}
	}
	return list
}
