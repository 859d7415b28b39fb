package flow

import (
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// The lane integrates one change at a time, oldest request first. A task that
// lost a conflict asks for precedence on its files. While it has it, no sibling
// lands a change to them; so of many tasks that change one file each is made
// again at most once, and in all each is made at most twice.
//
// Precedence is given in the order in which it was asked for, and only when it
// overlaps with none that is in force, so tasks never wait for each other in a
// circle. A change made again may turn out to touch files that somebody else
// has precedence on: the older precedence wins. If such a change, or one to
// files outside what was reserved, makes the holder conflict once more, it is
// given precedence over everything; after that only somebody outside can
// conflict with it.

// account returns what the lane knows of the task, or nil if the request is
// of a run that is not active; and whether the request is newer than all before.
func (l *Lane) account(id forge.IntentID, run int, t forge.TaskID, number int) (*account, bool) {
	m := l.member(id)
	if m == nil || m.run != run {
		return nil, false
	}
	a := m.tasks[t]
	if a == nil {
		a = &account{}
	}
	return a, number > a.number
}

// renew notes a task's newest request.
func (l *Lane) renew(id forge.IntentID, t forge.TaskID, a *account, number int) {
	a.number = number
	l.intents[id].tasks[t] = a
}

// drop removes requests, and precedence with them.
func (l *Lane) drop(which func(*request) bool) {
	l.queue = slices.DeleteFunc(l.queue, which)
	l.waiting = slices.DeleteFunc(l.waiting, which)
	l.held = slices.DeleteFunc(l.held, which)
}

func (l *Lane) reserve(id forge.IntentID, r *forge.Reserve) (forge.Decision, error) {
	a, isNew := l.account(id, r.Run, r.Task, r.Number)
	switch {
	case a == nil:
		return ignore("run %d of %q is not active", r.Run, id)
	case !isNew:
		if r.Number == a.number {
			l.answerReserve(id, r, a)
		}
		return ignore("request %d of %s is known already", r.Number, r.Task)
	}
	l.renew(id, r.Task, a, r.Number)
	if a.integrated() {
		l.tellLanded(id, a.landed)
		return forge.Applied, nil
	}
	next := &request{intent: id, task: r.Task, number: r.Number, files: r.Files, reserve: *r}
	i := slices.IndexFunc(l.held, func(h *request) bool { return h.task == r.Task })
	if i >= 0 {
		h := l.held[i]
		if h.all || !overlap(h.since, r.Conflicts) {
			a.denied = r.Number
			l.tellReserved(id, r, false)
			return forge.Applied, nil
		}
		next.all = true
	}
	l.drop(func(q *request) bool { return q.task == r.Task })
	l.waiting = append(l.waiting, next)
	l.pump()
	return forge.Applied, nil
}

func (l *Lane) answerReserve(id forge.IntentID, r *forge.Reserve, a *account) {
	if a.denied == r.Number {
		l.tellReserved(id, r, false)
	} else if slices.ContainsFunc(l.held, func(h *request) bool { return h.task == r.Task && h.number == r.Number }) {
		l.tellReserved(id, r, true)
	}
}

func (l *Lane) tellReserved(id forge.IntentID, r *forge.Reserve, grant bool) {
	answer := granted(r)
	answer.Granted = grant
	l.say(id, reservedID(r), forge.Event{Message: answer})
}

func reservedID(r *forge.Reserve) string { return fmt.Sprintf("reserved/%s/%d", r.Task, r.Number) }

func granted(r *forge.Reserve) *forge.Reserved {
	return &forge.Reserved{Task: r.Task, Number: r.Number, Granted: true}
}

func (l *Lane) land(id forge.IntentID, r *forge.Land) (forge.Decision, error) {
	a, isNew := l.account(id, r.Run, r.Task, r.Number)
	switch {
	case a == nil:
		return ignore("run %d of %q is not active", r.Run, id)
	case !isNew:
		if a.landed != nil && a.landed.Number == r.Number {
			l.tellLanded(id, a.landed)
		}
		return ignore("request %d of %s is known already", r.Number, r.Task)
	}
	l.renew(id, r.Task, a, r.Number)
	a.files = r.Files
	if a.integrated() {
		// A landing that was given up had been made: there is nothing to repeat.
		again := *a.landed
		again.Number = r.Number
		a.landed = &again
		l.tellLanded(id, a.landed)
		return forge.Applied, nil
	}
	l.queue = slices.DeleteFunc(l.queue, func(q *request) bool { return q.task == r.Task })
	l.queue = append(l.queue, &request{intent: id, task: r.Task, number: r.Number, files: r.Files, land: r})
	l.pump()
	return forge.Applied, nil
}

func (l *Lane) withdraw(id forge.IntentID, w *forge.Withdraw) (forge.Decision, error) {
	a, _ := l.account(id, w.Run, w.Task, w.Number)
	if a == nil || w.Number < a.number || a.withdrawn == w.Number {
		return ignore("request %d of %s is not in force", w.Number, w.Task)
	}
	// A request that is still on its way must not come into force afterwards.
	l.renew(id, w.Task, a, w.Number)
	a.withdrawn = w.Number
	l.drop(func(q *request) bool { return q.task == w.Task })
	l.pump()
	return forge.Applied, nil
}

// pump gives precedence and starts the next landing, as far as both can go.
func (l *Lane) pump() {
	l.grant()
	if l.landing != nil || l.paused {
		return
	}
	i := slices.IndexFunc(l.queue, l.mayLand)
	if i < 0 {
		return
	}
	r := l.queue[i]
	l.queue = slices.Delete(l.queue, i, i+1)
	l.landing = &landing{request: *r, command: forge.Command{
		To:      forge.Key{Project: l.key.Project, Intent: r.intent},
		Attempt: forge.Attempt{Task: r.task, Step: forge.StepIntegrate, Number: r.number, Claim: 1},
		Land:    r.land,
	}}
	l.eff.Commands = append(l.eff.Commands, l.landing.command)
}

// grant gives precedence to every request that overlaps neither with what is in
// force, nor with what somebody asked for earlier, nor with what is landing.
func (l *Lane) grant() {
	if len(l.waiting) == 0 {
		return
	}
	var taken claims
	for _, h := range l.held {
		taken.add(h)
	}
	if l.landing != nil {
		taken.add(&l.landing.request)
	}
	var waiting []*request
	for _, r := range l.waiting {
		if taken.clash(r) {
			waiting = append(waiting, r)
		} else {
			l.held = append(l.held, r)
			l.tellReserved(r.intent, &r.reserve, true)
		}
		taken.add(r)
	}
	l.waiting = waiting
}

// claims is the files that requests are about.
type claims struct {
	any, all bool // any request; one about every file
	files    map[string]bool
}

func (c *claims) add(r *request) {
	c.any, c.all = true, c.all || r.all
	if c.files == nil {
		c.files = map[string]bool{}
	}
	for _, f := range r.files {
		c.files[f] = true
	}
}

func (c *claims) clash(r *request) bool {
	return c.all || r.all && c.any || slices.ContainsFunc(r.files, func(f string) bool { return c.files[f] })
}

// mayLand reports whether nobody has older precedence on the files.
func (l *Lane) mayLand(r *request) bool {
	for _, h := range l.held {
		if h.task == r.task {
			return true
		}
		if h.all || overlap(h.files, r.files) {
			return false
		}
	}
	return true
}

// result takes what became of the landing that is under way.
func (l *Lane) result(r *forge.Result) (forge.Decision, error) {
	if r.Attempt.Step == forge.StepReflect {
		return l.reflected(r)
	}
	if l.landing == nil || l.landing.paused || r.Attempt != l.landing.command.Attempt || r.IsStart() {
		return l.late(r)
	}
	f := r.Failure()
	if f == nil && !r.Answers() {
		f = &forge.Failure{Reason: forge.FailInvalidOutput, Message: "the result holds no answer for its step"}
	}
	policy := forge.DefaultPolicy()
	if f != nil && !givesUp(f.Reason) && l.landing.errors < policy.MaxAgentRetries {
		l.pause(policy.RetryBackoff << l.landing.errors)
		return forge.Applied, nil
	}
	done := forge.Landed{Task: l.landing.task, Number: l.landing.number, Failure: f}
	if f == nil {
		done.Result = forge.As[*forge.Integration](r.Output)
	}
	l.closeLanding(done)
	return forge.Applied, nil
}

// late takes a report on a landing that is not open any more. It changes
// nothing, except that a commit on the base branch is a fact: a worker that was
// given up may have made it all the same.
func (l *Lane) late(r *forge.Result) (forge.Decision, error) {
	var a *account
	if m := l.intents[r.To.Intent]; m != nil {
		a = m.tasks[r.Attempt.Task]
	}
	if a == nil || r.Attempt.Number > a.number || r.Attempt.Number < 1 {
		return ignore("attempt %s is not open", r.Attempt)
	}
	if a.integrated() || forge.As[*forge.Integration](r.Output) == nil || forge.As[*forge.Integration](r.Output).Outcome != forge.LandIntegrated {
		if a.landed != nil && a.landed.Number == r.Attempt.Number {
			l.tellLanded(r.To.Intent, a.landed)
		}
		return ignore("attempt %s is not open", r.Attempt)
	}
	a.landed = &forge.Landed{Task: r.Attempt.Task, Number: r.Attempt.Number, Result: forge.As[*forge.Integration](r.Output)}
	if l.landing != nil && l.landing.task == r.Attempt.Task {
		l.landing, l.timers = nil, nil
	}
	l.drop(func(q *request) bool { return q.task == r.Attempt.Task })
	for _, h := range l.held {
		h.since = append(h.since, a.files...)
	}
	l.tellLanded(r.To.Intent, a.landed)
	l.pump()
	return forge.Applied, nil
}

func (a *account) integrated() bool {
	return a.landed != nil && a.landed.Result != nil && a.landed.Result.Outcome == forge.LandIntegrated
}

// closeLanding ends the landing that is under way and answers the task.
func (l *Lane) closeLanding(done forge.Landed) {
	r := l.landing.request
	l.landing = nil
	if done.Result != nil {
		switch done.Result.Outcome {
		case forge.LandIntegrated:
			l.drop(func(q *request) bool { return q.task == r.task })
			for _, h := range l.held {
				h.since = append(h.since, r.files...)
			}
		case forge.LandDirty:
			// It waits for a person; others must not wait with it.
			l.drop(func(q *request) bool { return q.task == r.task })
		default: // the task goes on, with the precedence that it may have
		}
	}
	if a := l.intents[r.intent].tasks[r.task]; a != nil {
		a.landed = &done
	}
	l.tellLanded(r.intent, &done)
	l.pump()
}

func (l *Lane) tellLanded(id forge.IntentID, d *forge.Landed) {
	l.say(id, fmt.Sprintf("landed/%s/%d", d.Task, d.Number), forge.Event{Message: d})
}

// pause repeats the landing after a worker's error.
func (l *Lane) pause(d time.Duration) {
	l.landing.errors++
	l.landing.paused = true
	t := forge.Timer{To: l.key, Key: "land/" + string(l.landing.task), At: l.now.Add(d)}
	l.timers = []forge.Timer{t}
	l.eff.Timers = append(l.eff.Timers, t)
}

func (l *Lane) timer(fired *forge.TimerFired) (forge.Decision, error) {
	if len(l.timers) == 0 || l.timers[0].Key != fired.Key || !l.timers[0].At.Equal(fired.At) {
		return ignore("no timer %q is set for %s", fired.Key, fired.At)
	}
	l.timers = nil
	l.landing.paused = false
	l.landing.command.Attempt.Claim++
	l.eff.Commands = append(l.eff.Commands, l.landing.command)
	return forge.Applied, nil
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(f string) bool { return slices.Contains(b, f) })
}
