package obstacle

import (
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/verdict"
)

const (
	// firstPause is how long no intent looks after a look that ended in vain.
	// Each next pause is twice as long.
	firstPause = 15 * time.Second
	// longestPause bounds that. A look of a change that was tried on the same tip runs nothing.
	longestPause = 5 * time.Minute
	// longestLook is how long one look may take before another intent is asked:
	// a person may have paused the one that looks.
	longestLook = 30 * time.Minute
	// lookTimer is the key of the timer that ends a pause, or a look.
	lookTimer = "base"
)

// Red is the search for the moment at which a red base branch passes again. One
// intent at a time looks, for all of the project: it puts its own change on the
// tip, and verifies it there. So a change that mends the base branch is tried like
// any other, and a commit of a person that does is noticed by whichever looks next:
//
//	      a change fails as the base does            the base has moved, and a change passes on it; a change was merged;
//	green ----------------------------> red, looked  two different ones pass on the red tip, or the base does: it is not red
//	                                     |    ^   -----------------------------------------------------------------> green
//	                                     +----+ a look ends in vain: the next begins later
//
// The zero value is of a base branch that passes.
type Red struct {
	// Base is the tip that was found red last.
	Base string
	// Waits are the intents that wait for the base branch, in the order in which they said so.
	Waits []Waiter
	// For is the intent that looks; empty if none does.
	For forge.IntentID
	// Confirmed is set when For reports, after it was asked to look, that it waits
	// too: with another task, as while a person has paused the one that looks.
	Confirmed bool
	// Number counts the looks, also those of earlier times.
	Number int
	// Vain counts the looks that ended in vain since the newest intent came.
	Vain int
	// Due says that an intent came since the newest look began: its change is
	// tried as soon as that one has ended.
	Due bool
	// NextAt is when the next look begins, or when the present one is given up.
	NextAt time.Time
	// Passed is the intent whose change passed on Base, which may mend it.
	Passed forge.IntentID
	// Asker is the intent by which a person hears of it.
	Asker forge.IntentID
	// Mended is the tip that was red before, and Since the State.Number under which it was
	// mended: what is reported of it by an intent that has not heard so is out of date.
	Mended string
	Since  int
}

// Waiter is an intent that waits for the base branch.
type Waiter struct {
	Intent forge.IntentID
	// Tries is how often its change was verified on a red base.
	Tries int
	// Silent says that it was asked to look and did not answer, as while a person has paused
	// it. It is not asked again before it has said something; it looks as soon as it can.
	Silent bool
}

// join notes that an intent waits, and how often its change was tried more.
func (r *Red) join(id forge.IntentID, tries int) {
	i := slices.IndexFunc(r.Waits, func(w Waiter) bool { return w.Intent == id })
	r.Waits = slices.Clone(r.Waits)
	if i < 0 {
		r.Waits = append(r.Waits, Waiter{Intent: id, Tries: tries})
		return
	}
	r.Waits[i].Tries += tries
	r.Waits[i].Silent = false
}

// leave forgets an intent that does not wait any more.
func (r *Red) leave(id forge.IntentID) {
	r.Waits = slices.DeleteFunc(slices.Clone(r.Waits), func(w Waiter) bool { return w.Intent == id })
	if r.For == id {
		r.For, r.NextAt = "", time.Time{}
	}
}

// next returns the intent to look: the one that was asked least, of these the one
// that came last. Who wants to mend a red base branch comes after it was found red.
// It is empty if all of them owe an answer, so that none is asked in vain for ever.
func (r *Red) next() (id forge.IntentID) {
	least := 0
	for _, w := range r.Waits {
		if !w.Silent && (id == "" || w.Tries <= least) {
			id, least = w.Intent, w.Tries
		}
	}
	return id
}

// rest ends a look in vain.
func (r *Red) rest(now time.Time) {
	r.For, r.NextAt = "", now.Add(min(firstPause<<min(r.Vain, 10), longestPause))
	r.Vain++
}

// quiet reports whether a person hears of nothing else.
func (s *State) quiet() bool { return !s.Blocks() && s.Asker == "" && len(s.Lacks) == 0 }

// RedBase returns the tip that is known to be red; empty if none is.
func (s *State) RedBase() string {
	if s.find(forge.GitBase) == nil {
		return ""
	}
	return s.Red.Base
}

// base records the report of an intent on the base branch: its change fails as the base does,
// the intent waits because the project said so, or its change passed or failed by itself.
func (s *State) base(id forge.IntentID, m *forge.ObstacleReported, now time.Time) {
	r, known := &s.Red, s.find(forge.GitBase) != nil
	switch {
	case m.Failure.Reason == forge.FailBase && m.Base == r.Mended && m.Seen < r.Since: // it is mended
	case m.Failure.Reason == forge.FailBase:
		if !known {
			s.Closed = append(slices.Clip(s.Closed), closed(forge.GitBase, &m.Failure, now))
			if r.rest(now); s.quiet() {
				r.Asker = id
			}
		}
		r.Base = m.Base
		r.join(id, 1)
		if r.For == id {
			r.rest(now)
		}
	case !known:
	case m.Failure.Reason == forge.FailHeld:
		r.join(id, 0)
		r.Due, r.Vain, r.Confirmed = true, 0, r.Confirmed || r.For == id
	default:
		r.leave(id)
		switch {
		case m.Passed == "":
		case m.Base != r.Base:
			s.green(r.Base)
		case m.Passed == verdict.TrialBase, r.Passed != "" && r.Passed != id:
			s.green("")
		default:
			// It may mend the base branch. If the check is flaky instead, the
			// next one passes as well.
			r.Passed, r.Vain = id, 0
		}
	}
}

// green notes that the base branch passes, and which tip is not it any more.
func (s *State) green(mended string) {
	s.Number++
	s.Closed = slices.DeleteFunc(slices.Clone(s.Closed), func(c forge.Obstacle) bool { return c.Agent == forge.GitBase })
	s.Red = Red{Number: s.Red.Number, Mended: mended, Since: s.Number}
}

// Merged notes that a change was merged. It passed on exactly its parent, so
// the base branch passes.
func (s *State) Merged(out *outbox.Messages, active []forge.IntentID) {
	if s.find(forge.GitBase) != nil {
		s.green(s.Red.Base)
		s.sendAll(out, active)
	}
}

// Look has an intent look whether a red base branch passes, if it is time, and
// tells by which one a person hears of it. It is called after each decision. It
// returns the timer to set; nil if it is set already, or none has to be.
func (s *State) Look(out *outbox.Messages, project forge.Key, active []forge.IntentID, paused bool, now time.Time) *forge.Timer {
	r := &s.Red
	if s.find(forge.GitBase) == nil {
		return nil
	}
	if len(r.Waits) == 0 { // nobody would ever look; the next change finds out as well
		s.green("")
		s.sendAll(out, active)
		return nil
	}
	told := r.Waits[0].Intent
	if !s.quiet() {
		told = "" // a person hears of something else first
	}
	if told != r.Asker {
		r.Asker = told
		s.Number++
		s.sendAll(out, active)
	}
	if r.For == "" && !paused && (r.Due || !r.NextAt.After(now)) {
		r.For, r.Due, r.Confirmed, r.NextAt = r.next(), false, false, time.Time{}
		if r.For != "" {
			r.NextAt = now.Add(longestLook)
			r.Number++
			s.Number++
			s.send(out, r.For)
		}
	}
	return s.LookTimer(project)
}

// LookTimer returns the timer of a red base branch; nil if it passes.
func (s *State) LookTimer(project forge.Key) *forge.Timer {
	if s.find(forge.GitBase) == nil || s.Red.NextAt.IsZero() {
		return nil
	}
	return &forge.Timer{To: project, Key: lookTimer, At: s.Red.NextAt}
}

// NextLook ends a pause, or a look that took too long, because its timer fired,
// and reports whether it does. Look begins the next one.
func (s *State) NextLook(by rules.Version, fired *forge.TimerFired) bool {
	r := &s.Red
	if s.find(forge.GitBase) == nil || fired.Key != lookTimer || !r.NextAt.Equal(fired.At) {
		return false
	}
	if r.For != "" {
		r.join(r.For, 1)
		heard := r.Confirmed && by.Has(rules.AnsweredLook)
		for i := range r.Waits { // join has made the list its own
			r.Waits[i].Silent = r.Waits[i].Silent || r.Waits[i].Intent == r.For && !heard
		}
		r.For = ""
	}
	r.NextAt = time.Time{}
	return true
}

// RedWords says which tip of the base branch fails by which command.
func RedWords(base, command string) string {
	return fmt.Sprintf("%.10s: %q fails without any change", base, rule.FirstLine(command))
}
