package render

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// maxRecent bounds how many lines of what happened a Board keeps.
const maxRecent = 200

// Board is the live view of a project: its intents, the attempts under way, and the
// last events. It is safe for concurrent use.
type Board struct {
	project forge.ProjectID
	wake    func()
	// key returns the action that the board offers for an intent, such as "a
	// approve".
	key func(*forge.Summary) string

	mu      sync.Mutex
	intents map[forge.Key]forge.Summary
	running map[string]*attempt
	recent  []Line
	idle    bool // idle
	message string
	all     bool // also those that are over
	chosen  forge.IntentID
	first   int // row of the list that is shown first
}

// NewBoard returns an empty board. wake is called after each change, without a lock
// held. key returns the key, with its name, that the board shows for the chosen
// intent.
func NewBoard(project forge.ProjectID, wake func(), key func(*forge.Summary) string) *Board {
	return &Board{project: project, wake: wake, key: key, intents: map[forge.Key]forge.Summary{}, running: map[string]*attempt{}}
}

// State sets the summaries of all intents. A run goes on, unless Idle is called after it.
func (b *Board) State(all []forge.Summary) {
	b.change(func() {
		b.idle = false
		b.intents = map[forge.Key]forge.Summary{}
		for i := range all {
			b.intents[all[i].Key] = all[i]
		}
	})
}

// Notice shows a message that is about no intent.
func (b *Board) Notice(text string) { b.change(func() { b.message = term.Line(text) }) }

// Idle sets whether idle.
func (b *Board) Idle(idle bool) {
	b.change(func() {
		b.idle = idle
		if idle {
			b.running = map[string]*attempt{}
		}
	})
}

// Decided shows a record of an intent's journal, and the summary after it.
func (b *Board) Decided(before, after *forge.Summary, rec *forge.Record) {
	b.change(func() {
		b.intents[after.Key] = *after
		for id, a := range b.running {
			if a.To == after.Key && a.Attempt.Step != forge.StepMerge && !after.Wants(a.Attempt) {
				delete(b.running, id)
			}
		}
		b.recent = append(b.recent, Lines(before, after, rec)...)
		if over := len(b.recent) - maxRecent; over > 0 {
			b.recent = slices.Clone(b.recent[over:])
		}
	})
}

// Progress shows the progress of an attempt.
func (b *Board) Progress(p forge.Progress) {
	b.change(func() {
		id := p.To.String() + "/" + p.Attempt.String()
		if p.Kind == forge.ProgressEnded {
			delete(b.running, id)
			return
		}
		if b.running[id] == nil {
			b.running[id] = &attempt{began: p.At}
		}
		b.running[id].take(p)
	})
}

func (b *Board) change(do func()) {
	b.mu.Lock()
	do()
	b.mu.Unlock()
	b.wake()
}

// Chosen returns the intent that the mark is at; false if there is none.
func (b *Board) Chosen() (forge.Summary, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list, _ := b.listed()
	i := b.mark(list)
	if i < 0 {
		return forge.Summary{}, false
	}
	return list[i], true
}

// Move moves the mark by some intents.
func (b *Board) Move(by int) {
	b.change(func() {
		list, _ := b.listed()
		if len(list) == 0 {
			return
		}
		i := min(max(b.mark(list)+by, 0), len(list)-1)
		b.chosen = list[i].Key.Intent
	})
}

// NextWaiting moves the mark to the next intent that waits for a person.
func (b *Board) NextWaiting() {
	b.change(func() {
		list, _ := b.listed()
		at := b.mark(list)
		for n := range list {
			if s := &list[(at+1+n)%len(list)]; s.Waiting != "" {
				b.chosen = s.Key.Intent
				return
			}
		}
	})
}

// ToggleAll shows or hides the intents that are over.
func (b *Board) ToggleAll() { b.change(func() { b.all = !b.all }) }

// listed returns the intents that are shown, each with how deep it is.
func (b *Board) listed() ([]forge.Summary, []int) {
	var list []forge.Summary
	for _, s := range b.intents {
		if b.all || !s.Status.Ended() || s.Status.Failed() {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(x, y forge.Summary) int { return strings.Compare(string(x.Key.Intent), string(y.Key.Intent)) })
	return Tree(list)
}

// mark returns where the mark is, -1 if the list is empty.
func (b *Board) mark(list []forge.Summary) int {
	i := slices.IndexFunc(list, func(s forge.Summary) bool { return s.Key.Intent == b.chosen })
	if i < 0 && len(list) > 0 {
		return 0
	}
	return i
}

// attempts returns the running attempts of an intent, the one that began first at
// first. Of those that began before the board, only the names are known.
func (b *Board) attempts() []*attempt {
	if b.idle {
		return nil
	}
	list := slices.Collect(maps.Values(b.running))
	slices.SortFunc(list, func(x, y *attempt) int {
		if c := x.began.Compare(y.began); c != 0 {
			return c
		}
		return strings.Compare(x.To.String()+x.Attempt.String(), y.To.String()+y.Attempt.String())
	})
	return list
}

// countQueued counts the attempts that wait for a worker.
func (b *Board) countQueued() int {
	if b.idle {
		return 0
	}
	n := 0
	for key, s := range b.intents {
		for _, a := range s.Open {
			if b.running[key.String()+"/"+a.String()] == nil {
				n++
			}
		}
	}
	return n
}

// used returns the usage of all intents and running attempts.
func (b *Board) used() forge.Usage {
	var u forge.Usage
	for _, s := range b.intents {
		u = u.Add(s.Usage)
	}
	for _, a := range b.running {
		u = u.Add(a.Usage)
	}
	return u
}

func (b *Board) summaries() []forge.Summary {
	list := make([]forge.Summary, 0, len(b.intents))
	for _, s := range b.intents {
		list = append(list, s)
	}
	return list
}

func elapsed(a *attempt, now time.Time) string {
	if a.began.IsZero() {
		return "-"
	}
	return Age(now.Sub(a.began).Truncate(time.Second))
}
