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

// maxRecent bounds the lines of past events that a Board keeps.
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
	// running has the attempts under way that reported something, by intent and
	// attempt.
	running map[string]*attempt
	recent  []Line
	// idle says that no run is going on: then no attempt is shown as running.
	idle bool
	// message is shown in the first line until another one replaces it.
	message string
	// all shows the intents that are over, too.
	all bool
	// chosen is the intent that the mark is at. It may have left the list: see
	// mark.
	chosen forge.IntentID
	// first is the row of the list that is shown first.
	first int
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

// Notice shows a message that is about no intent, until the next one.
func (b *Board) Notice(text string) { b.change(func() { b.message = term.Line(text) }) }

// Idle sets whether no run is going on.
func (b *Board) Idle(idle bool) {
	b.change(func() {
		b.idle = idle
		if idle {
			b.running = map[string]*attempt{}
		}
	})
}

// Decided shows a record of an intent's journal, given the summaries before and
// after it. Attempts that the intent does not want any more leave the board.
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

// Progress shows the progress of an attempt, until it ends.
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

// change changes the board under its lock, and has it drawn anew.
func (b *Board) change(do func()) {
	b.mu.Lock()
	do()
	b.mu.Unlock()
	b.wake()
}

// Chosen returns the intent that the mark is at; false if the list is empty.
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

// Move moves the mark down by some intents, or up. It stays within the list.
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

// NextWaiting moves the mark to the next intent that waits for a person, and
// around the end. It stays if there is none.
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

// listed returns the intents that are shown, each with its depth below its
// parent. Those that are over are left out, except failed ones, unless all are
// shown.
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

// mark returns the index of the chosen intent; that of the first one if it has
// left the list, -1 if the list is empty.
func (b *Board) mark(list []forge.Summary) int {
	i := slices.IndexFunc(list, func(s forge.Summary) bool { return s.Key.Intent == b.chosen })
	if i < 0 && len(list) > 0 {
		return 0
	}
	return i
}

// attempts returns the running attempts, the one that began first at first.
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

// countQueued counts the attempts that are issued and have reported nothing:
// they wait for a worker.
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

// used returns the usage of all intents and running attempts, whose own is in
// no journal yet.
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

// summaries returns all intents, in no order.
func (b *Board) summaries() []forge.Summary {
	list := make([]forge.Summary, 0, len(b.intents))
	for _, s := range b.intents {
		list = append(list, s)
	}
	return list
}

// elapsed returns the time since an attempt began; "-" if that is not known.
func elapsed(a *attempt, now time.Time) string {
	if a.began.IsZero() {
		return "-"
	}
	return Age(now.Sub(a.began).Truncate(time.Second))
}
