package repository_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/repository"
	"github.com/pfl-forge/pfl-forge/repository/repotest"
)

// chatter is an agent that tells of itself.
type chatter struct{ words int }

func (c *chatter) Name() string { return "claude" }

func (c *chatter) Run(_ context.Context, _ agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
	sink(agent.Event{Kind: agent.EventStarted, Model: "m1", Session: "s1"})
	sink(agent.Event{Kind: agent.EventTool, Tool: "Read", Text: "a.txt"})
	sink(agent.Event{Kind: agent.EventUsage})
	for range c.words {
		sink(agent.Event{Kind: agent.EventText, Text: strings.Repeat("word ", 100)})
	}
	return agent.Outcome{}, nil
}

func TestTranscript(t *testing.T) {
	state, logs := t.TempDir(), filepath.Join(t.TempDir(), "logs")
	c := &chatter{}
	host := repository.Host{
		StateDir: state, Owner: process.NewOwner(state), Agents: []agent.Agent{c}, LogDir: logs, Log: slog.New(slog.DiscardHandler),
	}
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": "verify: ['echo checked']\n"})
	set, err := repository.OpenSet(t.Context(), host, []repository.Source{{Project: repotest.Project, Path: r.Dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}()
	work := func() {
		got := do(t, set, func(ctx context.Context, j *repository.Job) error {
			if _, err := j.Run(ctx, agent.Call{Role: agent.RoleImplement}); err != nil {
				return err
			}
			_, err := j.Verify(ctx, j.Tip)
			return err
		})
		if got.Failure != nil {
			t.Fatal(got.Failure)
		}
	}
	read := func() string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(logs, "fix-001-rebase-1.log"))
		if err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d `).ReplaceAllString(string(b), "")
	}
	work()
	once := "started model m1, session s1\ntool    Read a.txt\noutput  checked\n"
	if diff := cmp.Diff(once, read()); diff != "" {
		t.Error(diff)
	}
	work()
	if diff := cmp.Diff(once+once, read()); diff != "" {
		t.Error(diff)
	}
	c.words = 10_000
	work()
	if got := read(); !strings.HasSuffix(got, "\nthe rest is left out\n") || len(got) > 4<<20+1000 {
		t.Errorf("%d bytes end in %q", len(got), got[len(got)-100:])
	}
}
