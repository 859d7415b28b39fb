package render

// The rules of this view:
//
//   - What happened scrolls by as plain lines, the same ones everywhere; they stay
//     in the scroll-back and can be read in a file.
//   - On a terminal the lines below them, one for each running attempt and one that
//     counts, are drawn anew in place. Nothing else is; there is no full screen, no
//     alternate buffer, and no key to press but Ctrl-C.
//   - A running attempt is one line that fits: who, step, agent, elapsed, tokens,
//     cost, and what it did last. What does not fit is cut, not wrapped.
//   - Colour repeats what the words say; without colour nothing is lost.
//   - Nothing moves unless something changed, except the elapsed time, once a second.
//   - Without a terminal, in CI, or with TERM=dumb there are only the plain lines, and
//     one a minute for each call of an agent that lasts longer: that it goes on, what
//     it used, what it did last, and how long nothing has been heard of it.

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Screen is the stream that a live view is printed to. Only the view may write
// to it.
type Screen struct {
	Out io.Writer
	// Width returns the columns of the terminal. It is called for each drawing,
	// since a window can be resized. 0, or a nil function, means that this is
	// no terminal.
	Width func() int
	Style Style
}

// width is Width for a Screen that may have none.
func (s *Screen) width() int {
	if s.Width == nil {
		return 0
	}
	return s.Width()
}

// Live shows a run while it goes on. It is safe for concurrent use.
type Live struct {
	screen  Screen
	started time.Time

	mu      sync.Mutex
	intents map[forge.Key]forge.Summary
	// running has the attempts under way, by intent and attempt.
	running map[string]*attempt
	// drawn counts the lines below the scrolling ones, which the next write
	// replaces.
	drawn  int
	closed bool
	// ended is closed by Close, and done then waits for clock.
	ended chan struct{}
	done  sync.WaitGroup
}

// attempt is a running attempt, as it was last reported.
type attempt struct {
	forge.Progress
	// began is the time of its first report.
	began time.Time
	// last is the last text that it reported, cut, and heard the time of its last report.
	last     string
	reported time.Time
}

// NewLive starts a view; Close ends it.
func NewLive(screen Screen) *Live {
	l := &Live{
		screen: screen, started: time.Now(),
		intents: map[forge.Key]forge.Summary{}, running: map[string]*attempt{}, ended: make(chan struct{}),
	}
	l.done.Go(l.clock)
	return l
}

// clock draws the elapsed times anew, once a second, until Close; without a terminal it prints
// them once a minute.
func (l *Live) clock() {
	every := time.Second
	if l.screen.width() == 0 {
		every = sayEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-l.ended:
			return
		case now := <-tick.C:
			l.mu.Lock()
			l.print(l.lasting(now))
			l.mu.Unlock()
		}
	}
}

const (
	// sayEvery is the time between two lines about a call that goes on, without a terminal.
	sayEvery = time.Minute
	// silence is how long nothing is heard of a call before that is shown: models think for long.
	silence = 20 * time.Second
)

// lasting returns a line for each call of an agent that has gone on for a while, without a
// terminal: where nothing is drawn in place, a call that takes long looks like one that hangs.
func (l *Live) lasting(now time.Time) (lines []string) {
	if l.screen.width() > 0 {
		return nil
	}
	for _, a := range l.byAge() {
		if worthALine(a.Attempt.Step) && now.Sub(a.began) >= sayEvery {
			parts := []string{StepName(a.Attempt) + ": running for " + elapsed(a, now), ConsumedOf(&a.Usage), a.silent(now), a.last}
			parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
			lines = append(lines, l.format(Line{At: now, Who: Subject(&a.Progress), Text: strings.Join(parts, ", ")}))
		}
	}
	return lines
}

// byAge returns the attempts under way, the oldest first. The caller holds the lock.
func (l *Live) byAge() []*attempt {
	list := slices.Collect(maps.Values(l.running))
	slices.SortFunc(list, func(a, b *attempt) int {
		return cmp.Or(a.began.Compare(b.began), strings.Compare(Subject(&a.Progress), Subject(&b.Progress)))
	})
	return list
}

// silent says how long nothing has been heard of an attempt; empty if that is not long.
func (a *attempt) silent(now time.Time) string {
	if d := now.Sub(a.reported); !a.reported.IsZero() && d >= silence {
		return "silent for " + Age(d.Truncate(time.Second))
	}
	return ""
}

// Close removes the lines that are drawn in place; the others stay. It may be
// called again.
func (l *Live) Close() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.closed = true
	l.running = map[string]*attempt{}
	l.print(nil)
	close(l.ended)
	l.mu.Unlock()
	l.done.Wait()
}

// State sets the summaries of all intents, at the start.
func (l *Live) State(all []forge.Summary) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range all {
		l.intents[s.Key] = s
	}
	l.print(nil)
}

// Notice prints a line that is about no intent.
func (l *Live) Notice(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.print([]string{term.Line(text)})
}

// Decided prints the lines of a record of an intent's journal, given the
// summaries before and after it.
func (l *Live) Decided(before, after *forge.Summary, rec *forge.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.intents[after.Key] = *after
	for id, a := range l.running {
		over := a.To == after.Key && a.Attempt.Step != forge.StepMerge && !after.Wants(a.Attempt)
		if over {
			delete(l.running, id)
		}
	}
	var lines []string
	for _, line := range Lines(before, after, rec) {
		lines = append(lines, l.format(line))
	}
	l.print(lines)
}

// Progress shows how an attempt goes. Without a terminal only its beginning is
// printed.
func (l *Live) Progress(p forge.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := p.To.String() + "/" + p.Attempt.String()
	a := l.running[id]
	switch {
	case p.Kind == forge.ProgressEnded:
		delete(l.running, id)
	case a == nil:
		a = &attempt{began: p.At}
		l.running[id] = a
	}
	if a != nil {
		a.take(p)
	}
	var lines []string
	if p.Kind == forge.ProgressStarted && l.screen.width() == 0 && worthALine(p.Attempt.Step) {
		lines = append(lines, l.format(Line{At: p.At, Who: Subject(&p), Text: StepName(p.Attempt) + " started"}))
	}
	l.print(lines)
}

// worthALine reports whether the beginning of a step is printed: short ones
// print only their end.
func worthALine(s forge.Step) bool {
	return s.CallsAgent() && s != forge.StepReflect
}

// Subject returns the id of the task that progress is about, or of the intent.
func Subject(p *forge.Progress) string {
	if p.Attempt.Task != "" {
		return string(p.Attempt.Task)
	}
	return string(p.To.Intent)
}

// take brings an attempt up to date with a report of it.
func (a *attempt) take(p forge.Progress) {
	a.To, a.Attempt, a.reported = p.To, p.Attempt, p.At
	if p.Agent != "" {
		a.Agent = term.Short(p.Agent, 20)
	}
	if p.Usage != (forge.Usage{}) {
		a.Usage = p.Usage
	}
	if p.Text != "" {
		a.last = term.Short(p.Text, 200)
	}
}

// format returns a line for the scroll-back: time, who, and the text in its
// colour.
func (l *Live) format(line Line) string {
	text := l.screen.Style.Tone(line.Tone, line.Text)
	at := l.screen.Style.Faint(line.At.Local().Format(time.TimeOnly))
	return fmt.Sprintf("%s  %s  %s", at, l.screen.Style.Bold(fmt.Sprintf("%-24s", line.Who)), text)
}

// print shows lines, and draws what is below them, in one write, so that
// nothing flickers. The caller holds the lock.
func (l *Live) print(lines []string) {
	var b bytes.Buffer
	if l.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", l.drawn)
	}
	for _, line := range lines {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	below := l.below()
	for _, line := range below {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	l.drawn = len(below)
	if b.Len() > 0 {
		_, _ = l.screen.Out.Write(b.Bytes())
	}
}

// below returns the lines that are drawn in place, at most fourteen of them.
func (l *Live) below() []string {
	width := l.screen.width()
	if width == 0 || l.closed || len(l.intents) == 0 && len(l.running) == 0 {
		return nil
	}
	const most = 12
	list := l.byAge()
	var lines []string
	for _, a := range list[:min(len(list), most)] {
		lines = append(lines, Cut("  "+a.line(time.Now()), width-1))
	}
	if len(list) > most {
		lines = append(lines, fmt.Sprintf("  and %d more", len(list)-most))
	}
	return append(lines, l.screen.Style.Faint(Cut(l.counts(len(list)), width-1)))
}

// counts returns the last line: numbers of intents and attempts, time, tokens
// and costs.
func (l *Live) counts(running int) string {
	all := make([]forge.Summary, 0, len(l.intents))
	var used forge.Usage
	for _, s := range l.intents {
		all = append(all, s)
		used = used.Add(s.Usage)
	}
	for _, a := range l.running {
		used = used.Add(a.Usage) // it is in no journal yet
	}
	text := fmt.Sprintf("%d running, %s, %s", running, Tally(all), Age(time.Since(l.started)))
	if consumed := ConsumedOf(&used); consumed != "" {
		text += ", " + consumed
	}
	return text
}
