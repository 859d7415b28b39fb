package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/checkout"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Bounds of the outputs that are reported, in bytes; the end is kept.
const (
	// maxVerifyOutput is for the command that failed.
	maxVerifyOutput = 16 << 10
	// maxRunOutput is for each command that ran.
	maxRunOutput = 4 << 10
	// maxRunsOutput is for all of them together: those that ran last keep theirs.
	maxRunsOutput = 32 << 10
)

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
	c, done, err := verifyView(ctx, j, commit)
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
	tree, err := j.Store.Tree(ctx, commit)
	if err != nil {
		return nil, err
	}
	report, err := j.commands(ctx, c, layer, telemetry.CommandVerify, j.Config.Verify, j.Config.Policy.CommandNetwork)
	if err != nil {
		return nil, err
	}
	for n := range report.Runs {
		report.Runs[n].ID, report.Runs[n].Tree = fmt.Sprintf("v%d", n+1), string(tree)
	}
	if report.Passed {
		keepLayer(ctx, j, layer, commit)
	}
	return report, nil
}

// setUp runs the worktree_setup commands in a checkout.
func (j *Job) setUp(ctx context.Context, c *checkout.Checkout, layer string) (*forge.VerifyReport, error) {
	report, err := j.commands(ctx, c, layer, telemetry.CommandSetup, j.Config.WorktreeSetup, config.NetworkFull)
	if report != nil {
		report.Runs = nil // they show nothing of the change
	}
	return report, err
}

// commands runs command lines in a checkout, in order, until one fails. What they cache is in
// the layer.
func (j *Job) commands(
	ctx context.Context, c *checkout.Checkout, layer string, what telemetry.Command, lines []string, network config.Network,
) (*forge.VerifyReport, error) {
	report := &forge.VerifyReport{Passed: true}
	if len(lines) == 0 { // then it does not matter whether there is a sandbox
		return report, nil
	}
	s, remove, err := shell(ctx, j, c, layer, network)
	if err != nil {
		return nil, err
	}
	defer remove()
	s.For, s.Limits = what, agent.Limits{Wall: j.Config.Timeouts.Verify}
	for n, line := range lines {
		s.Command, s.Index = line, n
		run, whole, err := runOne(ctx, s)
		if err != nil {
			return nil, err
		}
		report.Runs = append(report.Runs, run)
		if !run.Passed {
			report.Passed, report.Command, report.Output = false, line, term.Last(whole, maxVerifyOutput)
			break
		}
	}
	boundRuns(report.Runs)
	return report, nil
}

// shell returns how command lines are run in a checkout, without the line
// itself, and a function that removes their scratch directory.
func shell(ctx context.Context, j *Job, c *checkout.Checkout, layer string, network config.Network) (s agent.Shell, remove func(), err error) {
	scratch, remove, err := j.host.scratch()
	if err != nil {
		return s, nil, err
	}
	confined, err := j.confine(ctx, place{dir: c.Dir(), scratch: scratch, layer: layer, by: byCommands, network: network})
	if err != nil {
		remove()
		return s, nil, err
	}
	env := append(j.environment(byCommands, c.Env()...),
		"FORGE_INTENT="+string(j.Intent()), "FORGE_TASK="+string(j.Task()))
	return agent.Shell{Dir: c.Dir(), ScratchDir: scratch, Owner: j.host.Owner, Env: env, Sandbox: confined, Sink: j.sink("")}, remove, nil
}

// runOne runs one command line. A command that fails or overruns its limits is a run that did
// not pass, no error. whole says more than the run's output, for the one who has to repair it.
func runOne(ctx context.Context, s agent.Shell) (run forge.CheckRun, whole string, err error) {
	began := time.Now()
	res, err := agent.RunShell(ctx, s)
	run = forge.CheckRun{
		Command: s.Command, Passed: err == nil && res.OK(), ExitCode: res.ExitCode, Output: strings.TrimSpace(res.Output),
		Duration: time.Since(began).Round(time.Millisecond),
	}
	switch {
	case err != nil && !overran(err):
		return run, "", err
	case err != nil:
		run.ExitCode, run.Output = -1, Failure(err).Message
		return run, run.Output, nil
	}
	return run, strings.TrimSpace(fmt.Sprintf("%s\nexit status %d", strings.TrimRight(res.Output, "\n"), res.ExitCode)), nil
}

// boundRuns clips the outputs of runs, each of them and all together.
func boundRuns(runs []forge.CheckRun) {
	room := maxRunsOutput
	for n := range slices.Backward(runs) {
		runs[n].Output = term.Last(runs[n].Output, min(room, maxRunOutput))
		room -= len(runs[n].Output)
	}
}

// overran reports whether a command exceeded its limits. That is said of the change, as any
// other command that does not pass: trials on the tip without it tell whose fault it is.
func overran(err error) bool {
	f, ok := errors.AsType[*agent.Failure](err)
	return ok && slices.Contains(limits, f.Reason)
}

// limits are the reasons of a command that exceeded its own bounds. The bound
// of memory is not among them: the kernel ends what exceeds it, and the command
// has an exit status. FailLost is not either: a full disk is the machine's.
var limits = []forge.FailureReason{forge.FailTimeout, forge.FailIdle, forge.FailOutputLimit, forge.FailDiskLimit}
