package render

// The rules of this view:
//
//   - The first line counts, the last one says which keys there are; between them is the
//     list of intents, and below it, if there is room, what happened last.
//   - An intent is one line: mark, id, status, tasks, age, cost, what goes on. Under it is a line for
//     each attempt that runs, and one for each conflict that is foreseen.
//   - What does not fit is cut, never wrapped. What waits for a person has the colour of
//     attention, and says so in words.

import (
	"fmt"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// row is a line of the list.
type row struct {
	text   string
	paint  func(string) string
	intent int // index of the intent that it belongs to
	head   bool
}

// Draw returns the lines of the board for a terminal of some size. Prompt takes the
// place of the keys, if it is not empty.
func (b *Board) Draw(columns, rows int, now time.Time, style Style, prompt string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if columns < 10 || rows < 4 {
		return []string{Cut("too small", columns)}
	}
	list, depths := b.listed()
	marked := b.mark(list)
	lines := []string{style.Bold(Cut(b.title(now), columns)), ""}
	room := rows - 4 // title, two empty lines, keys
	recent := min(len(b.recent), room/3)
	body := b.rows(list, depths, marked, now, style)
	shown := b.window(body, marked, room-recent)
	for _, r := range shown {
		lines = append(lines, r.paint(Cut(r.text, columns)))
	}
	if len(body) == 0 {
		lines = append(lines, style.Faint(Cut("no open intents", columns)))
	}
	for len(lines) < rows-2-recent {
		lines = append(lines, "")
	}
	for _, l := range b.recent[len(b.recent)-recent:] {
		text := fmt.Sprintf("%s  %-24s  %s", l.At.Local().Format(time.TimeOnly), l.Who, l.Text)
		lines = append(lines, style.Tone(l.Tone, Cut(text, columns)))
	}
	lines = append(lines, "")
	if prompt != "" {
		return append(lines[:rows-1], style.Attention(Cut(prompt, columns)))
	}
	return append(lines[:rows-1], style.Faint(Cut(b.keys(list, marked), columns)))
}

// title is the first line.
func (b *Board) title(now time.Time) string {
	parts := []string{"pfl-forge  " + string(b.project), Tally(b.summaries()), fmt.Sprintf("%d running", b.countRunning())}
	used := b.used()
	if text := Consumed(&used); text != "" {
		parts = append(parts, text)
	}
	parts = append(parts, now.Local().Format(time.TimeOnly))
	if b.idle {
		parts = append(parts, "idle")
	}
	if b.message != "" {
		parts = append(parts, b.message)
	}
	return strings.Join(parts, "   ")
}

// keys says what a person can do.
func (b *Board) keys(list []forge.Summary, marked int) string {
	parts := []string{"up/down select", "tab next waiting", "enter show", "l log"}
	if marked >= 0 {
		parts = append(parts, b.key(&list[marked]))
	}
	return strings.Join(append(parts, "o all/open", "q quit"), "   ")
}

func (b *Board) rows(list []forge.Summary, depths []int, marked int, now time.Time, style Style) []row {
	wide := 12
	for i := range list {
		wide = max(wide, 2*depths[i]+len(list[i].Key.Intent))
	}
	var all []row
	for i := range list {
		s := &list[i]
		mark := "  "
		if i == marked {
			mark = "> "
		}
		id := strings.Repeat("  ", depths[i]) + string(s.Key.Intent)
		text := fmt.Sprintf("%s%-*s  %-9s  %5s  %5s  %7s  %s", mark, wide, id, s.Status, share(s), Age(now.Sub(s.CreatedAt)),
			Cost(s.Usage.CostUSD), term.Line(whatGoesOn(s)))
		paint := func(text string) string { return style.Status(s, text) }
		if i == marked {
			paint = func(text string) string { return style.Marked(style.Status(s, text)) }
		}
		all = append(all, row{text, paint, i, true})
		for _, a := range b.attempts(s) {
			if b.idle {
				break
			}
			all = append(all, row{"      " + a.boardLine(now), plain, i, false})
		}
		for _, t := range s.Tasks {
			for _, o := range t.Overlaps {
				all = append(all, row{
					fmt.Sprintf("      ! %s conflicts with %s: %s", t.ID, o.TaskID, term.Line(files(o.Files))), style.Attention, i, false,
				})
			}
		}
	}
	return all
}

func plain(text string) string { return text }

// share says how many of an intent's parts or tasks are done.
func share(s *forge.Summary) string {
	if n := len(s.Children); n > 0 {
		done := 0
		for _, c := range s.Children {
			if c.Status == forge.StatusDone {
				done++
			}
		}
		return fmt.Sprintf("%d/%d", done, n)
	}
	if s.TaskCount == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", s.TasksDone, s.TaskCount)
}

func whatGoesOn(s *forge.Summary) string {
	if text := Doing(s); text != "" {
		return text
	}
	return s.Title
}

func (a *attempt) boardLine(now time.Time) string {
	parts := []string{
		fmt.Sprintf("%-24s", Subject(&a.Progress)), fmt.Sprintf("%-11s", StepName(a.Attempt)), fmt.Sprintf("%-8s", a.Agent),
		fmt.Sprintf("%6s", elapsed(a, now)),
	}
	for _, part := range []string{Tokens(a.Usage.InputTokens + a.Usage.OutputTokens), Cost(a.Usage.CostUSD), a.last} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "  ")
}

// window returns the part of the list that there is room for, with the mark in it.
func (b *Board) window(all []row, marked, room int) []row {
	if room <= 0 {
		return nil
	}
	for i, r := range all {
		if r.intent != marked {
			continue
		}
		if r.head && i < b.first {
			b.first = i
		}
		if r.head && i >= b.first+room {
			b.first = i - room + 1
		}
	}
	b.first = max(0, min(b.first, len(all)-room))
	return all[b.first:min(b.first+room, len(all))]
}
