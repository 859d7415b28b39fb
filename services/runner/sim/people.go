package sim

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/facts"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/trunk"
)

// people submit intents, answer, change their minds, and push to the base branch.
type people struct {
	// ids are the intents of this run; the first submitted ones are submitted already.
	ids []forge.IntentID
	// submitted counts the intents that were submitted.
	submitted int
	// sent counts the events, for their ids.
	sent int
	// outsiders says that commits of others are pushed to the base branch.
	outsiders bool
	// fickle says that people change their minds often: they edit, cancel, pause and retry intents
	// that do not wait for them.
	fickle bool
}

// anyIntent returns one of the intents, or now and then one that does not
// exist: analyses name dependencies, and may be wrong.
func (p *people) anyIntent(w *world) forge.IntentID {
	if w.rng.IntN(10) == 0 {
		return "nobody-knows"
	}
	return p.ids[w.rng.IntN(len(p.ids))]
}

// send puts a person's event on the stream.
func (w *world) send(ev forge.Event) {
	w.people.sent++
	if ev.Actor == "" {
		ev.Actor = w.anyone()
	}
	ev.ID = fmt.Sprintf("person/%d", w.people.sent)
	w.inputs = append(w.inputs, &input{Event: ev})
	w.log("a person says to %s: %s", ev.To, facts.Describe(ev))
}

// anyone returns the name of a person.
func (w *world) anyone() string { return fmt.Sprintf("p%d", w.rng.IntN(4)) }

// approver returns a person to approve: any, unless they are willing to find one who may, and has
// not approved yet.
func (w *world) approver(s *forge.Summary, willing bool) string {
	by := w.anyone()
	if willing && slices.Contains(slices.Concat(s.Approval.By, s.Approval.Barred), by) {
		return fmt.Sprintf("newcomer%d", w.people.sent)
	}
	return by
}

// submit sends the next intent, now and then twice. It returns false if all are submitted.
func (w *world) submit() bool {
	p := &w.people
	if p.submitted == len(p.ids) {
		return false
	}
	id := p.ids[p.submitted]
	p.submitted++
	in := forge.Intent{
		ID: id, Project: project, Settings: forge.Settings{
			Title: "title of " + string(id), Body: "b",
		}, Source: forge.SourceHuman,
		Origin: forge.Origin{System: "draft", EventID: string(id)},
	}
	if w.rng.IntN(12) == 0 {
		in.Type = []string{forge.TypeAudit, forge.TypeSkillExtraction}[w.rng.IntN(2)]
	}
	if goal := w.rng.IntN(8) == 0; (goal || w.workers.train.alone && w.rng.IntN(2) == 0) && in.Type == "" { // beside another type they are refused
		w.criteria(&in)
		in.Goal = &forge.GoalOptions{MaxIterations: 1 + w.rng.IntN(maxIterations)}
	}
	if w.rng.IntN(5) == 0 {
		in.Source = forge.SourceSystem
	}
	if w.rng.IntN(12) == 0 {
		in.Risk = forge.RiskHigh
	}
	if w.rng.IntN(4) == 0 {
		in.DependsOn = []forge.IntentID{p.ids[w.rng.IntN(p.submitted)]}
		if in.DependsOn[0] == id {
			in.DependsOn = nil
		}
	}
	if facts.Recipes(w.seed) && in.Type == "" && in.Goal == nil {
		in.Recipe = "fmt"
	}
	ev := forge.Event{To: forge.Key{Project: project, Intent: id}, Actor: w.anyone()}
	in.Requesters = []forge.Identity{{Name: ev.Actor, Proven: in.Source == forge.SourceHuman}}
	ev.Message = &forge.Submit{Intent: in}
	w.send(ev)
	if w.chance(4) {
		w.send(ev)
	}
	return true
}

// help takes a decision that some intent waits for, and returns false if none
// waits. Willing people never refuse, and leave alone what failed; they are
// those of the time without faults, in which everything has to come to rest.
func (w *world) help(willing bool) bool {
	var waiting []*forge.Summary
	for _, key := range w.keys {
		if s := w.summary(key); s.Waiting != "" && (!willing || s.Waiting != forge.WaitingFailed && s.Waiting != forge.WaitingBase) {
			waiting = append(waiting, s)
		}
	}
	project := forge.Key{Project: project}
	if willing && w.summary(project).Waiting == forge.WaitingPaused {
		w.send(forge.Event{To: project, Message: &forge.Resume{}}) // before anything else: intents cannot go on alone
		return true
	}
	if len(waiting) == 0 {
		return false
	}
	s := waiting[w.rng.IntN(len(waiting))]
	ev := forge.Event{To: s.Key}
	switch {
	case s.Waiting == forge.WaitingPaused && forge.Outside(s.Reason):
		ev.To, ev.Message = project, &forge.Resume{}
	case s.Waiting == forge.WaitingPaused:
		ev.Message = w.resumption(s)
	case !willing && w.rng.IntN(12) == 0:
		ev.Message = &forge.Reject{Reason: "no"}
	case s.Waiting == forge.WaitingApproval:
		ev.Actor, ev.Message = w.approver(s, willing), &forge.Approve{Plan: s.Plan}
	case s.Waiting == forge.WaitingClarification:
		ev.Actor, ev.Message = w.answer(s, willing)
	case s.Waiting == forge.WaitingBudget:
		ev.To.Intent, ev.Message = w.raise(s, willing)
	case s.Waiting == forge.WaitingBase && w.rng.IntN(2) == 0:
		ev.Message = &forge.Retry{Instructions: "fix the base"}
	default:
		ev.Message = &forge.Retry{}
	}
	w.send(ev)
	return true
}

// wish has a person ask for changes of something that waits, and returns false if none does.
func (w *world) wish() bool {
	for i := 0; w.wishes != nil && i < len(w.keys); i++ {
		if key := w.keys[i]; !key.IsProject() {
			if ev := w.wishes.Ask(w.view(key), w.faults); ev != nil {
				w.send(*ev)
				return true
			}
		}
	}
	return false
}

// publish has the publisher of an intent say more about it, and returns false if none does.
func (w *world) publish() bool {
	ev := w.publishers.Say(w.keys, w.now)
	if ev != nil {
		w.send(*ev)
	}
	return ev != nil
}

// openQuestion returns the index of a question of an intent that is not answered, or, as of a
// person who looks at an old list, of any.
func (w *world) openQuestion(key forge.Key) int {
	list := w.view(key).Intent.Clarifications
	if i := slices.IndexFunc(list, func(c forge.Clarification) bool { return c.Answer == nil }); i >= 0 && !w.chance(6) {
		return i
	}
	return w.rng.IntN(2)
}

// resumption returns the event that resumes a paused intent or project, or one
// paused task.
func (w *world) resumption(s *forge.Summary) *forge.Resume {
	if s.Key.IsProject() {
		return &forge.Resume{}
	}
	for _, t := range s.Tasks {
		if t.Paused && w.chance(2) {
			return &forge.Resume{Task: t.ID}
		}
	}
	return &forge.Resume{}
}

// meddle sends something that no intent waits for: an edit, a cancel, a late answer.
func (w *world) meddle() {
	if len(w.keys) == 0 {
		return
	}
	key := w.keys[w.rng.IntN(len(w.keys))]
	ev := forge.Event{To: key}
	if key.IsProject() {
		switch w.rng.IntN(8) {
		case 0:
			ev.Message = &forge.Cancel{Reason: "stop it all"}
		case 1, 2, 3:
			ev.Message = &forge.Reflect{}
		case 4, 5:
			ev.Message = &forge.Pause{}
		default:
			ev.Message = &forge.Resume{}
		}
		w.send(ev)
		return
	}
	task := forge.NewTaskID(key.Intent, 1+w.rng.IntN(3))
	switch w.rng.IntN(10) {
	case 6:
		ev.Message = &forge.Cancel{Task: task}
	case 7:
		ev.Message = &forge.Pause{Reason: "wait"}
	case 8:
		ev.Message = &forge.Pause{Task: task}
	case 9:
		ev.Message = &forge.Resume{}
	case 0:
		ev.Message = &forge.Cancel{Reason: "enough"}
	case 1:
		title := "another title"
		ev.Message = &forge.Edit{Title: &title}
	case 2:
		body := fmt.Sprintf("another body %d", w.people.sent)
		ev.Message = &forge.Edit{Body: &body}
	case 3:
		ev.Message = &forge.Approve{Plan: "0123"}
	case 4:
		ev.Message = &forge.Answer{Index: w.rng.IntN(3), Answer: "late"}
	default:
		ev.Message = &forge.Retry{Instructions: "harder"}
	}
	w.send(ev)
}

// pushed puts a commit on the base branch that is not ours, now and then.
func (w *world) pushed() {
	// In a crowded world people push also while nothing else goes wrong.
	if !w.people.outsiders || !w.faults && !w.workers.train.crowded || w.rng.IntN(6) > 0 {
		return
	}
	c := trunk.Commit{ID: w.repo.NewID(), Files: w.repo.Pick(w.rng), Parent: w.repo.Tip()}
	w.repo.Main = append(w.repo.Main, c)
	w.log("somebody pushes %s, changing %v", c.ID, c.Files)
}
