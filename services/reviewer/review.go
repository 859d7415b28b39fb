package reviewer

import (
	"context"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/checkout"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/evidence"
	"github.com/pfl-forge/pfl-forge/service"
)

// review carries out the step review.
func (r *Reviewer) review(ctx context.Context, cmd forge.Command, progress service.Progress) forge.Result {
	return r.repos.Do(ctx, &cmd, progress, r.reviewTask)
}

// reviewTask has the intent's agent give a verdict on the head of the task.
func (r *Reviewer) reviewTask(ctx context.Context, j *jobs.Job) error {
	base, err := jobs.OID("base", j.Command.Task.Base)
	if err != nil {
		return err
	}
	head, err := jobs.OID("head", j.Command.Task.Head)
	if err != nil {
		return err
	}
	if err := j.Bring(ctx, j.Command.To.Intent, base, head); err != nil {
		return err
	}
	if in := j.Command.Review(); in.Second != nil && j.Config.SecondAfter(in).Agent == "" {
		// A person names another one. Until then one approval is all that there
		// is, and that is not enough.
		return agent.Fail(forge.FailConfig, "%s made the first review, and there is nobody else for the second: "+
			"set review.second in %s to another agent or model, or name another agent in the intent", config.Named(in.First), config.FileName)
	}
	recipe, err := j.IsRecipe()
	if err != nil {
		return err
	}
	h := &claimCheck{noun: "requirement", asked: j.Command.Task.Required(), least: j.Config.Review.MinConfidence, system: r.systems[forge.StepReview]}
	q := newInquiry(j.Command, j.Config)
	h.judged = &evidence.Judged{Store: j.Store, Base: base, Head: head, Runs: slices.Concat(runs(j.Command.Review().Verify), q.Ran)}
	answer, err := ask(ctx, j, base, head, h, q, recipe)
	if err != nil {
		return err
	}
	verdict, observations, err := agent.ParseReview(answer)
	if err != nil {
		return err
	}
	if verdict.Claims, err = h.resolve(ctx, verdict.Claims); err != nil {
		return err
	}
	verdict.TaskID, verdict.Head = j.Command.Attempt.Task, string(head)
	verdict.Second = j.Command.Review().Second != nil
	if !recipe {
		verdict.By = j.Called
	}
	j.Result.Output = &verdict
	if verdict.Asked, _ = q.pick(verdict.Asked); len(verdict.Asked) > 0 {
		verdict.Verdict, verdict.Claims, verdict.Issues, verdict.Suggestions = "", nil, nil, nil
		j.SaveSession(ctx, j.StateDir(stateOf(verdict.TaskID)), nil)
		return nil
	}
	j.Observe(observations, time.Now())
	approved := verdict.Verdict == forge.VerdictApproved && len(verdict.Issues) == 0 && (recipe || h.shown(verdict.Claims))
	if err := r.stateReview(ctx, j, base, head, &verdict, approved); err != nil || !q.begun() {
		return err
	}
	return j.Retire(ctx, stateOf(verdict.TaskID))
}

// runs returns the runs of the project's commands that can be cited.
func runs(v *forge.VerifyReport) []forge.CheckRun {
	if v == nil {
		return nil
	}
	return v.Runs
}

// ask makes the call, and returns its answer. A review that is repeated begins a new
// session; a recipe without a check needs no checkout.
func ask(ctx context.Context, j *jobs.Job, base, head git.OID, h *claimCheck, q inquiry, recipe bool) ([]byte, error) {
	// A review that is repeated begins anew: its conversation is not kept.
	call := agent.Call{Role: agent.RoleReview, Schema: agent.ReviewSchema, Session: agent.Session{ID: j.Command.Session}}
	if recipe && !j.HasCheck() {
		return h.run(ctx, j, call)
	}
	view, done, err := j.View(ctx, string(forge.StepReview), head)
	if err != nil {
		return nil, err
	}
	defer done()
	call.Dir, call.Env = view.Dir(), view.Env()
	if recipe {
		err = j.SetUp(ctx, view, "")
	} else {
		err = describe(ctx, j, view, base, head, h, q, &call)
		call.Check = func(answer []byte) error {
			verdict, _, err := agent.ParseReview(answer)
			if err != nil {
				return err
			}
			asked, wrong := q.pick(verdict.Asked)
			if len(asked) > 0 {
				return nil
			}
			if err := q.refuse(h, answer, wrong); err != nil {
				return err
			}
			return h.check(ctx, answer, verdict.Claims)
		}
	}
	if err != nil {
		return nil, err
	}
	return h.run(ctx, j, call)
}

// describe sets the prompts, and allows a turn more for each part of a large change.
func describe(ctx context.Context, j *jobs.Job, view *checkout.Checkout, base, head git.OID, h *claimCheck, q inquiry, call *agent.Call) error {
	if err := withhold(view.Dir()); err != nil {
		return err
	}
	c, err := look(ctx, j, view, base, head)
	if err != nil {
		return err
	}
	call.Limits.MaxTurns = len(c.Parts) // beside those that every call has
	c.inquiry = q
	if q.begun() {
		call.Schema = agent.InquirySchema // the same all the session long
		if j.Command.Session != "" {
			return h.converse(ctx, j, call, c)
		}
	}
	call.System, call.Prompt, err = render(c)
	return err
}
