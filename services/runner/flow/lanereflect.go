package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Bounds of what a project keeps for its reflections.
const (
	maxUnread    = 300 // observations
	maxQueued    = 50  // runs that wait to be reflected upon
	maxTogether  = 10  // runs that one reflection reads
	maxProposals = 500 // that are remembered
	maxKnown     = 100 // of them, that a reflection is told
	maxTold      = 100 // answers that are repeated after a crash; steps, adjustments and observations that a run tells of
	maxAtOnce    = 100 // observations that one reflection reads
)

// mirror is what a project keeps for its reflections. One runs at a time, so that
// nothing is read or proposed twice.
type mirror struct {
	unread  []forge.Observation
	queue   []run
	last    *run // that a reflection on demand looks at when none waits
	wanted  bool // by a person
	running *reflection
	number  int // of reflections, ever
	known   []proposal
	day     int64
	today   int // proposals on that day
	policy  forge.ReflectionPolicy
	told    []forge.Event
}

// run is a run that ended.
type run struct {
	intent forge.IntentID
	on     *forge.ReflectOn
}

// reflection is the one that is under way.
type reflection struct {
	command forge.Command
	runs    []run
	errors  int
	usage   forge.Usage // of the attempts that failed
	avoid   []string    // agents at a limit
}

// proposal is an intent that was proposed. intent is set until it has begun.
type proposal struct {
	id     forge.IntentID
	title  string
	intent *forge.Intent
}

// ended takes what a run leaves to reflect upon.
func (m *mirror) ended(id forge.IntentID, e *forge.End) {
	m.entered(id)
	m.unread = last(append(slices.Clip(m.unread), e.Observed...), maxUnread)
	if e.Reflect == nil {
		return
	}
	m.policy = e.Reflect.Policy
	m.last = &run{intent: id, on: e.Reflect}
	m.queue = last(append(slices.Clip(m.queue), *m.last), maxQueued)
}

// last is the end of a list.
func last[T any](list []T, most int) []T {
	if more := len(list) - most; more > 0 {
		return slices.Clone(list[more:])
	}
	return list
}

// entered notes that a proposed intent has begun.
func (m *mirror) entered(id forge.IntentID) {
	for i := range m.known {
		if m.known[i].id == id {
			m.known = slices.Clone(m.known)
			m.known[i].intent = nil
		}
	}
}

func (m *mirror) settled(l *Lane) bool {
	return m.running == nil && (l.paused || len(m.queue) == 0 && !m.wanted) &&
		!slices.ContainsFunc(m.known, func(p proposal) bool { return p.intent != nil })
}

func (m *mirror) pending(l *Lane, e *forge.Effects) {
	if m.running != nil {
		e.Commands = append(e.Commands, m.running.command)
	}
	for _, p := range m.known {
		if p.intent != nil {
			e.Notes = append(e.Notes, l.submission(p.intent))
		}
	}
	e.Notes = append(e.Notes, m.told...)
}

// reflectNow reflects because a person wants it.
func (l *Lane) reflectNow() (forge.Decision, error) {
	m := &l.mirror
	switch {
	case m.wanted:
		return ignore("a reflection is waiting already")
	case m.last == nil:
		return refuse("there is nothing to reflect upon: no run of an intent has ended, or reflection is off (reflection.enabled)")
	}
	m.wanted = true
	return forge.Applied, nil
}

// reflectNext starts a reflection if one is due and can be paid for.
func (l *Lane) reflectNext() {
	m := &l.mirror
	if m.running != nil || l.paused || len(m.queue) == 0 && !m.wanted {
		return
	}
	var usd float64
	if l.budget.Shared() {
		l.today()
		granted, why, wait := l.purse.room(l.budget, slice(l.budget))
		if wait {
			return
		}
		if usd = granted; usd == 0 {
			for _, r := range m.queue {
				l.tellReflected(r.intent, &forge.Reflected{
					Run:     r.on.History.Run,
					Step:    forge.StepRecord{Step: forge.StepReflect, Attempt: m.number + 1, Outcome: string(forge.FailBudget), At: l.now},
					Dropped: []forge.Adjustment{{Rule: rule.Budget, Detail: "not reflected upon: " + why, At: l.now}},
				})
			}
			m.number++
			m.queue, m.wanted = nil, false
			return
		}
	}
	n := min(len(m.queue), maxTogether)
	runs := slices.Clone(m.queue[:n])
	m.queue, m.wanted = slices.Clone(m.queue[n:]), false
	if n == 0 {
		runs = []run{*m.last}
	}
	m.running = &reflection{runs: runs}
	l.purse.aside = usd
	l.reflectOn(usd)
}

// reflectOn issues the reflection that is under way.
func (l *Lane) reflectOn(usd float64) {
	m := &l.mirror
	m.number++
	first := m.running.runs[0]
	c := forge.Command{
		To:           forge.Key{Project: l.key.Project, Intent: first.intent},
		Attempt:      forge.Attempt{Step: forge.StepReflect, Number: m.number, Claim: 1},
		Intent:       first.on.Intent,
		History:      &first.on.History,
		Observations: m.unread[:min(len(m.unread), maxAtOnce)],
		Known:        l.proposals(),
		BudgetUSD:    usd,
		Avoid:        m.running.avoid,
	}
	for _, r := range m.running.runs[1:] {
		c.Histories = append(c.Histories, r.on.History)
	}
	if first.on.Intent.Recipe == "" {
		c.Session = forge.NewSessionID(c.To, first.on.Intent.CreatedAt, "", forge.StepReflect, m.number)
	}
	m.running.command = c
	l.eff.Commands = append(l.eff.Commands, c)
}

// proposals lists what was proposed last, and what became of it.
func (l *Lane) proposals() []forge.Proposal {
	var list []forge.Proposal
	for _, p := range last(l.mirror.known, maxKnown) {
		status := forge.StatusProposed
		if m := l.intents[p.id]; m != nil {
			status = m.status
		}
		list = append(list, forge.Proposal{ID: p.id, Title: p.title, Status: status})
	}
	return list
}

// reflected takes what a reflection found.
func (l *Lane) reflected(r *forge.Result) (forge.Decision, error) {
	m := &l.mirror
	if m.running == nil || r.Attempt != m.running.command.Attempt || r.IsStart() {
		return ignore("attempt %s is not open", r.Attempt)
	}
	f := r.Failure()
	if f == nil && !r.Answers() {
		f = &forge.Failure{Reason: forge.FailInvalidOutput, Message: "the result holds no answer for its step"}
	}
	m.running.usage = m.running.usage.Add(r.Usage)
	if f != nil && l.reflectAgain(f, r.Agent) {
		return forge.Applied, nil
	}
	runs, usage := m.running.runs, m.running.usage
	m.running, l.purse.aside = nil, 0
	step := forge.StepRecord{
		Step: forge.StepReflect, Attempt: r.Attempt.Number, Outcome: "ok", Duration: r.Duration,
		Session: r.Session, Agent: r.Agent, Model: r.Model, Usage: usage, At: l.now,
	}
	var read []string
	var proposed []forge.Proposal
	var dropped []forge.Adjustment
	if f != nil {
		step.Outcome = string(f.Reason)
	} else {
		read = l.read(forge.As[*forge.Reflection](r.Output).Read)
		proposed, dropped = l.propose(forge.As[*forge.Reflection](r.Output).Proposals, l.descent(runs, read))
		m.unread = slices.DeleteFunc(slices.Clone(m.unread), func(o forge.Observation) bool { return slices.Contains(read, o.ID) })
	}
	l.report(runs, step, read, proposed, dropped)
	l.fund()
	return forge.Applied, nil
}

// reflectAgain tries once more, with another agent if this one is at its limit.
func (l *Lane) reflectAgain(f *forge.Failure, agent string) bool {
	m := l.mirror.running
	then := rule.Failures[f.Reason].Then
	if m.errors+1 >= reflectAttempts || then >= rule.RaiseBudget || then == rule.WaitForIt && agent == "" {
		return false
	}
	m.errors++
	if then == rule.WaitForIt {
		m.avoid = append(slices.Clip(m.avoid), agent)
	}
	l.reflectOn(m.command.BudgetUSD)
	return true
}

// read is which of the ids are of observations that nobody had read.
func (l *Lane) read(ids []string) []string {
	var list []string
	for _, o := range l.mirror.unread {
		if slices.Contains(ids, o.ID) {
			list = append(list, o.ID)
		}
	}
	return list
}

// descent is where proposals come from.
type descent struct {
	generation int
	foreign    bool // some of it comes from another system
}

func (l *Lane) descent(runs []run, read []string) descent {
	var d descent
	add := func(generation int, source forge.Source) {
		d.generation = max(d.generation, generation+1)
		d.foreign = d.foreign || source == forge.SourceSystem
	}
	for _, r := range runs {
		add(r.on.Intent.Generation, r.on.Intent.Source)
	}
	for _, o := range l.mirror.unread {
		if m := l.intents[o.IntentID]; m != nil && slices.Contains(read, o.ID) {
			add(m.generation, m.source)
		}
	}
	return d
}

// propose submits what a reflection proposes, unless it is known, or more than
// reflection may add.
func (l *Lane) propose(list []forge.Intent, from descent) (proposed []forge.Proposal, dropped []forge.Adjustment) {
	m := &l.mirror
	if day := l.now.Unix() / (24 * 60 * 60); day != m.day {
		m.day, m.today = day, 0
	}
	for _, p := range list {
		in := l.proposed(&p, from)
		why := ""
		known := slices.IndexFunc(m.known, func(k proposal) bool { return k.id == in.ID })
		invalid := in.Validate()
		switch {
		case invalid != nil:
			why = invalid.Error()
		case known >= 0:
			why = "it was proposed before, as " + string(in.ID)
		case from.generation > m.policy.MaxGeneration:
			why = fmt.Sprintf("it would be %d reflections away from what a person wanted; reflection.max_generation is %d", from.generation, m.policy.MaxGeneration)
		case len(proposed) >= m.policy.ProposalsATime:
			why = fmt.Sprintf("reflection.proposals_a_time is %d", m.policy.ProposalsATime)
		case m.today >= m.policy.ProposalsADay:
			why = fmt.Sprintf("reflection.proposals_a_day is %d", m.policy.ProposalsADay)
		}
		if why != "" {
			dropped = append(dropped, forge.Adjustment{Rule: ruleNotProposed, Detail: firstLine(p.Title) + ": " + why, At: l.now})
			continue
		}
		m.today++
		m.known = last(append(slices.Clip(m.known), proposal{id: in.ID, title: in.Title, intent: &in}), maxProposals)
		proposed = append(proposed, forge.Proposal{ID: in.ID, Title: in.Title, Status: forge.StatusProposed})
		l.eff.Notes = append(l.eff.Notes, l.submission(&in))
	}
	return proposed, dropped
}

// proposed is a proposal as an intent. The same words make the same id. What comes
// from another system needs a person's approval, as its own intents do.
func (l *Lane) proposed(p *forge.Intent, from descent) forge.Intent {
	words := sortedWords(p.Title)
	id := forge.NewDerivedID(shorten(p.Title, 40), string(l.key.Project), "reflection", strings.Join(words, " "))
	in := forge.Intent{
		ID: id, Project: l.key.Project, Title: p.Title, Body: p.Body, Type: p.Type, Risk: p.Risk,
		Source: forge.SourceReflection, Generation: from.generation, CreatedAt: l.now,
		Origin: forge.Origin{System: string(forge.SourceReflection), EventID: string(id)},
	}
	if from.foreign {
		in.Risk = forge.MaxRisk(in.Risk, forge.RiskMed)
	}
	return in
}

func sortedWords(title string) []string {
	set := wordsOf(title)
	words := make([]string, 0, len(set))
	for w := range set {
		words = append(words, w)
	}
	slices.Sort(words)
	if len(words) == 0 {
		words = append(words, title)
	}
	return words
}

func (l *Lane) submission(in *forge.Intent) forge.Event {
	return l.note(in.ID, "proposal/"+string(in.ID), forge.Event{Message: &forge.Submit{Intent: *in}})
}

// report tells the intents what a reflection made of their runs and observations,
// where it made anything of them.
func (l *Lane) report(runs []run, step forge.StepRecord, read []string, proposed []forge.Proposal, dropped []forge.Adjustment) {
	said := map[forge.IntentID]bool{}
	for i, r := range runs {
		told := forge.Reflected{Run: r.on.History.Run, Step: step, Read: readOf(read, r.intent)}
		if i == 0 {
			told.Proposed, told.Dropped = proposed, dropped
		} else {
			told.Step.Usage = forge.Usage{} // it is counted once
		}
		said[r.intent] = true
		if step.Usage != (forge.Usage{}) || step.Outcome != "ok" || len(told.Read)+len(told.Proposed)+len(told.Dropped) > 0 {
			l.tellReflected(r.intent, &told)
		}
	}
	step.Usage = forge.Usage{}
	for _, id := range read {
		owner := intentOf(id)
		if m := l.intents[owner]; m != nil && !said[owner] {
			said[owner] = true
			l.tellReflected(owner, &forge.Reflected{Run: m.run, Step: step, Read: readOf(read, owner)})
		}
	}
}

// readOf is which observations are an intent's own.
func readOf(ids []string, owner forge.IntentID) []string {
	var list []string
	for _, id := range ids {
		if intentOf(id) == owner {
			list = append(list, id)
		}
	}
	return list
}

func intentOf(observation string) forge.IntentID {
	id, _, _ := strings.Cut(observation, "/")
	return forge.IntentID(id)
}

func (l *Lane) tellReflected(id forge.IntentID, r *forge.Reflected) {
	ev := l.note(id, fmt.Sprintf("reflected/%s/%d", id, r.Step.Attempt), forge.Event{Message: r})
	l.eff.Notes = append(l.eff.Notes, ev)
	l.mirror.told = last(append(slices.Clip(l.mirror.told), ev), maxTold)
}
