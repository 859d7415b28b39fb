// Package obstacle knows the obstacles that all intents of a project share, so that
// it makes no further call into a refusal that is known: accounts of agents that
// refuse calls, a git origin that is away or refuses pushes, a red base branch.
//
//	          a call is refused                    the time has come, or a person resumes
//	open ------------------------> closed --------------------------------------------> open
//
// The project has the fact (State); an intent knows of it by messages (Known), says so
// in its commands, and holds the steps whose account is closed. An account is a back
// end of the project: which one a step calls is the worker's to say, by the
// configuration and what is installed, so a command names the accounts that are closed,
// and a worker that would have to call one of them makes no call and reports that.
//
// Three things make that exact. An intent notes a refusal of its own at once, before
// the project has heard of it, so that its other tasks make no further call. A refusal
// counts only if the call was issued after the account was last opened: a call that
// was under way when a person mended the key is refused by the old one, and is made
// again. And an intent lets its steps go only by a message that was sent after the
// project had heard why they wait (Heard), not by one that was on its way before.
//
// The git origin is one more entry of the same list, forge.GitOrigin: while it does not answer,
// nothing can begin and nothing can be merged. What is known of accounts is true of it as well,
// with two differences. Every step needs it, so every command says that it is away. And no person
// opens it, but a probe (Away): a step of an implementer that waits for it, one at a time for all
// of the project. A merge is the project's own step, so it is stopped, and not held by its intent.
//
//	          a step, or a merge, is not answered              a probe is answered
//	answers -----------------------------------> away, probed ---------------------> answers
//	                                              |        ^
//	                                              +--------+ a probe ends in vain: the next waits longer
//
// That the origin refuses pushes is an entry as well, forge.GitPush. No step is held for it,
// because only merges push to the base branch, and these are the project's own: the merge queue
// stops by itself, knows when to try again, and has the fact kept here (Pushes), so that intents
// and people hear of it in the same way. No command says it, since no worker has to know.
//
// That the base branch is red is one more, forge.GitBase: no change can pass on it. What an intent
// would have verified it holds by itself, so no command says it either, and one intent at a time
// looks (Red). Changes in the merge queue that were not verified on the red tip wait there.
//
// That no replica can do a step is one more, forge.AnyReplica. It is for people
// alone: nothing is held for it, and each step that waits stays with the replicas.
// An intent reports it for as long as one of its steps has waited for long.
//
// A person is asked once: by the first of the intents that wait (Waits). The
// others say that they wait, and for what, but not that a person has to act.
package obstacle

import (
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// longest is how far off the end of a quota may be that is believed.
const longest = 8 * 24 * time.Hour

// State has the accounts that refuse calls, as the project knows them. The zero value has none.
type State struct {
	// Number rises whenever the project learns something of accounts.
	Number int
	// Opened is the number at which accounts were last opened by a person:
	// refusals of calls that were issued under an older one are out of date.
	Opened int
	// Closed are the accounts that refuse calls.
	Closed []forge.Obstacle
	// Waits are the intents with steps that only a person can let go on, in the
	// order in which they said so. The first of them asks the person, for all.
	Waits []forge.IntentID
	// Lacks are the intents with steps that no replica can do, in the order in which they
	// said so. The first of them tells a person, for all, unless something else is told.
	Lacks []forge.IntentID
	// Away is the search for an origin that does not answer.
	Away Away
	// Red is the search for the end of a red base branch.
	Red Red
	// Asker is the intent that tells a person that the origin refuses pushes; empty if none does.
	Asker forge.IntentID
	// Received has the newest ObstacleReported.Number of each intent.
	Received map[forge.IntentID]int
}

// Closes reports whether a failure is one of the account, which every other call would have too.
func Closes(f *forge.Failure, now time.Time) bool {
	switch f.Reason {
	case forge.FailAuth, forge.FailOrigin, forge.FailBase:
		return true
	case forge.FailQuota:
		return f.Until.After(now) && f.Until.Sub(now) <= longest
	default:
		return false
	}
}

// Refused keeps that an account refused a call, and tells who has to know. One that is repeated is
// answered once more.
func (s *State) Refused(out *outbox.Messages, id forge.IntentID, m *forge.ObstacleReported, active []forge.IntentID, now time.Time) (forge.Decision, error) {
	if m.Number <= s.Received[id] {
		s.send(out, id)
		return rule.Ignore("message %d of %q about accounts is known", m.Number, id)
	}
	if s.Received == nil {
		s.Received = map[forge.IntentID]int{}
	}
	// Each message makes a newer state, also where it tells nothing new: the answer has
	// to be newer than what the intent knows, or it would be taken for a repetition.
	s.Received[id] = m.Number
	s.Number++
	s.expire(now)
	before, asked, told := len(s.Closed), s.asks(), s.Away.asker()
	switch {
	case m.Agent == forge.GitBase:
		s.base(id, m, now)
	case m.Agent == forge.AnyReplica:
		s.lacking(id, m, now)
	case m.Seen >= s.Opened && Closes(&m.Failure, now):
		s.close(m, now)
	}
	switch c := s.find(m.Agent); {
	case c == nil || !c.Until.IsZero() || m.Agent == forge.GitBase || m.Agent == forge.AnyReplica:
	case m.Agent == forge.GitOrigin:
		s.Away.wait(id)
	case !slices.Contains(s.Waits, id):
		s.Waits = append(slices.Clip(s.Waits), id)
	}
	// The other intents are told only if the list of accounts or the intent that asks the
	// person has changed. Otherwise the answer goes to the sender alone.
	if before != len(s.Closed) || asked != s.asks() || told != s.Away.asker() {
		s.sendAll(out, active)
	} else {
		s.send(out, id)
	}
	return forge.Applied, nil
}

// find returns the entry of an account; nil if it takes calls.
func (s *State) find(agent string) *forge.Obstacle {
	if i := slices.IndexFunc(s.Closed, func(c forge.Obstacle) bool { return c.Agent == agent }); i >= 0 {
		return &s.Closed[i]
	}
	return nil
}

// close notes a refusal. What is known already stays, unless credentials are
// refused as well, or the quota is longer.
func (s *State) close(m *forge.ObstacleReported, now time.Time) {
	next := closed(m.Agent, &m.Failure, now)
	// One entry for each account: which of its refusals came first does not
	// matter, which lasts longer does.
	i := slices.IndexFunc(s.Closed, func(c forge.Obstacle) bool { return c.Agent == m.Agent })
	if i < 0 {
		s.Closed = append(slices.Clip(s.Closed), next)
		return
	}
	if was := s.Closed[i]; was.Until.IsZero() || !next.Until.IsZero() && !next.Until.After(was.Until) {
		return
	}
	s.Closed = slices.Clone(s.Closed)
	next.Since = s.Closed[i].Since
	s.Closed[i] = next
}

// closed returns the entry of an account that refused a call.
func closed(agent string, f *forge.Failure, now time.Time) forge.Obstacle {
	c := forge.Obstacle{Agent: agent, Reason: f.Reason, Message: rule.FirstLine(f.Message), Since: now}
	if f.Reason == forge.FailQuota {
		c.Until = f.Until
	}
	return c
}

// expire forgets the quotas that are reset by now.
func (s *State) expire(now time.Time) {
	s.Closed = slices.DeleteFunc(slices.Clone(s.Closed), func(c forge.Obstacle) bool { return !isClosed(&c, now) })
}

// isClosed reports whether an account that was closed still is.
func isClosed(c *forge.Obstacle, now time.Time) bool {
	return c.Until.IsZero() || c.Until.After(now)
}

// Blocks reports whether an account waits for a person, or all wait for the origin.
func (s *State) Blocks() bool { return s.refused() || s.OriginAway() }

// refused reports whether an account waits for a person.
func (s *State) refused() bool {
	return slices.ContainsFunc(s.Closed, func(c forge.Obstacle) bool {
		return c.Until.IsZero() && isAccount(&c)
	})
}

// isAccount reports whether an entry is of an account of an agent, and not of git or the replicas.
func isAccount(c *forge.Obstacle) bool {
	return !slices.Contains([]string{forge.GitOrigin, forge.GitPush, forge.GitBase, forge.AnyReplica}, c.Agent)
}

// asks returns the intent that asks the person about an account, or tells about
// the replicas; empty if none has to.
func (s *State) asks() forge.IntentID {
	switch {
	case len(s.Waits) > 0 && s.refused():
		return s.Waits[0]
	case len(s.Lacks) > 0 && !s.Blocks() && s.Asker == "":
		return s.Lacks[0]
	}
	return ""
}

// Resume opens all accounts, because a person says so, and reports whether
// there were any that refuse calls.
func (s *State) Resume(out *outbox.Messages, active []forge.IntentID, now time.Time) bool {
	if !slices.ContainsFunc(s.Closed, func(c forge.Obstacle) bool { return isClosed(&c, now) }) {
		return false
	}
	// Whoever still waits for a refused account is closed to that after another
	// refusal, and says so again.
	s.Number++
	s.Opened, s.Closed, s.Waits, s.Lacks, s.Asker = s.Number, nil, nil, nil, ""
	s.Away = Away{Number: s.Away.Number}
	s.Red = Red{Number: s.Red.Number}
	s.sendAll(out, active)
	return true
}

// Ended forgets an intent whose run is over. If it has asked the person, the next one does.
func (s *State) Ended(out *outbox.Messages, id forge.IntentID, active []forge.IntentID) {
	asked, told := s.asks(), s.Away.asker()
	s.Away.ended(id)
	s.Red.leave(id)
	s.found(id)
	s.Waits = slices.DeleteFunc(slices.Clone(s.Waits), func(w forge.IntentID) bool { return w == id })
	if asked != s.asks() || told != s.Away.asker() {
		s.Number++
		s.sendAll(out, active)
	}
}

// sendAll tells the active intents what is known.
func (s *State) sendAll(out *outbox.Messages, active []forge.IntentID) {
	for _, id := range active {
		s.send(out, id)
	}
}

// Repeat tells the active intents once more, if there is anything to tell.
func (s *State) Repeat(out *outbox.Messages, active []forge.IntentID) {
	if s.Number > 0 {
		s.sendAll(out, active)
	}
}

// send tells one intent what is known.
func (s *State) send(out *outbox.Messages, id forge.IntentID) {
	out.Add(id, fmt.Sprintf("accounts/%s/%d", id, s.Number), s.Message(id))
}

// Message returns the message that an intent is told. Quotas that are over by
// now may be among the closed accounts: who reads them looks at the time.
func (s *State) Message(id forge.IntentID) *forge.ObstaclesChanged {
	asks := id != "" && (s.asks() == id || s.Away.asker() == id || s.Asker == id && !s.OriginAway() || s.Red.Asker == id && s.quiet())
	m := &forge.ObstaclesChanged{Number: s.Number, Heard: s.Received[id], Asks: asks, Closed: s.Closed}
	if id != "" && s.Red.For == id {
		m.Look = s.Red.Number
	}
	return m
}

// Pushes keeps whether the origin refuses pushes, nil if it does not, and by which intent a person
// hears of it. All that are active are told if either has changed. The words stay those that were
// told first: a hook may print others each time, and each telling is a message to every intent.
func (s *State) Pushes(out *outbox.Messages, refused *forge.Obstacle, by forge.IntentID, active []forge.IntentID) {
	known := s.find(forge.GitPush)
	if refused == nil {
		by = ""
	}
	if (known == nil) == (refused == nil) && s.Asker == by {
		return
	}
	s.Number++
	s.Asker = by
	s.Closed = slices.DeleteFunc(slices.Clone(s.Closed), func(c forge.Obstacle) bool { return c.Agent == forge.GitPush })
	if refused != nil {
		s.Closed = append(s.Closed, *refused)
	}
	s.sendAll(out, active)
}
