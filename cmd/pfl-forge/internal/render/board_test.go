package render

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/pfl-forge/pfl-forge"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func boardOf(all ...forge.Summary) *Board {
	b := NewBoard("shop", func() {}, func(s *forge.Summary) string {
		if s.Waiting == forge.WaitingApproval {
			return "a approve"
		}
		return "p pause"
	})
	b.State(all)
	return b
}

func open(id string, change func(*forge.Summary)) forge.Summary {
	s := forge.Summary{
		Key: forge.Key{Project: "shop", Intent: forge.IntentID(id)}, Title: "Title of " + id, Status: forge.StatusExecuting, CreatedAt: noon.Add(-time.Hour),
	}
	if change != nil {
		change(&s)
	}
	return s
}

func TestBoard(t *testing.T) {
	b := boardOf(
		open("big", func(s *forge.Summary) {
			s.Children = []forge.ChildSummary{{ID: "part", Status: forge.StatusExecuting}, {ID: "other", Status: forge.StatusDone}}
		}),
		open("part", func(s *forge.Summary) {
			s.Parent, s.TaskCount, s.TasksDone, s.Usage.CostUSD = "big", 3, 1, 0.5
			s.Open = []forge.Attempt{
				{Task: "part-002", Step: forge.StepImplement, Number: 2, Claim: 1}, {Task: "part-003", Step: forge.StepImplement, Number: 1, Claim: 1},
			}
			s.Tasks = []forge.TaskSummary{{ID: "part-002", Overlaps: []forge.Overlap{{TaskID: "zoo-001", Files: []string{"a.go"}}}}}
		}),
		open("zoo", func(s *forge.Summary) { s.Waiting, s.Activity = forge.WaitingApproval, "needs your approval" }),
		open("over", func(s *forge.Summary) { s.Status = forge.StatusDone }),
	)
	b.Progress(forge.Progress{
		To: forge.Key{Project: "shop", Intent: "part"}, Attempt: forge.Attempt{Task: "part-002", Step: forge.StepImplement, Number: 2, Claim: 1},
		Kind: forge.ProgressTool, Agent: "claude", Text: "Edit \x1b[2Jmain.go",
		Usage: forge.Usage{InputTokens: 1200, CostUSD: 0.25}, At: noon.Add(-90 * time.Second),
	})
	want := []string{
		"pfl-forge  shop   1 of 3   2 open, 1 waits for you, 1 done   1 running   1 queued   1.2k tokens, $0.75   12:00:00",
		"",
		"  part-002                  implement 2  claude        1m  1.2k  $0.25  silent for 1m  Edit main.go",
		"",
		"  ID            STATUS     TASKS    AGE     COST  TITLE         NOW",
		"> big           executing    1/2  1h00m           Title of big",
		"    part        executing    1/3  1h00m    $0.50  Title of part",
		"      ! part-002 conflicts with zoo-001: a.go",
		"  zoo           executing      -  1h00m           Title of zoo  needs your approval",
	}
	at := noon.In(time.Local)
	got := b.Draw(120, 20, at, Style{}, "")
	for i, line := range want {
		line = strings.Replace(line, "12:00:00", at.Format(time.TimeOnly), 1)
		if normal(got[i]) != normal(line) {
			t.Errorf("line %d:\n got %q\nwant %q", i+1, got[i], line)
		}
	}
	if last := got[len(got)-1]; len(got) != 20 || !strings.Contains(last, "p pause") || strings.Contains(last, "a approve") {
		t.Errorf("%d lines, the last is %q", len(got), last)
	}
	b.NextWaiting()
	if s, ok := b.Chosen(); !ok || s.Key.Intent != "zoo" {
		t.Errorf("chosen: %v", s.Key)
	}
	if got := b.Draw(120, 20, at, Style{}, ""); !strings.Contains(got[19], "a approve") {
		t.Errorf("the keys are %q", got[19])
	}
	if got := b.Draw(120, 20, at, Style{}, "sure? [y/n]"); got[19] != "sure? [y/n]" {
		t.Errorf("the prompt is %q", got[19])
	}
	b.ToggleAll()
	if text := strings.Join(b.Draw(120, 20, at, Style{}, ""), "\n"); !strings.Contains(text, "over ") {
		t.Errorf("what is over is not shown:\n%s", text)
	}
}

func normal(s string) string { return strings.Join(strings.Fields(s), " ") }

// Whatever the size, every line fits, and the mark is on the screen.
func TestBoardFits(t *testing.T) {
	var all []forge.Summary
	for i := range 60 {
		all = append(all, open(fmt.Sprintf("intent-%02d", i), func(s *forge.Summary) { s.Title = strings.Repeat("世界", 40) }))
	}
	b := boardOf(all...)
	for i := range 30 {
		rec := &forge.Record{Events: []forge.Event{{
			To: all[i].Key, At: noon, Message: &forge.Submit{Intent: forge.Intent{Settings: forge.Settings{Title: strings.Repeat("long ", 60)}}},
		}}}
		b.Decided(&all[i], &all[i], rec)
	}
	moves := 0
	for columns := 1; columns <= 130; columns += 7 {
		for rows := 1; rows <= 50; rows += 3 {
			moves += 5
			b.Move([]int{5, -3, 17, -40, 60}[moves%5])
			lines := b.Draw(columns, rows, noon, Style{}, "")
			if len(lines) > rows {
				t.Fatalf("%d by %d: %d lines", columns, rows, len(lines))
			}
			marked := false
			for _, line := range lines {
				if w := runewidth.StringWidth(line); w > columns {
					t.Fatalf("%d by %d: %q is %d wide", columns, rows, line, w)
				}
				marked = marked || strings.HasPrefix(line, "> ")
			}
			if rows > 5 && columns >= 10 && !marked {
				t.Fatalf("%d by %d: the mark is not shown:\n%s", columns, rows, strings.Join(lines, "\n"))
			}
		}
	}
}
