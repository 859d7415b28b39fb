// Package verify finds out what becomes of a change on exactly its parent: whether
// the project's verify commands and the checks of a goal pass there, whether the
// tests of a fix show what it mends, which of its files only a person may approve,
// and, where something fails, what the rules need to say whose fault that is.
package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/internal/pathpattern"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/goals"
	"github.com/pfl-forge/pfl-forge/jobs/guard"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// Change is a change that is one commit on the tip of the base branch.
type Change struct {
	// Head is that commit.
	Head git.OID
	// Files are the paths that it touches.
	Files []string
	// Alone is the change on the base that it was made on; empty if that is the tip.
	Alone git.OID
	// Once says that a failure is reported as it is, and nothing is run again
	// to find out whose fault it is.
	Once bool
	// Failed is the report of a trial whose verify commands failed twice on
	// exactly this change; nil if there is none.
	Failed *forge.VerifyReport
	// Leave says that the verify commands may be left to the merge. They are not where
	// something else than the merge depends on them: criteria, the proof of a fix, or a
	// person who has to know how the change does with the files that they run as they were.
	Leave bool
}

// onTip runs the verify commands on a change that is one commit on the tip, and reports what of
// it only a person may approve. If the change has files that the commands run, these
// decide over themselves: then the commands run once more with the files as they are on the tip,
// and the person who has to approve is told if those fail.
func onTip(ctx context.Context, j *jobs.Job, c Change) (report *forge.VerifyReport, guarded []string, err error) {
	checks := goals.Checks(j.Command)
	head, files := c.Head, c.Files
	found, err := j.Guard.Look(ctx, guard.Change{Base: j.Tip, Head: head, Files: files, Checks: checks}, j.Config)
	if err != nil {
		return nil, nil, err
	}
	if c.Leave && len(checks)+len(found.Run) == 0 && !wantsProof(j) {
		return nil, found.Reasons, errLeft
	}
	if report, err = tried(ctx, j, c, checks); err != nil || report == nil || !report.Passed {
		return report, found.Reasons, err
	}
	if err := prove(ctx, j, report, head, files); err != nil {
		return report, found.Reasons, err
	}
	if len(checks) > 0 && verdict.Failing(report) == "" {
		if found.Run, err = withTests(ctx, j, found.Run, files); err != nil {
			return report, found.Reasons, err
		}
	}
	if len(found.Run) == 0 {
		return report, found.Reasons, nil
	}
	names := term.Short(strings.Join(found.Run, ", "), maxNames)
	before, err := j.Store.CommitFilesOf(ctx, head, j.Tip, found.Run, "The checks as they were")
	if _, ok := errors.AsType[*git.WorkError](err); ok {
		return report, append(found.Reasons, fmt.Sprintf("not verified with %s as it was, which is no file now", names)), nil
	}
	if err != nil || before == head {
		return report, found.Reasons, err
	}
	was, err := jobs.VerifyGoal(ctx, j, before, checks)
	if err != nil {
		return report, found.Reasons, err
	}
	if line := verdict.Failing(was); line != "" {
		found.Reasons = append(found.Reasons, verdict.FailsAsItWas(names, line))
	}
	return report, found.Reasons, nil
}

// errLeft is returned when the verify commands are left to the merge. An empty report
// would not do: it is the report of a project that has no commands, and so passes.
var errLeft = errors.New("left to the merge")

// maxNames bounds the names of files in a reason, in bytes.
const maxNames = 200

// withTests adds to files those of a change that are tests on the tip.
func withTests(ctx context.Context, j *jobs.Job, files, changed []string) ([]string, error) {
	for _, f := range changed {
		if slices.Contains(files, f) || !pathpattern.Any(j.Config.Review.TestFiles, f) {
			continue
		}
		kind, err := j.Store.Entry(ctx, j.Tip, git.Path(f))
		if err != nil {
			return nil, err
		}
		if kind != objects.EntryNone {
			files = append(files, f)
		}
	}
	return files, nil
}

// prove adds to the report of a fix whether its tests fail without it. Where the project requires
// that, a fix that does not show it fails to verify.
func prove(ctx context.Context, j *jobs.Job, report *forge.VerifyReport, head git.OID, files []string) (err error) {
	if !wantsProof(j) {
		return nil
	}
	if report.Proof, err = regression(ctx, j, head, files); err != nil {
		return err
	}
	if !report.Proof.Passed && j.Config.Review.Proof == config.ProofRequire {
		report.Passed, report.Command = false, verdict.RegressionProof
		report.Output = report.Proof.Output + "\nA fix needs a test that fails without it and passes with it (review.proof)."
	}
	return nil
}

// GuardedSince returns the reasons for which a person has to approve a change that is one
// commit on a commit of the base branch. The configuration is that of base, not of the tip.
// There are none for what the patterns of policy.protected_paths name: the rules see to those.
func GuardedSince(ctx context.Context, j *jobs.Job, base, head git.OID) ([]string, error) {
	p, err := j.Repository.Config(ctx, base)
	if err != nil {
		return nil, err
	}
	changes, err := j.Store.Changes(ctx, base, head)
	if err != nil {
		return nil, err
	}
	found, err := j.Guard.Look(ctx, guard.Change{Base: base, Head: head, Files: jobs.Files(changes), Checks: goals.Checks(j.Command)}, p)
	return found.Reasons, err
}

// Steers returns, a phrase each, what of a change alters how others are verified: files that the
// commands run, what only a person may approve, and the configuration. They are those of the
// tip, on which others may be that alter them. Such a change is verified together with no other.
func Steers(ctx context.Context, j *jobs.Job, head git.OID, files []string) ([]string, error) {
	p, err := j.Repository.Config(ctx, j.Tip)
	if err != nil {
		return nil, err
	}
	found, err := j.Guard.Look(ctx, guard.Change{Base: j.Tip, Head: head, Files: files}, p)
	if err != nil {
		return nil, err
	}
	reasons := found.Reasons
	for _, file := range found.Run {
		reasons = append(reasons, file+" (verify runs it)")
	}
	for _, file := range files {
		if pathpattern.Any(p.Policy.ProtectedPaths, file) {
			reasons = append(reasons, file+" (it is protected)")
		}
	}
	if slices.Contains(files, config.FileName) {
		reasons = append(reasons, config.FileName+" (it says what verify runs)")
	}
	return reasons, nil
}

// Ride reports a change that is verified together with later ones, and returns
// false if it may not be: it is in conflict or another patch, or alters what
// verify goes by. Then nothing is verified, and the rules have it tried alone.
func Ride(ctx context.Context, j *jobs.Job, r *forge.MergeResult, f *forge.Rebase, patch string) (fits bool, err error) {
	if len(f.Conflicts) == 0 {
		f.Guarded, err = Steers(ctx, j, git.OID(f.Head), f.Files)
	}
	r.Batch = append(r.Batch, *f)
	return len(f.Conflicts)+len(f.Guarded) == 0 && f.PatchID == patch, err
}

// AsMade returns the base that a change was made on, and the change there. A change
// that was rebased onto a later tip and not verified there carries its original base:
// only on that base a run shows whether it passes without the commits merged since.
func AsMade(ctx context.Context, j *jobs.Job, base, alone git.OID) (made, there git.OID, err error) {
	l := j.Command.Merge().Change
	if l == nil || l.MadeOn == "" {
		return base, alone, nil
	}
	if made, err = jobs.OID("made_on", l.MadeOn); err != nil {
		return "", "", err
	}
	got, err := j.Store.Rebase(ctx, base, alone, made)
	if _, conflict := errors.AsType[*git.ConflictError](err); conflict {
		return base, alone, nil
	}
	return made, got.Head, err
}
