package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest/conformance"
	"github.com/pfl-forge/pfl-forge/agent/claude"
)

func TestVersions(t *testing.T) {
	call := agent.Call{Dir: t.TempDir(), ScratchDir: t.TempDir(), Prompt: "p"}
	path := filepath.Join(t.TempDir(), "claude")
	asked := filepath.Join(t.TempDir(), "asked")
	cli := claude.New(claude.Options{Path: path})
	changed := time.Now().Add(-time.Hour)
	install := func(says string) {
		changed = changed.Add(time.Minute)
		conformance.Write(t, path, "#!/bin/sh\n[ \"$1\" = --version ] && { echo x >>"+asked+"; "+says+"; }\n"+
			`echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'`+"\n")
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, changed, changed); err != nil {
			t.Fatal(err)
		}
	}
	_, err := cli.Run(t.Context(), call, nil)
	mustFail(t, err, forge.FailMissingCLI, "install it with npm")

	for _, tt := range []struct {
		says    string
		reason  forge.FailureReason
		message string
	}{
		{"echo 1.0.128 '(Claude Code)'; exit", forge.FailCLITooOld, "1.0.128 (Claude Code) of Claude Code, and at least 2.1.90 is needed; update it with npm"},
		{"echo 2.1.89; exit", forge.FailCLITooOld, ""},
		{"echo 2.1.90; exit", "", ""},
		{"echo 10.0.0 '(Claude Code)'; exit", "", ""},
		{"echo Usage: cat; exit 1", forge.FailMissingCLI, "is not Claude Code"},
		{"kill -9 $$", forge.FailMissingCLI, "status 137"},
	} {
		install(tt.says)
		_, err := cli.Run(t.Context(), call, nil)
		if tt.reason == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.says, err)
			}
			continue
		}
		mustFail(t, err, tt.reason, tt.message)
	}

	install("echo 2.1.330; exit")
	if err := os.Remove(asked); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := cli.Run(t.Context(), call, nil); err != nil {
			t.Error(err)
		}
	}
	if got, err := os.ReadFile(asked); string(got) != "x\n" {
		t.Errorf("it was asked %d times, %v", strings.Count(string(got), "x"), err)
	}
}

// A limit that the program does not know would be none.
func TestLimitsThatCannotBe(t *testing.T) {
	_, err := script(t, "exit 0", func(c *agent.Call) { c.ReadOnly, c.Tools = false, []string{"Read", "Edit(docs/*)"} })
	mustFail(t, err, forge.FailConfig, "tool Edit(docs/*): Claude Code can limit Bash only, as in Bash(go test:*); name Edit whole, or leave it out")
}

func TestPromptsThatCannotBe(t *testing.T) {
	_, err := script(t, "exit 0", func(c *agent.Call) { c.Prompt = " \n" })
	mustFail(t, err, forge.FailConfig, "the prompt is empty")
	_, err = script(t, "exit 0", func(c *agent.Call) { c.Prompt = strings.Repeat("x", 2<<20) })
	mustFail(t, err, forge.FailPromptTooLong, "the prompt is 2097152 bytes long")
}
