package agent

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Shell is one command line that the repository defines: a recipe's run, check or each,
// a verify command, or a worktree_setup command.
type Shell struct {
	// Command is run by sh -c.
	Command string
	// For says what the command is for, and Index which one of that list it is, beginning with
	// 0: what its span in a trace tells of it.
	For   telemetry.Command
	Index int
	// Dir is the absolute path to run in.
	Dir string
	// ScratchDir is absolute, private and outside every checkout. HOME is home below
	// it.
	ScratchDir string
	// Owner is the service that runs the command.
	Owner process.Owner
	// Env has KEY=VALUE entries beside the basic environment.
	Env []string
	// Sandbox limits which files and networks it reaches; nil means all of the
	// machine's.
	Sandbox *sandbox.Spec
	// Limits ends the command; MaxTurns and BudgetUSD have no meaning here.
	Limits Limits
	// Sink receives an EventOutput per line, at most linesPerSecond of them. May be
	// nil.
	Sink func(Event)
	// Stdout receives each line of stdout unchanged and complete. May be nil.
	Stdout func(line []byte)

	// second is the start of the second in which lines were passed to Sink.
	second time.Time
	lines  int // that the Sink received in it
}

// linesPerSecond is the most lines that Sink receives per second. Passing on a flood of
// output would cost more than the command itself, and a person could not read it.
const linesPerSecond = 1000

// ShellResult is the end of a command line.
type ShellResult struct {
	// ExitCode is 128+n if signal n ended the command.
	ExitCode int
	// Output has stdout and stderr, sanitized, without the middle of a long output.
	// With Shell.Stdout they are not in their original order.
	Output string
	// Bytes counts all that was printed.
	Bytes int64
}

// OK reports whether the command succeeded.
func (r *ShellResult) OK() bool { return r.ExitCode == 0 }

// RunShell runs the command line and returns when every process of it is gone. Any exit
// status is a result. An error is a *Failure: the command did not start, exceeded its
// limits, or ctx ended.
func RunShell(ctx context.Context, s Shell) (ShellResult, error) {
	if s.Command == "" {
		return ShellResult{}, Fail(forge.FailConfig, "the command is empty")
	}
	home, err := process.PrivateHome(s.ScratchDir)
	if err != nil {
		return ShellResult{}, Fail(forge.FailRepository, "%v", err)
	}
	ctx, end := telemetry.BeginCommand(ctx, s.For, s.Index)
	report, err := process.Run(ctx, process.Command{
		Path:        "/bin/sh",
		Args:        []string{"-c", s.Command},
		Dir:         s.Dir,
		Env:         process.Environment(home, slices.Concat(s.Env, telemetry.Environment(ctx))...),
		Owner:       s.Owner,
		Sandbox:     s.Sandbox,
		MergeStderr: s.Stdout == nil,
		Limits:      process.Limits{Wall: s.Limits.Wall, Idle: s.Limits.Idle, OutputBytes: s.Limits.OutputBytes},
		Line:        s.onLine,
	})
	res := ShellResult{
		ExitCode: report.ExitCode, Output: term.Sanitize(string(report.Output)),
		Bytes: report.Bytes,
	}
	if err != nil {
		f := AsFailure(err)
		f.Message = appendTail(f.Message, res.Output)
		end(res.ExitCode, f.Reason)
		return res, f
	}
	end(res.ExitCode, "")
	return res, nil
}

// onLine passes one line of output on.
func (s *Shell) onLine(from process.Stream, line []byte) {
	if s.Stdout != nil && from == process.Stdout {
		s.Stdout(line)
	}
	if s.Sink != nil && s.allowLine(time.Now()) {
		s.Sink(Event{Kind: EventOutput, Text: term.Short(string(line), maxEventText)})
	}
}

// allowLine counts a line and reports whether Sink may have it.
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
