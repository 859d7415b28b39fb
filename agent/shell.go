package agent

import (
	"context"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Shell is one command line that the repository defines: a recipe's run, check
// or each, a verify command, a worktree_setup command.
type Shell struct {
	Command    string // for sh -c
	Dir        string // absolute
	ScratchDir string // private, absolute, outside every checkout; HOME is home below it
	Owner      process.Owner
	Env        []string      // KEY=VALUE beside the basic environment
	Sandbox    *sandbox.Spec // what it sees of the machine; nil means everything
	Limits     Limits
	Sink       func(Event)       // receives an EventOutput per line, up to linesPerSecond; may be nil
	Stdout     func(line []byte) // receives each line of stdout as it is, for each; may be nil

	second time.Time // in which lines are counted
	lines  int       // that the Sink received in it
}

// linesPerSecond is how many lines the Sink receives at most. A flood would cost more
// than the command itself, and nobody can read it.
const linesPerSecond = 1000

// ShellResult is how a command line ended.
type ShellResult struct {
	ExitCode int           // 128+n if signal n ended it
	Output   string        // stdout and stderr, sanitized; the middle of a long output is left out
	Bytes    int64         // printed in all
	Duration time.Duration // wall clock
}

// OK reports whether the command succeeded.
func (r *ShellResult) OK() bool { return r.ExitCode == 0 }

// RunShell runs the command line and returns when every process of it is gone.
// Any exit status is a result; an error is a *Failure: it did not start,
// overran its limits, or ctx ended.
func RunShell(ctx context.Context, s Shell) (ShellResult, error) {
	if s.Command == "" {
		return ShellResult{}, Fail(forge.FailConfig, "the command is empty")
	}
	home, err := process.PrivateHome(s.ScratchDir)
	if err != nil {
		return ShellResult{}, Fail(forge.FailRepository, "%v", err)
	}
	report, err := process.Run(ctx, process.Command{
		Path:        "/bin/sh",
		Args:        []string{"-c", s.Command},
		Dir:         s.Dir,
		Env:         process.Environment(home, s.Env...),
		Owner:       s.Owner,
		Sandbox:     s.Sandbox,
		MergeStderr: s.Stdout == nil,
		Limits:      process.Limits{Wall: s.Limits.Wall, Idle: s.Limits.Idle, OutputBytes: s.Limits.OutputBytes},
		Line:        s.onLine,
	})
	res := ShellResult{
		ExitCode: report.ExitCode, Output: term.Sanitize(string(report.Output)),
		Bytes: report.Bytes, Duration: report.Duration,
	}
	if err != nil {
		f := AsFailure(err)
		f.Message = appendTail(f.Message, res.Output)
		return res, f
	}
	return res, nil
}

func (s *Shell) onLine(from process.Stream, line []byte) {
	if s.Stdout != nil && from == process.Stdout {
		s.Stdout(line)
	}
	if s.Sink != nil && s.allowLine(time.Now()) {
		s.Sink(Event{Kind: EventOutput, Text: term.Short(string(line), maxEventText)})
	}
}

// allowLine counts a line for the Sink.
func (s *Shell) allowLine(now time.Time) bool {
	if now.Sub(s.second) >= time.Second {
		s.second, s.lines = now, 0
	}
	s.lines++
	return s.lines <= linesPerSecond
}

// appendTail adds the end of a command's output to a message.
func appendTail(msg, output string) string {
	const most = 2000
	if output = strings.TrimSpace(output); output == "" {
		return msg
	}
	if len(output) > most {
		output = "..." + strings.ToValidUTF8(output[len(output)-most:], "")
	}
	return msg + "\n" + output
}
