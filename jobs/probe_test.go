package jobs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// TestProbe has a probe wait for an origin that is away: in vain, until it
// comes back while somebody waits, and not at all once it answers. One that
// takes no push is not back. A step that is told that it is away does nothing.
func TestProbe(t *testing.T) {
	t.Parallel()
	dir := gittest.New(t, map[string]string{"a.txt": "a\n"}).Origin()
	set := openLate(t, dir)
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	cmd := forge.Command{To: forge.Key{Project: repotest.Project, Intent: "fix"}, Attempt: forge.Attempt{Step: forge.StepProbe, Number: 1, Claim: 1}}
	cmd.Input = &forge.ProbeInput{Patience: time.Millisecond}
	res := set.Probe(t.Context(), cmd, nil)
	if f := res.Failure(); f == nil || f.Reason != forge.FailOrigin || !strings.Contains(f.Message, dir+": gone: ") {
		t.Errorf("got %+v", f)
	}
	cmd.Input = &forge.ProbeInput{Patience: time.Hour}
	answer := make(chan forge.Result)
	go func() { answer <- set.Probe(t.Context(), cmd, nil) }()
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if r := <-answer; r.Failure() != nil || r.Output == nil {
		t.Errorf("it came back, and the probe says %+v", r.Output)
	}
	hook := filepath.Join(dir, "hooks", "pre-receive")
	if err := errors.Join(os.MkdirAll(filepath.Dir(hook), 0o700), os.WriteFile(hook, []byte("#!/bin/sh\necho no refs >&2\nexit 1\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	cmd.Input = &forge.ProbeInput{Patience: time.Millisecond}
	res = set.Probe(t.Context(), cmd, nil)
	if f := res.Failure(); f == nil || f.Reason != forge.FailOrigin || !strings.Contains(f.Message, dir+": keeps nothing below refs/forge: no refs") {
		t.Errorf("of an origin that answers and keeps nothing it says %+v", f)
	}
	held := forge.Command{To: cmd.To, ClosedAgents: []string{forge.GitOrigin}}
	res = set.Do(t.Context(), &held, nil, nil)
	if f := res.Failure(); f == nil || f.Reason != forge.FailHeld {
		t.Errorf("a step that is to wait says %+v", res.Output)
	}
}

// TestProbeOfAnotherProject has a probe come to a replica that does not have its project. It takes
// as long as the command says, since the project issues the next one as soon as it has answered.
func TestProbeOfAnotherProject(t *testing.T) {
	t.Parallel()
	set := openLate(t, gittest.New(t, map[string]string{"a.txt": "a\n"}).Origin())
	cmd := forge.Command{To: forge.Key{Project: "gone", Intent: "fix"}, Attempt: forge.Attempt{Step: forge.StepProbe, Number: 1, Claim: 1}}
	cmd.Input = &forge.ProbeInput{Patience: time.Hour}
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan forge.Result, 1)
	go func() { answer <- set.Probe(ctx, cmd, nil) }()
	<-wait.Briefly(t, 50*time.Millisecond).Done()
	if len(answer) > 0 {
		t.Fatalf("it answered at once: %+v", (<-answer).Output)
	}
	cancel()
	res := wait.For(t, answer)
	if f := res.Failure(); f == nil || f.Reason != forge.FailConfig || !strings.Contains(f.Message, "not served here") {
		t.Errorf("got %+v", f)
	}
}
