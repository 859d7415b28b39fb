package bus_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/bus/transcripts"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func try(task forge.TaskID, n int) forge.Attempt {
	return forge.Attempt{Task: task, Step: forge.StepImplement, Number: n, Claim: 1}
}

// TestTranscripts checks that what is stored and what comes in are one sequence,
// without gap or repetition, across a restart of the server.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	n := 0
	add := func(a forge.Attempt, intent forge.IntentID) {
		t.Helper()
		n++
		for range 2 { // the second time is a repetition
			if err := b.Transcripts.Append(ctx, forge.Key{Project: "shop", Intent: intent}, a, fmt.Sprint(n), fmt.Appendf(nil, "%d\n", n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	one, two := try("fix-login-001", 1), try("fix-login-001", 2)
	analyze := forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: 1}
	add(analyze, "fix-login")
	add(one, "fix-login")
	add(try("other-001", 1), "other")
	add(two, "fix-login")

	got := make(chan string, 100)
	caughtUp := make(chan struct{})
	following, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- b.Transcripts.Follow(following, subjects.TranscriptFilter{Project: "shop", Intent: "fix-login"}, 0, time.Time{}, transcripts.Follower{
			Lines: func(to forge.Key, a forge.Attempt, _ uint64, lines []byte) error {
				got <- fmt.Sprintf("%s %s %s", to, a, lines)
				return nil
			},
			CaughtUp: func() error { close(caughtUp); return nil },
		})
	}()
	wait.For(t, caughtUp)
	add(two, "fix-login")
	s.Restart(t)
	add(two, "fix-login")
	for _, want := range []string{
		"shop/fix-login -/analyze/1.1 1\n", "shop/fix-login fix-login-001/implement/1.1 2\n",
		"shop/fix-login fix-login-001/implement/2.1 4\n", "shop/fix-login fix-login-001/implement/2.1 5\n",
		"shop/fix-login fix-login-001/implement/2.1 6\n",
	} {
		if line := wait.For(t, got); line != want {
			t.Errorf("got %q, want %q", line, want)
		}
	}
	stop()
	if err := wait.For(t, ended); err != nil {
		t.Error(err)
	}
	for filter, want := range map[subjects.TranscriptFilter]uint64{
		{Project: "shop"}: 6, {Project: "blog"}: 0, {Intent: "other"}: 3, {Task: "fix-login-001", Number: 1}: 2, {Step: forge.StepAnalyze}: 1,
	} {
		seq, lines, err := b.Transcripts.Last(ctx, filter)
		if err != nil || seq != want || want > 0 && string(lines) != fmt.Sprintf("%d\n", want) {
			t.Errorf("the last of %+v is %d, %q, %v; want %d", filter, seq, lines, err, want)
		}
	}
}

// TestTranscriptsSince checks the beginning by time, and that a follower can end it.
func TestTranscriptsSince(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	add := func(id string) {
		t.Helper()
		if err := b.Transcripts.Append(ctx, key, try("fix-login-001", 1), id, []byte(id)); err != nil {
			t.Fatal(err)
		}
	}
	add("before")
	middle := time.Now()
	wait.Until(t, "the clock goes on", func() bool { return time.Since(middle) > 5*time.Millisecond })
	add("after")
	enough := errors.New("enough")
	var got []string
	err := b.Transcripts.Follow(ctx, subjects.TranscriptFilter{}, 0, middle, transcripts.Follower{
		Lines: func(_ forge.Key, _ forge.Attempt, _ uint64, lines []byte) error {
			got = append(got, string(lines))
			return nil
		},
		CaughtUp: func() error { return enough },
	})
	if diff := cmp.Diff([]string{"after"}, got); diff != "" || !errors.Is(err, enough) {
		t.Error(diff, err)
	}
}

func TestTranscriptRefused(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	for what, a := range map[string]forge.Attempt{
		"step": {Step: "x.y", Number: 1, Claim: 1}, "no step": {Number: 1, Claim: 1},
		"task": {Task: "*", Step: forge.StepAnalyze, Number: 1, Claim: 1}, "number": {Step: forge.StepAnalyze, Claim: 1},
	} {
		if err := b.Transcripts.Append(ctx, key, a, "1", nil); err == nil {
			t.Errorf("%s: appended", what)
		}
	}
	if err := b.Transcripts.Append(ctx, key.ProjectKey(), try("", 1), "1", nil); err == nil {
		t.Error("a project has a transcript")
	}
	if err := b.Transcripts.Follow(ctx, subjects.TranscriptFilter{Intent: ">"}, 0, time.Time{}, transcripts.Follower{}); err == nil {
		t.Error("a wildcard is an intent")
	}
	if _, _, err := b.Transcripts.Last(ctx, subjects.TranscriptFilter{Task: ">"}); err == nil {
		t.Error("a wildcard is a task")
	}
}
