package reflection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/words"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Result takes a worker's report on the reflection that is under way. It submits
// the proposals that the bounds allow, and reports to the intents whose runs and
// observations were read. After a failure that may pass it returns another attempt
// to issue; nil otherwise.
func (s *State) Result(out *outbox.Messages, r *forge.Result, c *Context) (again *Reflection, d forge.Decision, err error) {
	if s.Current == nil || r.Attempt != s.Current.Attempt() || r.IsStart() {
		d, err = rule.Ignore("attempt %s is not open", r.Attempt)
		return nil, d, err
	}
	f := r.Failure()
	if f == nil && !r.Answers() {
		f = &forge.Failure{Reason: forge.FailInvalidOutput, Message: "the result holds no answer for its step"}
	}
	s.Current.Usage = s.Current.Usage.Add(r.Usage)
	if f != nil {
		if again = s.retry(f, r.Agent, c); again != nil {
			return again, forge.Applied, nil
		}
	}
	runs, usage := s.Current.Runs, s.Current.Usage
	s.Current = nil
	step := forge.StepRecord{
		Step: forge.StepReflect, Attempt: r.Attempt.Number, Outcome: "ok", Duration: r.Duration,
		Session: r.Session, Agent: r.Agent, Model: r.Model, Executor: r.Executor, Usage: usage, At: c.Now,
	}
	var read []string
	var proposed []forge.Proposal
	var dropped []forge.Adjustment
	if f != nil {
		step.Outcome = string(f.Reason)
	} else {
		found := forge.As[*forge.Reflection](r.Output)
		read = s.unreadAmong(found.Read)
		proposed, dropped = s.propose(out, found.Proposals, s.descent(runs, read, c), c)
		s.Unread = slices.DeleteFunc(slices.Clone(s.Unread), func(o forge.Observation) bool { return slices.Contains(read, o.ID) })
	}
	s.reportAll(out, runs, step, read, proposed, dropped, c)
	return nil, forge.Applied, nil
}

// unreadAmong returns which of the ids are of unread observations.
func (s *State) unreadAmong(ids []string) []string {
	var list []string
	for _, o := range s.Unread {
		if slices.Contains(ids, o.ID) {
			list = append(list, o.ID)
		}
	}
	return list
}

// descent describes the sources of a reflection's proposals.
type descent struct {
	generation int
	foreign    bool // words of another system are among the sources
	// requesters are the people whose words are among them: each wanted some of what is proposed.
	requesters []forge.Identity
}

// descent follows the runs and observations that were read back to their sources.
func (s *State) descent(runs []Run, read []string, c *Context) descent {
	var d descent
	add := func(generation int, source forge.Source, requesters []forge.Identity) {
		for _, r := range requesters {
			if !slices.Contains(d.requesters, r) {
				d.requesters = append(d.requesters, r)
			}
		}
		d.generation = max(d.generation, generation+1)
		d.foreign = d.foreign || source.Foreign()
	}
	for _, r := range runs {
		add(r.On.Intent.Generation, r.On.Intent.Source, r.On.Intent.Requesters)
	}
	for _, o := range s.Unread {
		if in, ok := c.Intent(o.IntentID); ok && slices.Contains(read, o.ID) {
			add(in.Generation, in.Source, in.Requesters)
		}
	}
	return d
}

// propose submits the proposals of a reflection, except for those that objection is
// against.
func (s *State) propose(out *outbox.Messages, list []forge.Intent, from descent, c *Context) (proposed []forge.Proposal, dropped []forge.Adjustment) {
	if day := c.Now.Unix() / (24 * 60 * 60); day != s.Day {
		s.Day, s.Today = day, 0
	}
	for _, p := range list {
		in := intentOf(&p, from, c)
		if why := s.objection(&in, from, len(proposed)); why != "" {
			dropped = append(dropped, forge.Adjustment{Rule: rule.NotProposed, Detail: rule.FirstLine(p.Title) + ": " + why, At: c.Now})
			continue
		}
		s.Today++
		s.Proposals = rule.Last(append(slices.Clip(s.Proposals), Proposal{ID: in.ID, Title: in.Title, Intent: &in}), maxProposals)
		proposed = append(proposed, forge.Proposal{ID: in.ID, Title: in.Title, Status: forge.StatusProposed})
		submit(out, &in)
	}
	return proposed, dropped
}

// objection says for a person why a proposal is not submitted; empty if it is.
// proposed is how many this reflection has proposed before it.
func (s *State) objection(in *forge.Intent, from descent, proposed int) string {
	if err := in.Validate(); err != nil {
		return err.Error()
	}
	switch {
	case slices.ContainsFunc(s.Proposals, func(p Proposal) bool { return p.ID == in.ID }):
		return "it was proposed before, as " + string(in.ID)
	case from.generation > s.Policy.MaxGeneration:
		return fmt.Sprintf("it would be %d reflections away from what a person asked for; reflection.max_generation is %d", from.generation, s.Policy.MaxGeneration)
	case proposed >= s.Policy.ProposalsATime:
		return fmt.Sprintf("reflection.proposals_a_time is %d", s.Policy.ProposalsATime)
	case s.Today >= s.Policy.ProposalsADay:
		return fmt.Sprintf("reflection.proposals_a_day is %d", s.Policy.ProposalsADay)
	}
	return ""
}

// intentOf returns a proposal as an intent. The same words make the same id, which
// begins with the id that the reflector suggests for a title in another script, or
// else with the title. A proposal that comes from another system needs a person's
// approval, as that system's own intents do.
func intentOf(p *forge.Intent, from descent, c *Context) forge.Intent {
	said := words.Sorted(p.Title)
	id := forge.NewDerivedID(rule.Shorten(cmp.Or(string(p.ID), p.Title), 40), string(c.Project), "reflection", strings.Join(said, " "))
	in := forge.Intent{
		ID: id, Project: c.Project, Settings: forge.Settings{
			Title: p.Title, Body: p.Body, Type: p.Type, Risk: p.Risk,
		},
		Source: forge.SourceReflection, Generation: from.generation, CreatedAt: c.Now, Requesters: from.requesters,
		Origin: forge.Origin{System: string(forge.SourceReflection), EventID: string(id)},
	}
	if from.foreign {
		in.Source = forge.SourceSystemReflection
	}
	return in
}

// reportAll reports a reflection to the intents whose runs and observations it has
// read, where it had any result for them. Its costs and proposals are reported to
// the first only, so that they are counted once.
func (s *State) reportAll(
	out *outbox.Messages, runs []Run, step forge.StepRecord, read []string, proposed []forge.Proposal, dropped []forge.Adjustment, c *Context,
) {
	told := map[forge.IntentID]bool{}
	for i, r := range runs {
		rep := forge.RunReflected{Run: r.On.History.Run, Step: step, Read: readOf(read, r.Intent)}
		if i == 0 {
			rep.Proposed, rep.Dropped = proposed, dropped
		} else {
			rep.Step.Usage = forge.Usage{}
		}
		told[r.Intent] = true
		if step.Usage != (forge.Usage{}) || step.Outcome != "ok" || len(rep.Read)+len(rep.Proposed)+len(rep.Dropped) > 0 {
			s.report(out, r.Intent, &rep)
		}
	}
	step.Usage = forge.Usage{}
	for _, id := range read {
		owner := ownerOf(id)
		if _, ok := c.Intent(owner); ok && !told[owner] {
			told[owner] = true
			s.report(out, owner, &forge.RunReflected{Step: step, Read: readOf(read, owner)})
		}
	}
}

// readOf returns which observations are an intent's own.
func readOf(ids []string, owner forge.IntentID) []string {
	var list []string
	for _, id := range ids {
		if ownerOf(id) == owner {
			list = append(list, id)
		}
	}
	return list
}

// ownerOf returns the intent in whose run an observation was made.
func ownerOf(observation string) forge.IntentID {
	id, _, _ := strings.Cut(observation, "/")
	return forge.IntentID(id)
}
