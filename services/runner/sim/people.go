package sim

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// people submit intents, answer, change their minds, and push to the base branch.
type people struct {
	ids       []forge.IntentID
	submitted int
	said      int
	outsiders bool // somebody else pushes to the base branch
}

func (p *people) some(w *world) forge.IntentID {
	if w.rng.IntN(10) == 0 {
		return "nobody-knows"
	}
	return p.ids[w.rng.IntN(len(p.ids))]
}

func (w *world) person(ev forge.Event) {
	w.people.said++
	ev.ID = fmt.Sprintf("person/%d", w.people.said)
	w.inputs = append(w.inputs, &input{Event: ev})
	w.log("a person says to %s: %s", ev.To, describe(ev))
}

// submit sends the next intent, now and then twice.
func (w *world) submit() bool {
	p := &w.people
	if p.submitted == len(p.ids) {
		return false
	}
	id := p.ids[p.submitted]
	p.submitted++
	in := forge.Intent{
		ID: id, Project: project, Title: "title of " + string(id), Body: "b", Source: forge.SourceHuman,
		Origin: forge.Origin{System: "draft", EventID: string(id)},
	}
	if w.rng.IntN(12) == 0 {
		in.Type = []string{forge.TypeAudit, forge.TypeSkillExtraction}[w.rng.IntN(2)]
	}
	if w.rng.IntN(8) == 0 {
		in.Criteria, in.Goal = []string{"one", "two"}, &forge.GoalOptions{MaxIterations: 1 + w.rng.IntN(maxIterations)}
	}
	if w.rng.IntN(5) == 0 {
		in.Source = forge.SourceSystem
	}
	if w.rng.IntN(4) == 0 {
		in.DependsOn = []forge.IntentID{p.ids[w.rng.IntN(p.submitted)]}
		if in.DependsOn[0] == id {
			in.DependsOn = nil
		}
	}
	ev := forge.Event{To: forge.Key{Project: project, Intent: id}, Submit: &forge.Submit{Intent: in}}
	w.person(ev)
	if w.chance(4) {
		w.person(ev)
	}
	return true
}

// help does what some intent waits for a person to do. willing people never
// refuse; they are those of the quiet end.
func (w *world) help(willing bool) bool {
	var waiting []*forge.Summary
	for _, key := range w.keys {
		if s := w.summary(key); s.Waiting != "" && (!willing || s.Waiting != forge.WaitingFailed) {
			waiting = append(waiting, s)
		}
	}
	lane := forge.Key{Project: project}
	if willing && w.summary(lane).Waiting == forge.WaitingPaused {
		w.person(forge.Event{To: lane, Resume: &forge.Resume{}}) // before anything else: intents cannot go on alone
		return true
	}
	if len(waiting) == 0 {
		return false
	}
	s := waiting[w.rng.IntN(len(waiting))]
	ev := forge.Event{To: s.Key}
	switch {
	case s.Waiting == forge.WaitingPaused:
		ev.Resume = w.resumption(s)
	case !willing && w.rng.IntN(12) == 0:
		ev.Reject = &forge.Reject{Reason: "no"}
	case s.Waiting == forge.WaitingApproval:
		ev.Approve = &forge.Approve{Plan: s.Plan}
	case s.Waiting == forge.WaitingClarification:
		ev.Answer = &forge.Answer{Index: w.rng.IntN(2), Answer: "so"}
	case s.Waiting == forge.WaitingBudget:
		ev.Retry = w.raise(s, willing)
	default:
		ev.Retry = &forge.Retry{}
	}
	w.person(ev)
	return true
}

// resumption goes on with what is paused, all of it or one task.
func (w *world) resumption(s *forge.Summary) *forge.Resume {
	if s.Key.IsLane() {
		return &forge.Resume{}
	}
	for _, t := range s.Tasks {
		if t.Paused && w.chance(2) {
			return &forge.Resume{Task: t.ID}
		}
	}
	return &forge.Resume{}
}

// meddle is what people do unasked.
func (w *world) meddle() bool {
	if len(w.keys) == 0 {
		return false
	}
	key := w.keys[w.rng.IntN(len(w.keys))]
	ev := forge.Event{To: key}
	if key.IsLane() {
		switch w.rng.IntN(8) {
		case 0:
			ev.Cancel = &forge.Cancel{Reason: "stop it all"}
		case 1, 2, 3:
			ev.Reflect = &forge.Reflect{}
		case 4, 5:
			ev.Pause = &forge.Pause{}
		default:
			ev.Resume = &forge.Resume{}
		}
		w.person(ev)
		return true
	}
	task := forge.NewTaskID(key.Intent, 1+w.rng.IntN(3))
	switch w.rng.IntN(10) {
	case 6:
		ev.Cancel = &forge.Cancel{Task: task}
	case 7:
		ev.Pause = &forge.Pause{Reason: "wait"}
	case 8:
		ev.Pause = &forge.Pause{Task: task}
	case 9:
		ev.Resume = &forge.Resume{}
	case 0:
		ev.Cancel = &forge.Cancel{Reason: "enough"}
	case 1:
		title := "another title"
		ev.Edit = &forge.Edit{Title: &title}
	case 2:
		body := fmt.Sprintf("another body %d", w.people.said)
		ev.Edit = &forge.Edit{Body: &body}
	case 3:
		ev.Approve = &forge.Approve{Plan: "0123"}
	case 4:
		ev.Answer = &forge.Answer{Index: w.rng.IntN(3), Answer: "late"}
	default:
		ev.Retry = &forge.Retry{Instructions: "harder"}
	}
	w.person(ev)
	return true
}

// pushed is somebody else's commit on the base branch.
func (w *world) pushed() bool {
	if !w.people.outsiders || !w.faults || w.rng.IntN(6) > 0 {
		return false
	}
	c := commit{id: w.repo.id(), files: w.repo.pick(w.rng), parent: w.repo.tip()}
	w.repo.main = append(w.repo.main, c)
	w.log("somebody pushes %s, changing %v", c.id, c.files)
	return true
}

func describe(ev forge.Event) string {
	switch {
	case ev.Submit != nil:
		return fmt.Sprintf("submit %s after %v", ev.Submit.Intent.Source, ev.Submit.Intent.DependsOn)
	case ev.Result != nil:
		return "result " + ev.Result.Attempt.String() + ": " + describeResult(ev.Result)
	case ev.Approve != nil:
		return "approve " + ev.Approve.Plan
	case ev.Answer != nil:
		return fmt.Sprintf("answer %d", ev.Answer.Index)
	case ev.Edit != nil, ev.Retry != nil, ev.Cancel != nil, ev.Reject != nil:
		names := []string{"edit", "retry", "cancel", "reject"}
		is := []bool{ev.Edit != nil, ev.Retry != nil, ev.Cancel != nil, ev.Reject != nil}
		return names[slices.Index(is, true)]
	case ev.Timer != nil:
		return "timer " + ev.Timer.Key
	case ev.Pause != nil:
		return fmt.Sprintf("pause %d %s", ev.Pause.Number, ev.Pause.Task)
	case ev.Resume != nil:
		return fmt.Sprintf("resume %d %s", ev.Resume.Number, ev.Resume.Task)
	case ev.Child != nil:
		return fmt.Sprintf("part %s: run %d %s, end %d", ev.Child.Intent, ev.Child.Run, ev.Child.Status, ev.Child.Number)
	}
	return ev.ID
}

func describeResult(r *forge.Result) string {
	switch {
	case r.Failure != nil:
		return "failure " + string(r.Failure.Reason)
	case r.Started:
		return "started"
	case r.Analysis != nil:
		a := r.Analysis
		return fmt.Sprintf("%d tasks, %d parts, %d questions, risk %s, after %v %s",
			len(a.Tasks), len(a.Children), len(a.Clarifications), a.Risk, a.DependsOn, a.Insufficient)
	case r.Implementation != nil:
		return fmt.Sprintf("%d commits, %s on %s, changing %v", r.Implementation.Commits, r.Implementation.Head, r.Implementation.Base, r.Implementation.Files)
	case r.Rebase != nil:
		return fmt.Sprintf("%s on %s, conflicts %v", r.Rebase.Head, r.Rebase.Base, r.Rebase.Conflicts)
	case r.Review != nil:
		return string(r.Review.Verdict) + " " + r.Review.Head
	case r.Integration != nil:
		return string(r.Integration.Outcome) + " " + r.Integration.Commit
	case r.Reflection != nil:
		return fmt.Sprintf("%d proposals, read %v", len(r.Reflection.Proposals), r.Reflection.Read)
	}
	return "nothing"
}
