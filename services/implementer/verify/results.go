package verify

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/goals"
	"github.com/pfl-forge/pfl-forge/proof"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// maxResults bounds the results that are kept, the newest.
const maxResults = 256

// Results are the changes that this process has seen passing, so that the same
// tree on the same parent is not verified twice for a task: for its review and,
// after another attempt or a trial, for its merge. The zero value has none.
//
// They are in the memory of the process that ran the commands, where no agent and no
// command can write. After a restart, and by another worker, a change is verified again.
type Results struct {
	mu     sync.Mutex
	passed map[key]result
	order  []key
}

// key is all that the outcome of verifying depends on. The commits do not
// matter: signatures and approvers change them, and not what is verified.
type key struct {
	project            forge.ProjectID
	task               forge.TaskID
	base, tree         string // trees: of the parent, whose configuration says what runs, and of the change
	definition, checks string
}

// result is of a change that passed at once.
type result struct {
	report   *forge.VerifyReport
	together string
	guarded  []string
	executor forge.Executor
}

// OnTip verifies a change, also one that is about to be merged on a tip that moved.
// It is the only place where a pass of before stands for another run: one of this
// process, or one that a trial found (ADR 0077). A pass counts for its tree on its
// parent's tree and for no other. One that took several runs is not kept (ADR
// 0071), and of a change that is known to be unsteady nothing is believed.
func (s *Results) OnTip(ctx context.Context, j *jobs.Job, r *forge.Rebase, c Change) error {
	c.Head, c.Files = git.OID(r.Head), r.Files
	base, err := j.Store.Tree(ctx, j.Tip)
	if err != nil {
		return err
	}
	k, err := keyOf(j, string(base), r.Tree)
	if err != nil {
		return err
	}
	if known, ok := s.find(j, k, r.PatchID); ok {
		// What only a person may approve is looked at by a merge as ever, with
		// the reasons that were found.
		r.Verify, r.Guarded, j.Result.Executor = known.report, slices.Clone(known.guarded), known.executor
		if r.Together = known.together; r.Together != "" {
			jobs.Say(j, "not verified by itself: it passed together with its batch, as tree "+term.Line(r.Together))
			return nil
		}
		jobs.Say(j, "not verified again: this tree passed on its parent")
		return nil
	}
	c.Failed = failed(j, k, r.PatchID)
	if r.Verify, r.Guarded, err = onTip(ctx, j, c); errors.Is(err, errLeft) {
		// Nothing is kept of it, and nothing stated: a pass that another task, a
		// trial or a statement could take for one is made by commands that ran.
		r.Unverified = true
		jobs.Say(j, "not verified before the review: the verify commands run in the merge, on exactly what lands")
		return nil
	}
	if err == nil {
		s.keep(k, result{r.Verify, "", r.Guarded, j.Result.Executor})
	}
	return err
}

// keyOf returns the key of a change of the job's task.
func keyOf(j *jobs.Job, base, tree string) (key, error) {
	// A fix is verified in another way than the rest, so the type belongs to it.
	checks, err := json.Marshal([]any{j.Command.Intent.Type, j.Command.Intent.Recipe, goals.Checks(j.Command)})
	return key{
		project: j.Command.To.Project, task: j.Command.Attempt.Task, base: base, tree: tree,
		definition: proof.Definition(j.Config.WorktreeSetup, j.Config.Verify), checks: string(checks),
	}, err
}

// find returns the result of a change that passed: what a trial found, or what
// this process has kept.
func (s *Results) find(j *jobs.Job, k key, patch string) (result, bool) {
	in := j.Command.Merge()
	if f := in.Tried; f != nil && in.Change != nil && f.BaseTree == k.base && f.Tree == k.tree && f.PatchID == patch && verdict.Failing(f.Verify) == "" &&
		(f.Together == "" || j.Config.MergeQueue.Batch > 1) { // the configuration on the tip has the last word
		return result{f.Verify, f.Together, f.Guarded, in.In}, true
	}
	// A trial always runs the commands: the change right behind it may count
	// the pass as one of its base between two failures (ADR 0136).
	if in.Trial || len(j.Command.Rebase().Tried) > 0 {
		return result{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.passed[k]
	if ok {
		known.report = clone(known.report)
	}
	return known, ok
}

// failed returns the report of a trial in which the verify commands failed
// twice on exactly this change; nil if there is none.
func failed(j *jobs.Job, k key, patch string) *forge.VerifyReport {
	in := j.Command.Merge()
	f := in.Tried
	if f == nil || in.Change == nil || f.Verify == nil || f.Verify.Passed || f.BaseTree != k.base || f.Tree != k.tree || f.PatchID != patch ||
		!verdict.FailedTwice(f.Verify.Trials, k.tree) {
		return nil
	}
	if base := verdict.PassedBetween(f.Verify.Trials); base != "" && base != k.base {
		return nil
	}
	return clone(f.Verify)
}

// clone returns a report that can be added to without altering what is kept.
func clone(r *forge.VerifyReport) *forge.VerifyReport {
	c := *r
	c.Runs, c.Checks, c.Trials = slices.Clone(r.Runs), slices.Clone(r.Checks), slices.Clone(r.Trials)
	return &c
}

// keep remembers a result, if it is one to rely on.
func (s *Results) keep(k key, r result) {
	if r.report == nil || len(r.report.Trials) > 0 || verdict.Failing(r.report) != "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.passed == nil {
		s.passed = map[key]result{}
	}
	if _, known := s.passed[k]; !known {
		s.order = append(s.order, k)
	}
	s.passed[k] = result{clone(r.report), "", slices.Clone(r.guarded), r.executor}
	if len(s.order) > maxResults {
		delete(s.passed, s.order[0])
		s.order = slices.Delete(s.order, 0, 1)
	}
}
