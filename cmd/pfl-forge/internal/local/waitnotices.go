package local

import (
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

// waitNotices is an observer that also reports what is waited for, once nothing was
// reported for a while.
type waitNotices struct {
	Observer

	mu sync.Mutex
	// lastSeen is when something was reported last.
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

// noticeIfQuiet reports what is waited for if nothing was reported for a while, each
// notice once.
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

// reasons returns why nothing happens; empty while an agent works, which was
// reported.
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

func attemptReason(s *forge.Summary, a forge.Attempt, begun bool) string {
	what := "the project is " + s.Activity
	if !s.Key.IsProject() {
		who := string(s.Key.Intent)
		if a.Task != "" {
			who = string(a.Task)
		}
		what = fmt.Sprintf("%s of %s", a.Step, who)
	}
	if begun {
		return what
	}
	return "waits for the " + a.Step.Service() + ": " + what
}

func attemptOf(key forge.Key, a forge.Attempt) string { return key.String() + "/" + a.String() }
