package service_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/bus/transcripts"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/internal/testoutput"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/service"
)

// kept returns what the bus has of all transcripts.
func kept(t *testing.T, b *bus.Bus) []transcript.Line {
	t.Helper()
	end := errors.New("end")
	var lines []transcript.Line
	err := b.Transcripts.Follow(wait.Context(t), subjects.TranscriptFilter{}, 0, time.Time{}, transcripts.Follower{
		Lines: func(_ forge.Key, _ forge.Attempt, _ uint64, text []byte) error {
			lines = append(lines, transcript.Parse(text)...)
			return nil
		},
		CaughtUp: func() error { return end },
	})
	if !errors.Is(err, end) {
		t.Fatal(err)
	}
	return lines
}

// TestTranscript checks that whoever has the result finds the transcript complete.
func TestTranscript(t *testing.T) {
	t.Parallel()
	b, logs := bustest.Start(t), t.TempDir()
	r := newRunner(t, b)
	w := worker(t, b, func(_ context.Context, _ forge.Command, tell service.Progress) forge.Result {
		tell(forge.Progress{Kind: forge.ProgressText, Agent: "claude", Text: "runs m1"})
		tell(forge.Progress{Kind: forge.ProgressOutput, Text: "a \x1b[31mred\x1b[0m\u202e word"})
		for range 100 { // more than those who watch are told
			tell(forge.Progress{Kind: forge.ProgressThinking, Text: "hm"})
		}
		tell(forge.Progress{Kind: forge.ProgressUsage, Usage: forge.Usage{InputTokens: 5, Calls: 1}})
		res := found()
		res.Agent, res.Usage = "claude", forge.Usage{InputTokens: 7, CostUSD: 0.5, Calls: 1}
		return res
	})
	w.LogDir = logs
	workerRun(t, w)
	r.start(analyze(1))
	r.result()
	lines := kept(t, b)
	var got []string
	for _, l := range lines {
		if l.Project != "shop" || l.Intent != "fix-login" || l.Step != forge.StepAnalyze || l.Attempt != 1 || l.Claim != 1 || l.Replica != "w1" || l.At.IsZero() {
			t.Errorf("a line of %+v", l)
		}
		text := fmt.Sprint(l.Kind, " ", l.Agent, " ", l.Text)
		if l.Usage != nil {
			text += fmt.Sprint(" ", l.Usage.InputTokens)
		}
		if len(got) == 0 || text != got[len(got)-1] {
			got = append(got, text)
		}
	}
	want := []string{
		"started  ", "text claude runs m1", "output  a red<U+202E> word", "thinking  hm", "usage   5", "ended claude ok 7",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(lines) != 5+100 {
		t.Errorf("there are %d lines", len(lines))
	}
	text, err := os.ReadFile(filepath.Join(logs, "fix-login-analyze-1.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lines, transcript.Parse(text)); diff != "" {
		t.Error(diff)
	}
}

// leak says a secret in every way that a worker can say something.
func leak(secret string, tell service.Progress) forge.Result {
	for _, kind := range []forge.ProgressKind{forge.ProgressText, forge.ProgressThinking, forge.ProgressTool, forge.ProgressOutput, forge.ProgressLimit} {
		tell(forge.Progress{Kind: kind, Text: "whole: " + secret + "."})
		for rest := secret; rest != ""; {
			n := 1 + rand.IntN(len(rest))
			tell(forge.Progress{Kind: kind, Text: rest[:n]})
			rest = rest[n:]
		}
		tell(forge.Progress{Kind: kind, Text: secret[:len(secret)/2] + "\x1b[1m" + secret[len(secret)/2:]})
	}
	tell(forge.Progress{Kind: forge.ProgressText, Text: strings.Repeat("x", 4<<10-len(secret)+9) + secret}) // cut
	return forge.Result{
		Agent: "claude " + secret, Observations: []forge.Observation{{Content: secret, Evidence: []forge.Evidence{{Ref: secret}}}},
		Output: &forge.Analysis{
			NothingToDo: "because of " + secret, Tasks: []forge.TaskPlan{{Plan: secret, Steps: []string{secret}}},
			Clarifications: []forge.Clarification{{Question: secret, Answer: &secret}},
		},
	}
}

// TestSecretsStay checks that no secret leaves a worker, whatever it is part of and
// whatever splits it.
func TestSecretsStay(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry-Value-0123456789-abcdef"
	for name, secret := range map[string]string{"known": canary, "shaped": "ghp" + "_c4n4ryc4n4ryc4n4ryc4n4ryc4n4ry"} {
		t.Run(name, func(t *testing.T) {
			b, logs := bustest.Start(t), t.TempDir()
			var told, log testoutput.Output
			if err := b.Live.FollowProgress(t.Context(), "", func(p forge.Progress) { fmt.Fprintf(&told, "%+v\n", p) }); err != nil {
				t.Fatal(err)
			}
			r := newRunner(t, b)
			w := worker(t, b, func(_ context.Context, cmd forge.Command, tell service.Progress) forge.Result {
				if cmd.Attempt.Number == 2 {
					return forge.Result{Output: &forge.Failure{Reason: forge.FailCrashed, Message: "printed " + secret}}
				}
				return leak(secret, tell)
			})
			w.Secrets, w.LogDir, w.Log = redact.New(canary), logs, slog.New(slog.NewTextHandler(&log, nil))
			workerRun(t, w)
			r.start(analyze(1), analyze(2))
			results := fmt.Sprintf("%s %s", readable(r.result()), readable(r.result()))
			transcripts := fmt.Sprintf("%+v", kept(t, b))
			files, err := os.ReadFile(filepath.Join(logs, "fix-login-analyze-1.ndjson"))
			if err != nil {
				t.Fatal(err)
			}
			for where, text := range map[string]string{
				"results": results, "transcripts": transcripts, "files": string(files), "progress": told.String(), "log": log.String(),
			} {
				if strings.Contains(text, secret) {
					t.Errorf("%s: it is there", where)
				}
				if where != "log" && !strings.Contains(text, redact.Mark) {
					t.Errorf("%s: nothing was taken out of %s", where, text)
				}
				if half := secret[:len(secret)/2+2]; strings.Contains(text, half) {
					t.Errorf("%s: %q is there", where, half)
				}
			}
		})
	}
}

func readable(r forge.Result) string {
	analysis := forge.As[*forge.Analysis](r.Output)
	text := fmt.Sprintf("%+v %+v %+v", r, analysis, r.Failure())
	if analysis != nil {
		text += *analysis.Clarifications[0].Answer
	}
	return text
}
