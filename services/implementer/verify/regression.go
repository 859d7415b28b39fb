package verify

import (
	"context"
	"errors"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/pathpattern"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// typeFix is the type of intents whose changes are to come with a regression proof.
const typeFix = "fix"

// wantsProof reports whether the change of the command's task is to come with a
// regression proof. A recipe has a check of its own instead.
func wantsProof(j *jobs.Job) bool {
	in := &j.Command.Intent
	return in.Type == typeFix && in.Recipe == "" && j.Config.Review.Proof != config.ProofOff && len(j.Config.Verify) > 0
}

// regression looks whether the tests of a change show what it mends: it puts
// the change's test files on the tip, by itself, and runs the verify commands
// there. They have to fail, while they passed on the change. files are those
// that the change touches. The run says in Passed whether that is so.
func regression(ctx context.Context, j *jobs.Job, head git.OID, files []string) (*forge.CheckRun, error) {
	run := &forge.CheckRun{ID: "p1", Name: verdict.RegressionProof}
	var tests []string
	for _, f := range files {
		if pathpattern.Any(j.Config.Review.TestFiles, f) {
			tests = append(tests, f)
		}
	}
	if len(tests) == 0 {
		run.Output = "the change has no test: it touches no file of review.test_files"
		return run, nil
	}
	before, err := j.Store.CommitFilesOf(ctx, j.Tip, head, tests, "The tests of the change, without the change")
	if _, ok := errors.AsType[*git.WorkError](err); ok {
		run.Output = "the tests of the change cannot be put on the base branch: " + err.Error()
		return run, nil
	}
	if err != nil {
		return nil, err
	}
	if before == j.Tip {
		run.Output = "the change only deletes tests"
		return run, nil
	}
	report, err := j.Verify(ctx, before)
	if err != nil {
		return nil, err
	}
	if n := len(report.Runs); n > 0 {
		last := report.Runs[n-1]
		last.ID, last.Name, last.Passed = run.ID, run.Name, !report.Passed
		run = &last
	}
	switch {
	case run.Passed:
	case report.Passed:
		run.Output = "the tests of the change pass also without the change: " + strings.Join(tests, ", ")
	default:
		run.Output = "the checkout could not be set up without the change"
	}
	return run, nil
}
