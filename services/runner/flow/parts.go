package flow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// maxParts bounds how many intents one is taken apart into.
const maxParts = 50

// part is an intent that this one was taken apart into.
type part struct {
	intent forge.Intent // as it is submitted
	run    int          // that the lane told of last; 0: it has not begun
	ends   int          // number of its newest end in that run
	status forge.Status // how that run ended; empty: it has not
}

// partsOf makes intents of what an analysis took an intent apart into.
func (s *Intent) partsOf(plans []forge.ChildPlan, number int) ([]*part, error) {
	switch {
	case len(plans) == 0:
		return nil, nil
	case s.intent.Depth >= s.policy.MaxDepth:
		return nil, fmt.Errorf("the intent may not be taken apart any further (policy.max_depth is %d): plan tasks instead", s.policy.MaxDepth)
	case len(plans) > maxParts:
		return nil, fmt.Errorf("the analysis has %d parts; at most %d are allowed", len(plans), maxParts)
	}
	ids := make(map[string]forge.IntentID, len(plans))
	for i, p := range plans {
		name := p.Name
		if name == "" {
			name = strconv.Itoa(i + 1)
		}
		if _, dup := ids[name]; dup {
			return nil, fmt.Errorf("two parts are named %q", name)
		}
		ids[name] = forge.NewDerivedID(shorten(string(s.key.Intent), 30)+" "+name, string(s.key.Project), string(s.key.Intent),
			strconv.FormatInt(s.intent.CreatedAt.UnixNano(), 10), strconv.Itoa(number), strconv.Itoa(i))
	}
	parts := make([]*part, 0, len(plans))
	for i, p := range plans {
		name := p.Name
		if name == "" {
			name = strconv.Itoa(i + 1)
		}
		in := s.partOf(ids[name], &p)
		for _, d := range p.DependsOn {
			id, ok := ids[d]
			if !ok {
				return nil, fmt.Errorf("part %q depends on %q, which is no part of this plan", p.Title, d)
			}
			in.DependsOn = append(in.DependsOn, id)
		}
		if e := in.Validate(); e != nil {
			return nil, fmt.Errorf("part %q: %w", name, e)
		}
		parts = append(parts, &part{intent: in})
	}
	return parts, orderable(parts)
}

// partOf is a part as it is submitted. It inherits who wanted it, and what a person
// chose for the whole.
func (s *Intent) partOf(id forge.IntentID, p *forge.ChildPlan) forge.Intent {
	return forge.Intent{
		ID: id, Project: s.key.Project, Title: p.Title, Body: p.Body, Type: p.Type, Source: s.intent.Source, Risk: p.Risk,
		Parent: s.key.Intent, Depth: s.intent.Depth + 1, Generation: s.intent.Generation,
		Labels: s.intent.Labels, Priority: s.intent.Priority, Agent: s.intent.Agent,
		Origin: forge.Origin{System: s.intent.Origin.System, EventID: "part/" + string(id), Actor: s.intent.Origin.Actor},
	}
}

// orderable reports parts that wait for each other.
func orderable(parts []*part) error {
	done := map[forge.IntentID]bool{}
	for len(done) < len(parts) {
		before := len(done)
		for _, p := range parts {
			if !slices.ContainsFunc(p.intent.DependsOn, func(d forge.IntentID) bool { return !done[d] }) {
				done[p.intent.ID] = true
			}
		}
		if len(done) == before {
			var stuck []string
			for _, p := range parts {
				if !done[p.intent.ID] {
					stuck = append(stuck, p.intent.Title)
				}
			}
			return fmt.Errorf("these parts wait for each other: %s", strings.Join(stuck, ", "))
		}
	}
	return nil
}

func (s *Intent) partIDs() []forge.IntentID {
	var ids []forge.IntentID
	for _, p := range s.parts {
		ids = append(ids, p.intent.ID)
	}
	return ids
}

// split submits the parts that have not begun, and retries those that failed. A part
// that a person rejected or cancelled stays as it is.
func (s *Intent) split() {
	s.phase = phaseParts
	s.intent.Status = forge.StatusExecuting
	s.adjust(ruleSplit, "", "%s", joinIDs(s.partIDs(), ", "))
	for _, p := range s.parts {
		switch {
		case p.run == 0:
			in := p.intent
			in.CreatedAt = s.now
			in.BudgetUSD = s.share()
			s.tellPart(p, forge.Event{Message: &forge.Submit{Intent: in, Preapproved: s.approved || s.vouched}})
		case p.status.Failed():
			p.status = ""
			s.tellPart(p, forge.Event{Message: &forge.Retry{Instructions: s.instructions}})
		}
	}
	s.sumUp()
}

// share is what each part may cost of a budget that this intent has by itself.
func (s *Intent) share() float64 {
	if s.intent.BudgetUSD <= 0 {
		return 0
	}
	return max(smallestCall, (s.budget().IntentUSD-s.usage.CostUSD)/float64(len(s.parts)))
}

func partKey(id forge.IntentID) string { return "part/" + string(id) }

// tellPart sends an event to a part, until the lane tells of the run that it leads to.
func (s *Intent) tellPart(p *part, ev forge.Event) {
	ev.ID = fmt.Sprintf("%s/%s/%d", s.key.Intent, partKey(p.intent.ID), s.run)
	ev.To = forge.Key{Project: s.key.Project, Intent: p.intent.ID}
	ev.Actor = string(s.key.Intent)
	s.open.tell(&s.eff, partKey(p.intent.ID), true, ev)
}

// partChanged takes what became of a part.
func (s *Intent) partChanged(c *forge.ChildChanged) (forge.Decision, error) {
	i := slices.IndexFunc(s.parts, func(p *part) bool { return p.intent.ID == c.Intent })
	if i < 0 {
		return ignore("%q is no part of %q", c.Intent, s.key.Intent)
	}
	p := s.parts[i]
	if c.Run < p.run || c.Run == p.run && c.Number <= p.ends {
		return ignore("what became of %q is known", c.Intent)
	}
	p.run, p.ends, p.status = c.Run, c.Number, ""
	if c.Number > 0 {
		p.status = c.Status
	}
	s.open.closeNote(partKey(p.intent.ID))
	switch {
	case s.phase == phaseParts:
		s.sumUp()
	case s.phase == phaseClosed && s.intent.Status.Failed() && p.status != "":
		if status := s.partStatus(); status != s.intent.Status {
			s.reason = s.partReason()
			s.intent.Status = status
			s.endRun()
			s.corrected()
		}
	}
	return forge.Applied, nil
}

// sumUp ends the run when all parts have ended.
func (s *Intent) sumUp() {
	if slices.ContainsFunc(s.parts, func(p *part) bool { return p.status == "" }) {
		return
	}
	s.reason = s.partReason()
	s.finish(s.partStatus())
}

// partStatus is done if all parts are, error if none is, blocked otherwise.
func (s *Intent) partStatus() forge.Status {
	done := 0
	for _, p := range s.parts {
		if p.status == forge.StatusDone {
			done++
		}
	}
	return aggregated(done, len(s.parts))
}

func (s *Intent) partReason() string {
	for _, p := range s.parts {
		if p.status != forge.StatusDone {
			return fmt.Sprintf("its part %q ended %s", p.intent.ID, p.status)
		}
	}
	return ""
}

func shorten(text string, most int) string {
	if len(text) > most {
		return text[:most]
	}
	return text
}
