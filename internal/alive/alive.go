// Package alive notices that a loop of the process has stood still, which nothing but a new
// start mends.
//
// A loop says when it begins something that cannot take long ([Loop.Busy]), and when it
// waits for something that may ([Loop.Rest]): the next message, an agent, a server that is away.
// Whoever asks [Watch.Stuck] hears of loops that have been busy with one thing for longer
// than [Patience].
package alive

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Patience is how long a loop may be busy with one thing. All requests to a server end much
// earlier, also without an answer.
const Patience = time.Minute

// Watch has the loops of a process. The zero value has none, and a nil Watch watches nothing.
// It is safe for concurrent use.
type Watch struct {
	mu    sync.Mutex
	loops map[*Loop]bool
}

// Loop is one of them, or one of many calls that are under way. A nil Loop is not watched. It
// is used by one goroutine.
type Loop struct {
	watch *Watch
	name  string
	// since is when the loop became busy; zero while it rests.
	since time.Time
}

// Loop adds a loop, which rests. The caller ends with End. The name is shown to operators.
func (w *Watch) Loop(name string) *Loop {
	if w == nil {
		return nil
	}
	l := &Loop{watch: w, name: name}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.loops == nil {
		w.loops = map[*Loop]bool{}
	}
	w.loops[l] = true
	return l
}

// Begin is Loop for one that is busy already.
func (w *Watch) Begin(name string) *Loop {
	l := w.Loop(name)
	l.Busy()
	return l
}

// Busy says that the loop begins the next thing, which cannot take long.
func (l *Loop) Busy() { l.set(time.Now()) }

// Rest says that the loop waits, for as long as that takes.
func (l *Loop) Rest() { l.set(time.Time{}) }

// set notes since when the loop is busy.
func (l *Loop) set(since time.Time) {
	if l == nil {
		return
	}
	l.watch.mu.Lock()
	defer l.watch.mu.Unlock()
	l.since = since
}

// End removes the loop.
func (l *Loop) End() {
	if l == nil {
		return
	}
	l.watch.mu.Lock()
	defer l.watch.mu.Unlock()
	delete(l.watch.loops, l)
}

// Working returns the names of the loops that are busy now, sorted.
func (w *Watch) Working() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for l := range w.loops {
		if !l.since.IsZero() {
			list = append(list, l.name)
		}
	}
	slices.Sort(list)
	return list
}

// Stuck returns nil, or an error that names the loops that stand still, and says since when.
func (w *Watch) Stuck() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	longest, count := map[string]time.Duration{}, map[string]int{}
	for l := range w.loops {
		if l.since.IsZero() {
			continue
		}
		if d := time.Since(l.since); d > Patience {
			longest[l.name] = max(longest[l.name], d)
			count[l.name]++
		}
	}
	if len(count) == 0 {
		return nil
	}
	var list []string
	for name, n := range count {
		list = append(list, fmt.Sprintf("%s: %d for up to %s", name, n, longest[name].Round(time.Second)))
	}
	slices.Sort(list)
	return fmt.Errorf("stands still: %s", strings.Join(list, ", "))
}
