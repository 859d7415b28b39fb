package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/checkout"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
)

// maxVerifyOutput bounds the output that is reported of a command, in bytes; the end
// is kept.
const maxVerifyOutput = 16 << 10

// Verify runs the project's verify commands on a commit, in a checkout of its own
// that is set up first. It returns nil if the project configures none. A command that
// fails or overruns its time limit is part of the report, not an error.
func (j *Job) Verify(ctx context.Context, commit git.OID) (*forge.VerifyReport, error) {
	if len(j.Config.Verify) == 0 {
		return nil, nil //nolint:nilnil // no report is an answer
	}
	began := time.Now()
	traced, end := telemetry.Span(ctx, "verify")
	report, err := j.verify(traced, commit)
	end(err)
	if ctx.Err() == nil { // a stopped one says nothing of the commands
		j.host.Metrics.Verified(j.Command.To.Project, time.Since(began), report, err)
	}
	return report, err
}

// verify sets a checkout up and runs the verify commands in it.
func (j *Job) verify(ctx context.Context, commit git.OID) (*forge.VerifyReport, error) {
	c, done, err := j.View(ctx, "verify", commit)
	if err != nil {
		return nil, err
	}
	defer done()
	// Setup commands download dependencies, so they have the network; verify commands
	// have what the policy says.
	// What sets a checkout up is there to fetch things; what verifies it need not be.
	layer, remove, err := j.host.scratch()
	if err != nil {
		return nil, err
	}
	defer remove()
	if report, err := j.setUp(ctx, c, layer); err != nil || !report.Passed {
		return report, err
	}
	report, err := j.commands(ctx, c, layer, telemetry.CommandVerify, j.Config.Verify, j.Config.Policy.CommandNetwork)
	if err == nil && report.Passed {
		keepLayer(ctx, j, layer, commit)
	}
	return report, err
}

// setUp runs the worktree_setup commands in a checkout.
func (j *Job) setUp(ctx context.Context, c *checkout.Checkout, layer string) (*forge.VerifyReport, error) {
	return j.commands(ctx, c, layer, telemetry.CommandSetup, j.Config.WorktreeSetup, config.NetworkFull)
}

// commands runs command lines in a checkout, in order, until one fails. What they cache is in
// the layer.
func (j *Job) commands(
	ctx context.Context, c *checkout.Checkout, layer string, what telemetry.Command, lines []string, network config.Network,
) (*forge.VerifyReport, error) {
	if len(lines) == 0 { // then it does not matter whether there is a sandbox
		return &forge.VerifyReport{Passed: true}, nil
	}
	scratch, remove, err := j.host.scratch()
	if err != nil {
		return nil, err
	}
	defer remove()
	confined, err := j.confine(ctx, place{dir: c.Dir(), scratch: scratch, layer: layer, by: byCommands, network: network})
	if err != nil {
		return nil, err
	}
	env := append(j.environment(byCommands, c.Env()...),
		"FORGE_INTENT="+string(j.Intent()), "FORGE_TASK="+string(j.Task()))
	for n, line := range lines {
		res, err := agent.RunShell(ctx, agent.Shell{
			Command: line, For: what, Index: n, Dir: c.Dir(), ScratchDir: scratch, Owner: j.host.Owner, Env: env, Sandbox: confined,
			Limits: agent.Limits{Wall: j.Config.Timeouts.Verify}, Sink: j.sink(""),
		})
		if err != nil && !overran(err) {
			return nil, err
		}
		if err != nil {
			return &forge.VerifyReport{Command: line, Output: lastBytes(Failure(err).Message, maxVerifyOutput)}, nil
		}
		if !res.OK() {
			output := fmt.Sprintf("%s\nexit status %d", strings.TrimRight(res.Output, "\n"), res.ExitCode)
			return &forge.VerifyReport{Command: line, Output: lastBytes(strings.TrimSpace(output), maxVerifyOutput)}, nil
		}
	}
	return &forge.VerifyReport{Passed: true}, nil
}

// overran reports whether a command exceeded its limits, which is the change's fault
// and not the machine's.
func overran(err error) bool {
	f, ok := errors.AsType[*agent.Failure](err)
	return ok && (f.Reason == forge.FailTimeout || f.Reason == forge.FailIdle || f.Reason == forge.FailOutputLimit)
}

// lastBytes returns the end of a text, bounded to most bytes of valid UTF-8, marked if
// something is left out.
func lastBytes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const mark = "...\n"
	return mark + strings.ToValidUTF8(s[len(s)-most+len(mark):], "")
}
