package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// resumesElsewhere has a session whose call is killed while the model thinks. It is
// resumed in a moved checkout, and then on another machine, where only the session's
// files are.
func resumesElsewhere(t *testing.T, b *Backend) {
	x := killedCall(t, b)
	// The next attempt may get another checkout, whose path differs.
	moved := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Rename(x.call.Dir, moved); err != nil {
		t.Fatal(err)
	}
	x.call.Dir = moved
	x.mustResume("SECOND-PROMPT", "FIRST-RESULT", "FIRST-PROMPT")

	s, ok := x.agent.(agent.Sessions)
	if !ok {
		t.Fatalf("%T does not say what its sessions' files are", x.agent)
	}
	files, err := s.SessionFiles(x.call.StateDir, x.call.Session.ID)
	if err != nil || len(files) == 0 {
		t.Fatalf("files %q, %v", files, err)
	}
	// Another machine has only the files that SessionFiles named.
	state := t.TempDir()
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(x.call.StateDir, f))
		if err != nil || !filepath.IsLocal(f) {
			t.Fatalf("%q: %v", f, err)
		}
		Write(t, filepath.Join(state, f), string(data))
	}
	x.call.StateDir, x.call.Dir = state, checkout(t)
	x.mustResume("THIRD-PROMPT", "SECOND-PROMPT", "FIRST-RESULT", "FIRST-PROMPT")
}

// killedCall cancels a call that ran a command and then waits for the model.
func killedCall(t *testing.T, b *Backend) *fixture {
	t.Helper()
	hangs := make(chan struct{})
	x := newScripted(t, b, agent.RoleImplement, func(r agenttest.Request) agenttest.Reply {
		switch r.N {
		case 0:
			return b.Shell(daemon + "; printf 'FIRST-%s' RESULT")(r) // the text is only in the result, not in the command
		case 1:
			close(hangs)
			return agenttest.Reply{Fault: agenttest.HangStart}
		}
		return b.Answer(object{"summary": "done"})(r)
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		select {
		// The CLI must have stored the result; otherwise the kill loses it, and rightly
		// so.
		case <-hangs:
			x.waitStored("FIRST-RESULT")
		case <-ctx.Done():
		}
		cancel()
	}()
	out, err := x.agent.Run(ctx, x.call, nil)
	if f := agent.AsFailure(err); f == nil || f.Reason != forge.FailKilled {
		t.Fatalf("got %v", err)
	}
	x.mustLeaveNoProcess()
	// The answered request is paid for, whoever ended the call.
	if out.Session != x.call.Session.ID || out.Usage.InputTokens != 100 || out.Usage.OutputTokens > 20 {
		t.Errorf("session %q, usage of the killed call %+v", out.Session, out.Usage)
	}
	return x
}

// mustResume resumes the session, whose requests must contain the texts before.
func (x *fixture) mustResume(prompt string, before ...string) {
	x.Helper()
	x.call.Session.Resume, x.call.Prompt = true, "Go on, "+prompt+"."
	out := x.mustRun()
	for _, s := range append(before, prompt) {
		if !strings.Contains(string(x.last().Body), s) {
			x.Errorf("the resumed session lacks %s", s)
		}
	}
	if out.Session != x.call.Session.ID {
		x.Errorf("session %s went on as %s", x.call.Session.ID, out.Session)
	}
}

// waitStored waits until the session's files contain a text: CLIs write them a little
// after they go on, and lose what is not written when they are killed.
func (x *fixture) waitStored(text string) {
	s, _ := x.agent.(agent.Sessions)
	wait.Until(x, fmt.Sprintf("the session's files have %q", text), func() bool {
		files, _ := s.SessionFiles(x.call.StateDir, x.call.Session.ID)
		for _, f := range files {
			if data, err := os.ReadFile(filepath.Join(x.call.StateDir, f)); err == nil && strings.Contains(string(data), text) {
				return true
			}
		}
		return false
	})
}

// losesSession resumes sessions that do not exist. The model must not be asked.
func losesSession(t *testing.T, b *Backend) {
	x := newFixture(t, b, agent.RoleReview, b.Answer(approval))
	x.call.Session = agent.Session{ID: agent.NewSessionID(), Resume: true}
	x.mustFail(forge.FailLostSession)
	// An id becomes part of a path.
	x.call.Session.ID = "../../etc/passwd"
	x.mustFail(forge.FailLostSession)
	if n := len(x.model.Requests("main")); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
	// Of an unknown session there are no files, and that is no error.
	if s, ok := x.agent.(agent.Sessions); !ok {
		t.Errorf("%T does not say what its sessions' files are", x.agent)
	} else if files, err := s.SessionFiles(x.call.StateDir, agent.NewSessionID()); len(files) > 0 || err != nil {
		t.Errorf("files %q, %v", files, err)
	}
}
