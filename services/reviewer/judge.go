package reviewer

import (
	"cmp"
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/evidence"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// judge carries out the step judge.
func (r *Reviewer) judge(ctx context.Context, cmd forge.Command, progress service.Progress) forge.Result {
	return r.repos.Do(ctx, &cmd, progress, r.judgeGoal)
}

// judgeGoal has the intent's agent decide whether each criterion of a goal is met by the
// head of its task, or by the base branch if nothing was changed.
func (r *Reviewer) judgeGoal(ctx context.Context, j *jobs.Job) error {
	criteria := j.Command.Iteration().Goal.Criteria
	if len(criteria) == 0 && len(j.Command.Task.Checks) > 0 {
		return r.checked(ctx, j)
	}
	if err := j.NeedModel(); err != nil {
		return err
	}
	if len(criteria) == 0 {
		return agent.Fail(forge.FailInvalidOutput, "goal.criteria: is empty; there is nothing to judge by")
	}
	g, err := reached(ctx, j)
	if err != nil {
		return err
	}
	// A judgment that is repeated begins anew: its conversation is not kept.
	h := g.claimCheck(j, criteria)
	h.system = r.systems[forge.StepJudge]
	call := agent.Call{
		Role: agent.RoleJudge, Schema: agent.JudgmentSchema, Session: agent.Session{ID: cmp.Or(j.Command.Session, agent.NewSessionID())},
		Check: func(answer []byte) error {
			verdict, err := agent.ParseJudgment(answer)
			if err != nil {
				return err
			}
			return h.check(ctx, answer, verdict.Claims)
		},
	}
	if call.System, call.Prompt, err = g.render(); err != nil {
		return err
	}
	answer, err := h.run(ctx, j, call)
	if err != nil {
		return err
	}
	verdict, err := agent.ParseJudgment(answer)
	if err != nil {
		return err
	}
	if verdict.Claims, err = h.resolve(ctx, verdict.Claims); err != nil {
		return err
	}
	verdict.Head = j.Command.Task.Head
	j.Result.Output = &verdict
	if !g.Changed {
		return nil
	}
	return r.stateJudgment(ctx, j, &verdict, verdict.Complete && h.shown(verdict.Claims))
}

// stateJudgment adds the signed statement to a judgment of a change. What it approves has passed
// the checks that decide criteria, too, as far as the command says so of exactly its tree.
func (r *Reviewer) stateJudgment(ctx context.Context, j *jobs.Job, out *forge.Judgment, approved bool) error {
	t := &j.Command.Task
	tree, err := j.Store.Tree(ctx, git.OID(t.Head))
	if err != nil {
		return err
	}
	for _, c := range verdict.OfChecks(t.Criteria, t.Checks, j.Command.Iteration().Verify, string(tree)) {
		approved = approved && c.Counts()
	}
	out.Statement, err = r.state(ctx, j, git.OID(t.Base), git.OID(t.Head), approved)
	return err
}

// checked gives the judgment of a goal of which commands decide every
// criterion: no model is asked. The step stays, because a merge carries the
// statement of a second worker beside that of the one which ran the commands.
func (r *Reviewer) checked(ctx context.Context, j *jobs.Job) error {
	t := &j.Command.Task
	out := &forge.Judgment{Head: t.Head, Complete: true, Reason: "commands decide every criterion"}
	j.Result.Output = out
	if t.Head == "" || t.Head == t.Base {
		return nil
	}
	base, err := jobs.OID("base", t.Base)
	if err != nil {
		return err
	}
	head, err := jobs.OID("head", t.Head)
	if err != nil {
		return err
	}
	if err := j.Bring(ctx, j.Command.To.Intent, base, head); err != nil {
		return err
	}
	return r.stateJudgment(ctx, j, out, true)
}

// claimCheck returns how the claims of a judgment are looked up: in the task's head,
// or, where nothing was changed, in the commit of the base branch that was verified.
func (g *judgeData) claimCheck(j *jobs.Job, criteria []string) *claimCheck {
	h := &claimCheck{noun: "criterion", asked: criteria, least: j.Config.Review.MinConfidence}
	base := git.OID(j.Command.Task.Base)
	h.judged = &evidence.Judged{Store: j.Store, Base: base, Head: base, Runs: runs(g.Verify)}
	if g.Changed {
		h.judged.Head = git.OID(j.Command.Task.Head)
	}
	return h
}

// reached returns the judge's data, with what the task has changed so far.
func reached(ctx context.Context, j *jobs.Job) (*judgeData, error) {
	g := newJudgeData(j.Command, j.Config.Verify)
	base, err := jobs.OID("base", j.Command.Task.Base)
	if err != nil {
		return nil, err
	}
	if !g.Changed { // the base is judged that was verified, not where the branch is by now
		return g, g.read(ctx, j, base, nil)
	}
	head, err := jobs.OID("head", j.Command.Task.Head)
	if err != nil {
		return nil, err
	}
	if err := j.Bring(ctx, j.Command.To.Intent, base, head); err != nil {
		return nil, err
	}
	return g, g.look(ctx, j, base, head)
}

// look adds as much of the change as fits.
func (g *judgeData) look(ctx context.Context, j *jobs.Job, base, head git.OID) error {
	patch, truncated, err := j.Store.Diff(ctx, base, head, maxPatch)
	if err != nil {
		return err
	}
	changed, err := j.Store.Changes(ctx, base, head)
	if err != nil {
		return err
	}
	paths := jobs.Files(changed)
	files := split(string(patch))
	if truncated && len(files) > 0 {
		files = files[:len(files)-1] // the last one is cut
	}
	g.fitted, g.Rules = fit(files), rules(paths)
	if truncated {
		g.leave(unshown(paths, files)...)
	}
	return g.read(ctx, j, head, files)
}
