package bus_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/live"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func command(n int) forge.Command {
	return forge.Command{
		To: key, Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: n, Claim: 1}, Intent: forge.Intent{ID: key.Intent}, Input: &forge.AnalyzeInput{},
	}
}

// consume serves a worker until the test ends.
func consume(t testing.TB, b *bus.Bus, cfg work.Config, handle func(context.Context, *work.Job) error) {
	t.Helper()
	if cfg.Step == "" {
		cfg.Step = forge.StepAnalyze
	}
	if cfg.Replica == "" {
		cfg.Replica = "a"
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := b.Commands.Consume(ctx, cfg, handle); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func TestDispatchTwice(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	eff := forge.Effects{Commands: []forge.Command{command(1), command(2)}}
	for range 3 {
		if err := b.Effects.Dispatch(ctx, key, eff); err != nil {
			t.Fatal(err)
		}
	}
	last := command(3)
	if err := b.Effects.Dispatch(ctx, key, forge.Effects{Commands: []forge.Command{last}}); err != nil {
		t.Fatal(err)
	}
	jobs := make(chan int, 10)
	consume(t, b, work.Config{}, func(_ context.Context, j *work.Job) error {
		jobs <- j.Command.Attempt.Number
		return nil
	})
	for want := 1; want <= 3; want++ {
		if got := wait.For(t, jobs); got != want {
			t.Errorf("took command %d, want %d", got, want)
		}
	}
}

// TestDispatchOverGarbage checks that garbage on a command's subject keeps neither
// the command nor its result away.
func TestDispatchOverGarbage(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	for _, data := range [][]byte{nil, []byte("\xff\xff garbage")} {
		put(t, raw(t, s), "forge.command.analyze.any.shop.fix-login.-.1.1", data)
	}
	seen := collect(t, b)
	jobs := make(chan int, 10)
	consume(t, b, work.Config{}, func(ctx context.Context, j *work.Job) error {
		jobs <- j.Command.Attempt.Number
		return b.Results.Publish(ctx, forge.Result{To: j.Command.To, Attempt: j.Command.Attempt, Replica: "a"})
	})
	deadLetters(ctx, t, b, 2)
	for range 2 {
		if err := b.Effects.Dispatch(ctx, key, forge.Effects{Commands: []forge.Command{command(1)}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := wait.For(t, jobs); got != 1 {
		t.Errorf("took command %d, want 1", got)
	}
	got := wait.For(t, seen)
	if r := forge.As[*forge.Result](got.Message); r == nil || r.Failure() != nil {
		t.Errorf("got %+v, want the result of the command", got)
	}
}

func TestDispatchMany(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	var eff forge.Effects
	for n := range 5000 {
		eff.Commands = append(eff.Commands, command(n+1))
	}
	start := time.Now()
	if err := b.Effects.Dispatch(ctx, key, eff); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d commands in %v", len(eff.Commands), time.Since(start))
}

func TestTimers(t *testing.T) {
	t.Parallel()
	unit := 100 * time.Millisecond
	for !timersFire(t, unit) { // the machine was too slow to see it
		unit *= 4
	}
}

// timersFire reports whether the intent's end came before the timer that it takes away
// was due.
func timersFire(t *testing.T, unit time.Duration) (inTime bool) {
	t.Helper()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	seen := collect(t, b)
	now := time.Now()
	at := func(k forge.Key, name string, d time.Duration) forge.Timer {
		return forge.Timer{To: k, Key: name, At: now.Add(d)}
	}
	timers := []forge.Timer{
		at(key, "past", -time.Hour),
		at(key, "replaced", time.Hour),
		at(key.ProjectKey(), "a.b/*", 3*unit),
		at(key, "gone", 7*unit),
		at(key, "replaced", 5*unit),
	}
	for _, tm := range timers {
		if err := b.Effects.Dispatch(ctx, key, forge.Effects{Timers: []forge.Timer{tm}}); err != nil {
			t.Fatal(err)
		}
	}
	ids := map[string]bool{}
	for range 3 {
		ev := wait.For(t, seen)
		fired := forge.As[*forge.TimerFired](ev.Message)
		if fired == nil || ids[ev.ID] {
			t.Fatalf("got %+v", ev)
		}
		ids[ev.ID] = true
		due := map[string]time.Duration{"a.b/*": 3 * unit, "replaced": 5 * unit}[fired.Key]
		if time.Now().Before(now.Add(due)) {
			t.Errorf("%s came too early", ev.ID)
		}
		if project := fired.Key == "a.b/*"; project != ev.To.IsProject() {
			t.Errorf("%s went to %s", ev.ID, ev.To)
		}
		if fired.Key == "replaced" { // the end of the intent's run takes its other timer away
			if err := b.Effects.Dispatch(ctx, key, forge.Effects{Ended: true}); err != nil {
				t.Fatal(err)
			}
			if time.Since(now) > 7*unit {
				return false
			}
		}
	}
	later := at(key, "later", 9*unit)
	if err := b.Effects.Dispatch(ctx, key, forge.Effects{Timers: []forge.Timer{later}}); err != nil {
		t.Fatal(err)
	}
	if ev := wait.For(t, seen); forge.As[*forge.TimerFired](ev.Message).Key != "later" {
		t.Errorf("%s fired after the run had ended", ev.ID)
	}
	return true
}

func TestEndForgets(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	other := command(1)
	other.To.Intent = "other"
	own := command(2)
	own.Replica = "a"
	eff := forge.Effects{Commands: []forge.Command{command(1), own, other}}
	if err := b.Effects.Dispatch(ctx, key, eff); err != nil {
		t.Fatal(err)
	}
	told := make(chan live.Control, 1)
	if err := b.Live.FollowControl(ctx, func(c live.Control) { told <- c }); err != nil {
		t.Fatal(err)
	}
	end := forge.Effects{Ended: true, Cancels: []forge.Attempt{own.Attempt}, ReleasedTasks: []forge.TaskID{"fix-login-001"}}
	if err := b.Effects.Dispatch(ctx, key, end); err != nil {
		t.Fatal(err)
	}
	c := wait.For(t, told)
	if c.To != key || !c.Ended || len(c.Cancels) != 1 || c.Cancels[0] != own.Attempt || c.Released[0] != "fix-login-001" {
		t.Errorf("the workers are told %+v", c)
	}
	jobs := make(chan string, 10)
	consume(t, b, work.Config{}, func(_ context.Context, j *work.Job) error {
		jobs <- j.Command.ID()
		return nil
	})
	// After a retry, the same command may come again.
	if got := wait.For(t, jobs); got != other.ID() {
		t.Errorf("took %s", got)
	}
	if err := b.Effects.Dispatch(ctx, key, eff); err != nil {
		t.Fatal(err)
	}
	again := command(1)
	left := []string{again.ID(), own.ID()}
	for len(left) > 0 { // the other's may come again too, if it has been acknowledged by now
		id := wait.For(t, jobs)
		left = slices.DeleteFunc(left, func(want string) bool { return want == id })
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(wait.Context(t))
	b := bustest.Start(t)
	got := make(chan forge.Progress, 10)
	if err := b.Live.FollowProgress(ctx, "shop", func(p forge.Progress) { got <- p }); err != nil {
		t.Fatal(err)
	}
	at := forge.Attempt{Step: forge.StepReview, Number: 1, Claim: 1}
	for i, k := range []forge.Key{{Project: "bank", Intent: "x"}, key} {
		if err := b.Live.Progress(forge.Progress{To: k, Attempt: at, Kind: forge.ProgressText, Text: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if p := wait.For(t, got); p.To != key || p.Text != "1" || p.Attempt != at {
		t.Errorf("got %+v", p)
	}
	cancel()
}
