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
//   - Without a terminal, in CI, or with TERM=dumb there are only the plain lines.

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Screen is the stream that a live view is printed to.
type Screen struct {
	Out   io.Writer
	Width func() int // in cells; 0 or nil: this is no terminal
	Style Style
}

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
	running map[string]*attempt
	drawn   int // lines below the scrolling ones
	closed  bool
	ended   chan struct{}
	done    sync.WaitGroup
}

// attempt is a running attempt, as it was last reported.
type attempt struct {
	forge.Progress
	began time.Time
	last  string
}

// NewLive starts a view; Close ends it.
func NewLive(screen Screen) *Live {
	l := &Live{
		screen: screen, started: time.Now(),
		intents: map[forge.Key]forge.Summary{}, running: map[string]*attempt{}, ended: make(chan struct{}),
	}
	if screen.width() > 0 {
		l.done.Go(l.clock)
	}
	return l
}

// clock draws the elapsed times.
func (l *Live) clock() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-l.ended:
			return
		case <-tick.C:
			l.mu.Lock()
			l.print(nil)
			l.mu.Unlock()
		}
	}
}

// Close removes the lines that are drawn in place; the others stay.
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

// Notice shows a line that is about no intent.
func (l *Live) Notice(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.print([]string{term.Line(text)})
}

// Decided shows a record of an intent's journal.
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

// Progress shows how an attempt goes.
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

func (a *attempt) take(p forge.Progress) {
	a.To, a.Attempt = p.To, p.Attempt
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

// format makes a line for the scroll-back.
func (l *Live) format(line Line) string {
	text := l.screen.Style.Tone(line.Tone, line.Text)
	at := l.screen.Style.Faint(line.At.Local().Format(time.TimeOnly))
	return fmt.Sprintf("%s  %s  %s", at, l.screen.Style.Bold(fmt.Sprintf("%-24s", line.Who)), text)
}

// print shows lines, and draws what is below them, in one write.
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

// below returns the lines that are drawn in place.
func (l *Live) below() []string {
	width := l.screen.width()
	if width == 0 || l.closed || len(l.intents) == 0 && len(l.running) == 0 {
		return nil
	}
	const most = 12
	list := make([]*attempt, 0, len(l.running))
	for _, a := range l.running {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b *attempt) int {
		if c := a.began.Compare(b.began); c != 0 {
			return c
		}
		return strings.Compare(Subject(&a.Progress), Subject(&b.Progress))
	})
	var lines []string
	for _, a := range list[:min(len(list), most)] {
		lines = append(lines, Cut("  "+a.line(), width-1))
	}
	if len(list) > most {
		lines = append(lines, fmt.Sprintf("  and %d more", len(list)-most))
	}
	return append(lines, l.screen.Style.Faint(Cut(l.counts(len(list)), width-1)))
}

func (a *attempt) line() string {
	elapsed := time.Since(a.began).Truncate(time.Second)
	parts := []string{
		fmt.Sprintf("%-24s", Subject(&a.Progress)), fmt.Sprintf("%-11s", StepName(a.Attempt)), fmt.Sprintf("%-7s", a.Agent),
		fmt.Sprintf("%6s", Age(elapsed)),
	}
	for _, part := range []string{Tokens(a.Usage.InputTokens + a.Usage.OutputTokens), Cost(a.Usage.CostUSD), a.last} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "  ")
}

// counts is the last line.
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
	if consumed := Consumed(&used); consumed != "" {
		text += ", " + consumed
	}
	return text
}
