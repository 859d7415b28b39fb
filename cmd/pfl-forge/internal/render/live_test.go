package render

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/pfl-forge/pfl-forge"
)

var (
	key = forge.Key{Project: "p", Intent: "fix"}
	at  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

func attempts(step forge.Step, number int) forge.Attempt {
	return forge.Attempt{Task: "fix-001", Step: step, Number: number, Claim: 1}
}

// screen is what a person sees of what was written to a terminal.
func screen(written string) []string {
	lines := []string{""}
	for written != "" {
		if rest, ok := strings.CutPrefix(written, "\x1b["); ok {
			end := strings.IndexAny(rest, "AJm")
			n := 0
			for _, c := range rest[:end] {
				n = n*10 + int(c-'0')
			}
			switch rest[end] {
			case 'A':
				lines = lines[:len(lines)-n]
			case 'J':
				lines[len(lines)-1] = ""
			}
			written = rest[end+1:]
			continue
		}
		switch written[0] {
		case '\n':
			lines = append(lines, "")
		case '\r':
			lines[len(lines)-1] = ""
		default:
			lines[len(lines)-1] += written[:1]
		}
		written = written[1:]
	}
	return lines[:len(lines)-1]
}

func TestLiveOnTerminal(t *testing.T) {
	var out bytes.Buffer
	l := NewLive(Screen{Out: &out, Width: func() int { return 60 }, Style: Style{Colour: true}})
	l.State([]forge.Summary{{Key: key, Status: forge.StatusExecuting}})
	l.Progress(forge.Progress{To: key, Attempt: attempts(forge.StepImplement, 2), Kind: forge.ProgressStarted, Agent: "claude", At: time.Now()})
	l.Progress(forge.Progress{
		To: key, Attempt: attempts(forge.StepImplement, 2), Kind: forge.ProgressText, At: time.Now(),
		Text: "thinking\nabout \x1b[2Jit " + strings.Repeat("語", 100), Usage: forge.Usage{InputTokens: 12_300, CostUSD: 0.5},
	})

	lines := screen(out.String())
	if len(lines) != 2 {
		t.Fatalf("%d lines, want one for the attempt and one that counts:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	if !strings.Contains(lines[0], "fix-001") || !strings.Contains(lines[0], "implement 2") || !strings.Contains(lines[0], "claude") {
		t.Errorf("the attempt is shown as %q", lines[0])
	}
	if !strings.Contains(lines[1], "1 running, 1 open") || !strings.Contains(lines[1], "12.3k tokens, $0.50") {
		t.Errorf("counted as %q", lines[1])
	}
	for _, line := range lines {
		if w := runewidth.StringWidth(line); w >= 60 {
			t.Errorf("%q is %d cells wide and would wrap", line, w)
		}
	}

	l.Notice("something else")
	l.Decided(&forge.Summary{Key: key, Status: forge.StatusExecuting}, &forge.Summary{Key: key, Status: forge.StatusDone, UpdatedAt: at}, &forge.Record{})
	l.Close()
	l.Close()
	lines = screen(out.String())
	if len(lines) != 2 || lines[0] != "something else" || !strings.HasSuffix(lines[1], "done") {
		t.Errorf("what stays is:\n%s", strings.Join(lines, "\n"))
	}
}

func TestLiveElsewhere(t *testing.T) {
	var out bytes.Buffer
	l := NewLive(Screen{Out: &out})
	l.State([]forge.Summary{{Key: key, Status: forge.StatusExecuting}})
	l.Progress(forge.Progress{To: key, Attempt: attempts(forge.StepImplement, 1), Kind: forge.ProgressStarted, At: at})
	l.Progress(forge.Progress{To: key, Attempt: attempts(forge.StepImplement, 1), Kind: forge.ProgressText, Text: "thinking", At: at})
	l.Progress(forge.Progress{To: key, Attempt: attempts(forge.StepRebase, 1), Kind: forge.ProgressStarted, At: at})
	if lines := l.lasting(at.Add(sayEvery - 1)); len(lines) > 0 {
		t.Errorf("too early: %q", lines)
	}
	l.Progress(forge.Progress{
		To: key, Attempt: attempts(forge.StepImplement, 1), Kind: forge.ProgressTool, Text: "Bash make", At: at.Add(2 * time.Minute),
		Usage: forge.Usage{InputTokens: 500, CacheReadTokens: 9000, CostUSD: 0.5},
	})
	const lasts = "implement: running for 3m, 500 tokens, 9.0k cached, $0.50, silent for 1m, Bash make"
	if lines := l.lasting(at.Add(3 * time.Minute)); len(lines) != 1 || !strings.HasSuffix(lines[0], lasts) {
		t.Errorf("said %q of the call of an agent, and of nothing else", lines)
	}
	l.Close()
	if got := out.String(); strings.Contains(got, "\x1b") || strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "implement started\n") {
		t.Errorf("printed %q, want one plain line", got)
	}
}
