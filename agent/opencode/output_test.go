package opencode_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/opencode"
	"github.com/pfl-forge/pfl-forge/agent/process"
)

// TestOutput has programs that print what opencode prints, and then hang or end.
func TestOutput(t *testing.T) {
	const (
		step    = `{"type":"step_start","sessionID":"ses_1"}` + "\n"
		busy    = `{"type":"refused","status":529,"message":"{\"error\":{\"type\":\"overloaded_error\"}}","after":null}` + "\n"
		limit   = `{"type":"refused","status":429,"message":"slow down","after":"3600"}` + "\n"
		gone    = `{"type":"refused","status":0,"message":"Error: Unable to connect"}` + "\n"
		unknown = `{"type":"refused","status":404,"message":"not_found_error","after":null}` + "\n"
		failed  = `{"type":"error","sessionID":"ses_1","error":{"name":"APIError","data":{"message":"no","statusCode":401,"responseBody":"x"}}}` + "\n"
		said    = `{"type":"text","sessionID":"ses_1","part":{"text":"{\"summary\":\"done\"}"}}` + "\n"
		done    = `{"type":"step_finish","sessionID":"ses_1","part":{"tokens":{"input":1,"output":2,"reasoning":3,"cache":{"read":4,"write":5}}}}` + "\n"
		hangs   = "sleep 600"
	)
	used := forge.Usage{InputTokens: 1, OutputTokens: 5, CacheReadTokens: 4, CacheWriteTokens: 5, Turns: 1, Calls: 1}
	for _, tt := range []struct {
		name, prints, ends string
		reason             forge.FailureReason // empty: it succeeds
		message            string
		until              time.Duration
		usage              forge.Usage
	}{
		{name: "succeeds", prints: step + said + done, usage: used},
		{name: "goes on when it is busy", prints: strings.Repeat(busy, 4) + step + said + done, usage: used},
		{name: "gives up", prints: strings.Repeat(busy, 5), ends: hangs, reason: forge.FailOverloaded, message: "overloaded_error"},
		{name: "waits for no hour", prints: limit, ends: hangs, reason: forge.FailRateLimited, message: "slow down", until: time.Hour},
		{name: "no network", prints: strings.Repeat(gone, 5), ends: hangs, reason: forge.FailOverloaded, message: "Unable to connect"},
		{name: "gives up by itself", prints: unknown + failed, ends: "exit 1", reason: forge.FailAuth, message: "APIError no x"},
		{name: "no session", ends: "echo 'Error: Session not found' >&2; exit 1", reason: forge.FailLostSession, message: "Session not found"},
		{name: "damaged session", ends: "echo 'file is not a database' >&2; exit 1", reason: forge.FailLostSession, message: "not a database"},
		{name: "nothing", reason: forge.FailCrashed, message: "without finishing"},
		{name: "half", prints: step + said + done + busy, reason: forge.FailCrashed, message: "without finishing", usage: used},
		{name: "garbage", prints: "{\n", reason: forge.FailInvalidOutput, message: "1 lines that are no events"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			program := filepath.Join(dir, "opencode")
			if err := os.WriteFile(program, []byte("#!/bin/sh\ncat > /dev/null\ncat <<'END'\n"+tt.prints+"END\n"+tt.ends+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			before := time.Now()
			out, err := opencode.New(cli.Options{Path: program, Owner: process.NewOwner(t.TempDir())}).Run(t.Context(), agent.Call{
				Role: agent.RoleImplement, Dir: dir, ScratchDir: t.TempDir(), Prompt: "p", Model: "claude-sonnet-4-5",
				Limits: agent.Limits{Wall: time.Minute},
			}, nil)
			f := agent.AsFailure(err)
			if (f == nil) != (tt.reason == "") || f != nil && (f.Reason != tt.reason || !strings.Contains(f.Message, tt.message)) {
				t.Fatalf("got %v, want %s: %s", err, tt.reason, tt.message)
			}
			if f != nil && tt.until > 0 && (f.Until.Before(before.Add(tt.until-time.Second)) || f.Until.After(time.Now().Add(tt.until))) {
				t.Errorf("until %s", f.Until)
			}
			if tt.reason == "" && out.Text != `{"summary":"done"}` {
				t.Errorf("it said %q", out.Text)
			}
			out.Usage.CostUSD = 0
			if tt.usage.Calls = 1; !cmp.Equal(tt.usage, out.Usage) {
				t.Error(cmp.Diff(tt.usage, out.Usage))
			}
		})
	}
}
