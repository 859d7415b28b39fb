package pulls

import (
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
)

// tracked is a pull request that we know of.
type tracked struct {
	// to and attempt are those of the step that made it.
	to      forge.Key
	attempt forge.Attempt
	// marked says that a mark names them, which everybody who may write can
	// edit: it is read at each look.
	marked bool
	// queue says that the forge's own queue merges it, by the word of a step or of a mark
	// that was read before: whoever edits the mark does not keep us from taking it out.
	queue bool
	// head is the commit that it had at the last look.
	head git.OID
	// reported is the digest of the snapshot that was reported last, at the
	// time at; empty where a step has answered since: the rules go by the
	// newest that they have, and that answer may have said something else.
	reported string
	at       time.Time
	// times counts how often that was reported, and unwanted says that a runner
	// knows no such attempt.
	times    int
	unwanted bool
	// closed says that it was closed because its intent or task was stopped, which is done once.
	closed bool
	// answers counts the answers of steps: a look during which there was one
	// does not count as told.
	answers int
	// refused has the words of the last refusal to merge it, for as long as a
	// look shows what it showed then.
	refused, refusedAt string
}

// track remembers which attempt a pull request belongs to. What is seen next is
// reported, whatever was before.
func (w *watch) track(repository string, number int64, t *tracked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pulls[pullKey{repository, number}] = t
}

// isQueued reports whether a pull request is known to be merged by the forge's own queue.
func (w *watch) isQueued(key pullKey) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.pulls[key]
	return t != nil && t.queue
}

// answered notes that a step has answered how a pull request is. What is seen
// next is reported, whatever was before.
func (w *watch) answered(repository string, number int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.pulls[pullKey{repository, number}]; t != nil {
		t.reported = ""
		t.answers++
	}
}

// answersOf returns how many answers of steps there were about a pull request.
func (w *watch) answersOf(key pullKey) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.pulls[key]; t != nil {
		return t.answers
	}
	return 0
}

// refuse remembers that the forge refused to merge what a look shows, whose
// reasons it may show nowhere else.
func (w *watch) refuse(repository string, number int64, s *forge.PullRequest, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.pulls[pullKey{repository, number}]; t != nil {
		t.refused, t.refusedAt = reason, digestOf(s)
	}
}

// refusal returns the words of the last refusal, if a look shows what it showed
// then; otherwise they are forgotten.
func (t *tracked) refusal(s *forge.PullRequest) string {
	if t.refused != "" && t.refusedAt != digestOf(s) {
		t.refused, t.refusedAt = "", ""
	}
	return t.refused
}

// pause returns after what time a look that was reported is reported again although nothing is new.
// The rules go by the time of a look, and the clock of the gateway that looked before may have been
// ahead of ours: then they did not hear of it, and do not say so. One that is open is told of with
// each sweep, one that has ended with pauses that double, and what no runner wants after an hour.
func (k *Keeper) pause(t *tracked, s *forge.PullRequest) time.Duration {
	d := max(k.cfg.Every, again)
	if s.State != forge.PullOpen {
		d <<= min(max(t.times-1, 0), 10)
	}
	if t.unwanted {
		d = slowest
	}
	return min(d, slowest)
}

// lookAgain has a pull request that has ended lately looked at again at a time:
// no sweep does. After the longest pause all clocks agree.
func (k *Keeper) lookAgain(key pullKey, s *forge.PullRequest, next time.Time) {
	if s.State != forge.PullOpen && !k.old[key] && next.Before(s.Seen.Add(slowest)) {
		k.due[key] = next
	}
}
