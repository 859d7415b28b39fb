// Package clitest fuzzes the readers of agents' output: each back end that describes a CLI
// calls Fuzz from a fuzz target of its own test, with lines of the real program as seeds.
//
// A reader gets bytes that a model can influence. It may fail an attempt, but must
// neither panic nor report more than the output says. Only tests import this package.
package clitest

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Native is the CLI's id of the session that Fuzz resumes.
const Native = "0b8f6c1e-5d0a-4a0e-9d55-5c1a2b3c4d5e"

// maxShown bounds a text of an event, in characters; cli.Recorder cuts longer ones.
const maxShown = 8000

// reason is the shape of the reasons of failures.
var reason = pattern.New(`^[a-z_]{3,20}$`)

// Fuzz has a program's reader read output and the file of a session, at session below the
// CLI's state directory, which begins with head; without a session if that is empty. Whatever
// they are, events are lines that steer no terminal, no count is negative, the same output
// has the same outcome, and a failure has a known reason. Each of seeds is taken for both.
func Fuzz(f *testing.F, p *cli.Program, session, head string, seeds ...string) {
	f.Helper()
	for _, s := range seeds {
		f.Add([]byte(s), []byte(s), 0)
		f.Add([]byte(s), []byte(nil), 1)
	}
	state := f.TempDir()
	path := ""
	if session != "" {
		path = filepath.Join(state, session)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, output, kept []byte, code int) {
		first, failed := read(t, p, state, path, head, output, kept, code)
		again, failedAgain := read(t, p, state, path, head, output, kept, code)
		if (failed == nil) != (failedAgain == nil) || first.Text != again.Text || first.Usage != again.Usage || !slices.Equal(first.Files, again.Files) {
			t.Errorf("read twice: %+v, %v\nand %+v, %v", first, failed, again, failedAgain)
		}
		if failed != nil && (!reason.MatchString(string(failed.Reason)) || failed.Message == "" || failed.Message != term.Sanitize(failed.Message)) {
			t.Errorf("failed for %q: %q", failed.Reason, failed.Message)
		}
	})
}

// read has a new reader read the output, and checks its events and its outcome.
func read(t *testing.T, p *cli.Program, state, path, head string, output, kept []byte, code int) (agent.Outcome, *agent.Failure) {
	t.Helper()
	keep := func(text string) {
		if path == "" {
			return
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keep(head)
	turn := cli.Turn{Call: agent.Call{Dir: "/d", Session: agent.Session{ID: agent.NewSessionID()}}, StateDir: state, Native: Native}
	log := cli.NewRecorder(&turn.Call, func(e agent.Event) {
		for _, s := range []string{e.Text, e.Tool, e.Model} {
			if s != term.Line(s) || len([]rune(s)) > maxShown {
				t.Errorf("%s event holds %q", e.Kind, s)
			}
		}
	}, func(error) {})
	r := p.Reader(&turn, log)
	keep(head + string(kept))
	for line := range bytes.SplitSeq(output, []byte("\n")) {
		r.Line(line)
	}
	failed := r.End(process.Report{ExitCode: code, Stderr: kept})
	out := log.Outcome()
	u := out.Usage
	if min(u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.Turns) < 0 || u.CostUSD < 0 ||
		math.IsNaN(u.CostUSD) || math.IsInf(u.CostUSD, 0) {
		t.Errorf("usage %+v", u)
	}
	if out.Text != term.Sanitize(out.Text) || code != 0 && failed == nil {
		t.Errorf("status %d: %v, %q", code, failed, out.Text)
	}
	for _, file := range out.Files {
		if file != term.Line(file) {
			t.Errorf("file %q", file)
		}
	}
	return out, failed
}
