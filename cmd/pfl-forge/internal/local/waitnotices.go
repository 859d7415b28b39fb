package local

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

const (
	// noticeAfter is the time without a report after which a person is told what is
	// waited for.
	noticeAfter = 5 * time.Second
	// mostWaits bounds how many waits a notice names.
	mostWaits = 3
)

// waitNotices is an observer that also reports, once nothing was reported for a
// while, which workers, intents or times are waited for.
type waitNotices struct {
	Observer

	mu sync.Mutex
	// lastSeen is the time of the last report.
	lastSeen time.Time
	// begun are attempts that a worker has reported.
	begun      map[string]bool
	lastNotice string
}

func newWaitNotices(o Observer) *waitNotices {
	return &waitNotices{Observer: o, lastSeen: time.Now(), begun: map[string]bool{}}
}

// Decided implements Observer.
func (w *waitNotices) Decided(before, after *forge.Summary, rec *forge.Record) {
	w.mu.Lock()
	w.lastSeen = time.Now()
	w.mu.Unlock()
	w.Observer.Decided(before, after, rec)
}

// Progress implements Observer.
func (w *waitNotices) Progress(p forge.Progress) {
	r := forge.Result{To: p.To, Attempt: p.Attempt}
	id := attemptOf(r.Machine(), p.Attempt)
	w.mu.Lock()
	if p.Kind == forge.ProgressEnded {
		delete(w.begun, id)
		w.lastSeen = time.Now()
	} else {
		w.begun[id] = true
	}
	w.mu.Unlock()
	w.Observer.Progress(p)
}

// noticeIfQuiet reports the waits if nothing was reported for a while, and only
// when they are others than at the last notice.
func (w *waitNotices) noticeIfQuiet(now time.Time, all []forge.Summary) {
	w.mu.Lock()
	text := ""
	if now.Sub(w.lastSeen) >= noticeAfter {
		text = w.reasons(all)
	}
	if text == w.lastNotice {
		text = ""
	}
	if text != "" {
		w.lastNotice = text
	}
	w.mu.Unlock()
	if text != "" {
		w.Notice("still waiting: " + text)
	}
}

// reasons returns why nothing happens, up to three waits; empty while an agent
// works, which the view shows. The caller holds the lock.
func (w *waitNotices) reasons(all []forge.Summary) string {
	var open, others []string
	for i := range all {
		s := &all[i]
		if s.Idle {
			continue
		}
		for _, a := range s.Open {
			begun := w.begun[attemptOf(s.Key, a)]
			if begun && !s.Key.IsProject() && a.Step != forge.StepRebase {
				return ""
			}
			open = append(open, attemptReason(s, a, begun))
		}
		if len(s.Open) == 0 && s.Activity != "" && !s.Key.IsProject() {
			others = append(others, string(s.Key.Intent)+" "+s.Activity)
		}
	}
	if len(open) == 0 {
		open = others
	}
	if more := len(open) - mostWaits; more > 0 {
		open = append(open[:mostWaits], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(open, "; ")
}

// attemptReason says for which worker an attempt waits, or that it is being
// carried out.
func attemptReason(s *forge.Summary, a forge.Attempt, begun bool) string {
	what := "the project is " + s.Activity
	if !s.Key.IsProject() || s.Activity == "" {
		what = fmt.Sprintf("%s of %s", a.Step, cmp.Or(string(a.Task), string(s.Key.Intent), "the project"))
	}
	if begun {
		return what
	}
	return "waits for the " + a.Step.Service() + ": " + what
}

// attemptOf returns the key of an attempt in begun.
func attemptOf(key forge.Key, a forge.Attempt) string { return key.String() + "/" + a.String() }
