package backends_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/jobs/backends"
)

func TestCheckAll(t *testing.T) {
	bin := t.TempDir()
	program := func(name, prints string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho '"+prints+"'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	program("codex", "codex-cli 0.199.0")
	program("gemini", "0.1.0")
	program("opencode", "1.18.33")
	program("ours", "x")
	t.Setenv("PATH", bin)
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("ANTHROPIC_API_KEY", "x")
	p, err := config.Parse([]byte("agent: codex\nroles: {review: gemini}\nfallback: [opencode, ours, gone, local]\n" +
		"agents: {ours: {command: [ours]}, gone: {command: [no-such]}, local: {command: [ours, ours]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		agent, version string
		reason         forge.FailureReason
		message        string
	}{
		{"codex", "0.199.0", forge.FailAuth, "no login: set OPENAI_API_KEY"},
		{"gemini", "0.1.0", forge.FailCLITooOld, "gemini 0.1.0 is older than 0.61.0; run npm install -g @google/gemini-cli"},
		{"opencode", "1.18.33", forge.FailMissingCLI, "there is no rg in PATH"},
		{"ours", "", "", ""},
		{"gone", "", forge.FailMissingCLI, "no-such"},
		{"local", "", forge.FailConfig, "the command of local names ours, which is in the checkout"},
	}
	got := backends.CheckAll(t.Context(), p, t.TempDir(), bin)
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i, w := range want {
		g := got[i]
		if g.Agent != w.agent || g.Version != w.version || (g.Problem == nil) != (w.reason == "") {
			t.Errorf("got %+v, want %+v", g, w)
		} else if g.Problem != nil && (g.Problem.Reason != w.reason || !strings.Contains(g.Problem.Message, w.message)) {
			t.Errorf("%s: got %v, want %s: %s", w.agent, g.Problem, w.reason, w.message)
		}
	}
}
