package render

// The rules of this view:
//
//   - The first line counts, the last one says which keys there are; between them are, from
//     the top, the attempts that run, the list of intents under a header, and, if there is
//     room, what happened last.
//   - An intent is one line: mark, id, status, tasks, age, cost, title, and what it does or
//     waits for. Under it is a line for each overlap of two tasks.
//   - What does not fit is cut, never wrapped. What waits for a person has the colour of
//     attention, and says so in words.

import (
	"fmt"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// row is a line of the list: an intent, or something about one below it.
type row struct {
	text string
	// paint colours the text, after it was cut to the width.
	paint func(string) string
	// intent is the index of the intent that it belongs to; -1 for the header.
	intent int
	// head says that it is the line of the intent itself.
	head bool
}

// Draw returns the lines of the board for a terminal of some size, exactly rows
// of them. prompt takes the place of the keys, if it is not empty.
func (b *Board) Draw(columns, rows int, now time.Time, style Style, prompt string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if columns < 10 || rows < 4 {
		return []string{Cut("too small", columns)}
	}
	list, depths := b.listed()
	marked := b.mark(list)
	lines := []string{style.Bold(Cut(b.title(now, len(list), marked), columns)), ""}
	room := rows - 4 // title, two empty lines, keys
	recent := min(len(b.recent), room/3)
	if room >= minRoom {
		for _, line := range b.atWork(room/4, now) {
			lines = append(lines, Cut(line, columns))
		}
	}
	body := b.rows(list, depths, marked, columns, now, style)
	if room >= minRoom {
		lines = append(lines, style.Faint(Cut(body[0].text, columns)))
	}
	body = body[1:]
	room -= len(lines) - 2
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

// minRoom is the least number of lines for more than the list of intents.
const minRoom = 6

// atWork returns lines for the attempts that run, at most so many, and an empty one after
// them.
func (b *Board) atWork(most int, now time.Time) []string {
	list := b.attempts()
	if len(list) == 0 {
		return nil
	}
	var lines []string
	for _, a := range list[:min(most, len(list))] {
		lines = append(lines, "  "+a.line(now))
	}
	if more := len(list) - len(lines); more > 0 {
		lines[len(lines)-1] = fmt.Sprintf("  and %d more", more+1)
	}
	return append(lines, "")
}

// title returns the first line: the position of the mark in a list of so many
// intents, counts and costs.
func (b *Board) title(now time.Time, intents, marked int) string {
	parts := []string{"pfl-forge  " + string(b.project)}
	if intents > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d", marked+1, intents))
	}
	parts = append(parts, Tally(b.summaries()), fmt.Sprintf("%d running", len(b.attempts())))
	if n := b.countQueued(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d queued", n))
	}
	used := b.used()
	if text := ConsumedOf(&used); text != "" {
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

// keys returns the last line: what a person can press, and the action on the
// chosen intent.
func (b *Board) keys(list []forge.Summary, marked int) string {
	parts := []string{"up/down select", "tab next waiting", "enter show", "l log"}
	if marked >= 0 {
		parts = append(parts, b.key(&list[marked]))
	}
	return strings.Join(append(parts, "o all/open", "q quit"), "   ")
}

// rows returns the header of the list, and a row for each intent and overlap.
// Titles get half of the width that other columns leave.
func (b *Board) rows(list []forge.Summary, depths []int, marked, columns int, now time.Time, style Style) []row {
	wide, title := 12, len("TITLE")
	for i := range list {
		wide = max(wide, 2*depths[i]+len(list[i].Key.Intent))
		title = max(title, runewidth.StringWidth(term.Line(list[i].Title)))
	}
	title = min(title, max((columns-wide-45)/2, minColumn))
	header := fmt.Sprintf("  %-*s  %-9s  %5s  %5s  %7s  %-*s  %s", wide, "ID", "STATUS", "TASKS", "AGE", "COST", title, "TITLE", "NOW")
	all := []row{{header, plain, -1, false}}
	for i := range list {
		s := &list[i]
		mark := "  "
		if i == marked {
			mark = "> "
		}
		id := strings.Repeat("  ", depths[i]) + string(s.Key.Intent)
		text := fmt.Sprintf("%s%-*s  %-9s  %5s  %5s  %7s  %s  %s", mark, wide, id, s.Status, share(s), Age(now.Sub(s.CreatedAt)),
			Cost(s.Usage.CostUSD), runewidth.FillRight(Cut(term.Line(s.Title), title), title), term.Line(FromNow(doing(s), now)))
		paint := func(text string) string { return style.Status(s, text) }
		if i == marked {
			paint = func(text string) string { return style.Marked(style.Status(s, text)) }
		}
		all = append(all, row{text, paint, i, true})
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

// plain is the paint of text without a colour.
func plain(text string) string { return text }

// share returns how many of an intent's child intents or tasks are done, such
// as "2/3".
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

// line returns an attempt as columns: who, step, agent, elapsed, and then
// as far as they are known tokens, cost and the last thing that it did.
func (a *attempt) line(now time.Time) string {
	parts := []string{
		fmt.Sprintf("%-24s", Subject(&a.Progress)), fmt.Sprintf("%-11s", StepName(a.Attempt)), fmt.Sprintf("%-8s", a.Agent),
		fmt.Sprintf("%6s", elapsed(a, now)),
	}
	for _, part := range []string{Tokens(Fresh(&a.Usage)), Cost(a.Usage.CostUSD), a.silent(now), a.last} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "  ")
}

// window returns the part of the list that there is room for, with the mark in
// it. It moves as little as it can from one drawing to the next.
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
