package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/agent/agenttest/conformance"
	"github.com/pfl-forge/pfl-forge/agent/claude"
)

var _ agent.Sessions = (*claude.Agent)(nil)

func sessionFiles(t *testing.T, b *bench) []string {
	t.Helper()
	files, err := b.cli.SessionFiles(b.call.StateDir, b.call.Session.ID)
	if err != nil {
		t.Error(err)
	}
	return files
}

func TestSessionThatIsLost(t *testing.T) {
	b := newBench(t, agent.RoleReview, agenttest.Steps(approve))
	b.call.Session.Resume = true
	_, err := b.run()
	mustFail(t, err, forge.FailLostSession, "is no longer on this replica")
	b.call.Session.ID = "../../etc/passwd"
	_, err = b.run()
	mustFail(t, err, forge.FailLostSession, "does not belong to this agent")
	if files := sessionFiles(t, b); len(files) > 0 || claude.SessionFile(b.call.StateDir, b.call.Session.ID) != "" {
		t.Errorf("its files are %q", files)
	}
	if n := len(b.model.Requests("main")); n != 0 {
		t.Errorf("the model got %d requests", n)
	}
}

// TestSessionOfACrash is what a call finds whose first delivery was killed: the CLI
// refuses the id, and the caller may go on or begin anew.
func TestSessionOfACrash(t *testing.T) {
	var works atomic.Bool
	b := newBench(t, agent.RoleReview, func(r agenttest.Request) agenttest.Reply {
		if !works.Load() {
			return agenttest.Reply{Status: 400, Text: "no"}
		}
		return approve(r)
	})
	if _, err := b.run(); err == nil || len(sessionFiles(t, b)) != 1 {
		t.Fatalf("%v, files %q", err, sessionFiles(t, b))
	}
	works.Store(true)
	failed := len(b.model.Requests("main")) // the CLI may have repeated its request
	b.call.Prompt = "Go on."
	b.call.Session.Resume = true
	if out := b.mustRun(); out.Session != b.call.Session.ID {
		t.Errorf("it went on as %s", out.Session)
	}
	b.call.Prompt = "Begin anew."
	b.call.Session.Resume = false
	if out := b.mustRun(); out.Session != b.call.Session.ID || len(sessionFiles(t, b)) != 1 {
		t.Errorf("it began as %s, files %q", out.Session, sessionFiles(t, b))
	}
	for i, want := range []struct{ has, hasNot string }{
		{"Change the greeting.", "Go on."},
		{"Change the greeting.", "Begin anew."},
		{"Begin anew.", "Change the greeting."},
	} {
		body := string(b.model.Requests("main")[failed-1+i].Body)
		if !strings.Contains(body, want.has) || strings.Contains(body, want.hasNot) {
			t.Errorf("request %d: has %q %t, has %q %t", i, want.has, strings.Contains(body, want.has), want.hasNot, strings.Contains(body, want.hasNot))
		}
	}
}

// TestSessionMovesAlone takes a session's files, and nothing else, to another state
// directory, and goes on there in another checkout.
func TestSessionMovesAlone(t *testing.T) {
	b := newBench(t, agent.RoleImplement, agenttest.Steps(
		agenttest.Use("Bash", object{"command": "seq 100000"}), // too long to be kept in the conversation
		agenttest.Answer(object{"summary": "counted"}),
		agenttest.Use("Bash", object{"command": "git commit -q --allow-empty -m 'after the move'"}),
		agenttest.Answer(object{"summary": "says more"}),
	))
	b.mustRun()
	files := sessionFiles(t, b)
	if len(files) < 2 {
		t.Errorf("files are %q; the long output is not among them", files)
	}
	elsewhere := t.TempDir()
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(b.call.StateDir, f))
		if err != nil || !filepath.IsLocal(f) {
			t.Fatal(f, err)
		}
		conformance.Write(t, filepath.Join(elsewhere, f), string(data))
	}
	if err := os.RemoveAll(b.call.StateDir); err != nil {
		t.Fatal(err)
	}
	b.call.StateDir, b.call.ScratchDir, b.call.Dir, b.call.Session.Resume = elsewhere, t.TempDir(), checkout(t), true
	if summary, _, err := agent.ParseImplementation(b.mustRun().Answer); summary != "says more" || err != nil {
		t.Errorf("summary %q, %v", summary, err)
	}
	if got := git(t, b.call.Dir, "log", "-1", "--format=%s"); got != "after the move" {
		t.Errorf("it worked elsewhere: the last commit is %q", got)
	}
	if got := sessionFiles(t, b); strings.Join(got, " ") != strings.Join(files, " ") {
		t.Errorf("files are %q, were %q", got, files)
	}
}
