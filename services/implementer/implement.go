package implementer

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/checkout"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/implementer/commitmsg"
)

// implement carries out the steps implement and execute.
func (i *Implementer) implement(ctx context.Context, cmd forge.Command, progress service.Progress) forge.Result {
	return i.repos.Do(ctx, &cmd, progress, func(ctx context.Context, j *jobs.Job) error {
		unlock, err := j.Lock(ctx, string(j.Task()))
		if err != nil {
			return err
		}
		defer unlock()
		return i.implementTask(ctx, j)
	})
}

// implementTask continues an attempt from wherever an earlier delivery of it
// stopped, to its commits.
func (i *Implementer) implementTask(ctx context.Context, j *jobs.Job) error {
	if err := i.forgetNamesakes(ctx, j); err != nil {
		return err
	}
	switch {
	case isExecute(j.Command):
		if err := j.NeedModel(); err != nil {
			return err
		}
	case j.Command.Task.Write != nil:
		return i.write(ctx, j)
	}
	w, err := begin(ctx, j)
	if err != nil {
		return err
	}
	w.log = i.log
	if w.state.Ended && w.state.GivenBack {
		return w.report()
	}
	if !w.state.Ended {
		err := w.run(ctx)
		if ctx.Err() != nil || jobs.NotHere(ctx, j, err) { // it is not over: another delivery goes on
			return errors.Join(err, i.handOn(ctx, w))
		}
		if err := w.state.end(&j.Result, err); err != nil {
			return err
		}
		i.crash("ended")
	}
	j.Result = w.state.Result
	if f := w.state.Failure; f != nil {
		return errors.Join(&agent.Failure{Failure: *f}, i.giveUp(ctx, w))
	}
	if err := i.collect(ctx, w); err != nil {
		return err
	}
	i.giveBack(ctx, w)
	return nil
}

// report reports an attempt whose checkout was given back.
func (w *work) report() error {
	w.Result = w.state.Result
	if f := w.state.Failure; f != nil {
		return &agent.Failure{Failure: *f}
	}
	w.Result.Output = w.state.Implementation
	return nil
}

// work is an attempt under way in its checkout.
type work struct {
	*jobs.Job
	// checkout is nil only for an attempt that was given back.
	checkout *checkout.Checkout
	// state is written before and after each thing that must not be done twice.
	state *checkpoint
	// fresh is set if the checkout has to be set up.
	fresh bool
	// touched is set if an earlier delivery has left files or commits in it.
	touched bool
	// moved is set if it was rebuilt from a saved checkpoint.
	moved bool
	// damaged is set if its content could not be saved completely.
	damaged bool
	// saved is the last checkpoint of the tree while the agent works.
	saved checkout.Checkpoint
	log   *slog.Logger
}

// pristine returns the commit whose files the checkout has; empty if others may be there.
func (w *work) pristine() git.OID {
	if w.moved || w.touched {
		return ""
	}
	return w.state.From
}

// run sets the checkout up and has the agent do its work. Each stage that need not be done again
// after a crash is written to the checkpoint when it is done.
func (w *work) run(ctx context.Context) error {
	if w.fresh {
		if err := w.SetUp(ctx, w.checkout, w.pristine()); err != nil {
			return err
		}
		w.state.SetUp = true
		if err := w.state.write(); err != nil {
			return err
		}
	}
	if err := w.writeTaskFiles(); err != nil {
		return err
	}
	out, err := w.call(ctx)
	if isExecute(w.Command) {
		if err := w.state.used(out.Tools); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	w.state.Denied = out.Denied
	observations, err := w.parseAnswer(out.Answer)
	if err != nil {
		return err
	}
	w.Observe(observations, time.Now())
	return nil
}

// parseAnswer records the agent's answer and returns its observations.
func (w *work) parseAnswer(answer []byte) (observations []forge.Observation, err error) {
	if w.state.Blocked, w.state.NothingToDo, err = agent.ParseWord(answer); err != nil {
		return nil, err
	}
	if !isExecute(w.Command) {
		w.state.Summary, observations, err = agent.ParseImplementation(answer)
		w.state.NotNeeded = agent.NotNeeded(answer)
		return observations, err
	}
	e, observations, err := agent.ParseExecution(answer)
	w.state.Summary, w.state.Execution = e.Output, &e
	return observations, err
}

// collect brings the commits into the repository and sets the result's output. What a recipe
// changed is committed here; an agent makes its commits itself. Work that was left uncommitted is
// kept in a commit of its own, beside those of the task.
func (i *Implementer) collect(ctx context.Context, w *work) error {
	recipe, err := w.IsRecipe()
	if err != nil {
		return err
	}
	if recipe {
		_, err := w.checkout.CommitAll(ctx, commitmsg.First(w.Command), git.Identity{})
		if err != nil && !errors.Is(err, git.ErrNothingToCommit) {
			_, saveErr := w.save(ctx)
			return errors.Join(err, saveErr)
		}
	}
	got, err := w.checkout.Collect(ctx, i.newestAttempt(w.Job))
	if err != nil {
		return err
	}
	w.state.Head, w.state.Work = got.Head, got.Leftover
	w.store(ctx)
	head, err := w.withoutEmpty(ctx, got.Head)
	if err != nil {
		return err
	}
	im := &forge.Implementation{
		Base: string(w.state.Base), Head: string(head), Leftover: string(got.Leftover), Summary: w.state.Summary,
		Blocked: w.state.Blocked, Denied: w.state.Denied,
	}
	if head == w.state.Base && !isExecute(w.Command) {
		im.NothingToDo = w.state.NothingToDo
	}
	if r, ok := w.Recipe(); recipe && ok && head == w.state.Base && w.state.From == w.state.Base {
		im.Unchanged = r.AllowEmpty || w.state.NotNeeded
	}
	added := head != w.state.From // or nothing to the attempt before
	if head != w.state.Base && (added || isExecute(w.Command)) {
		if err := w.measure(ctx, im, &got); err != nil {
			return err
		}
		im.PatchID = i.changes.Keep(ctx, w.Job, w.state.Base, head)
		im.Overlaps = i.findOverlaps(ctx, w.Job, w.state.Base, head)
	}
	if isExecute(w.Command) {
		if im.Execution, err = w.execution(ctx, &got); err != nil {
			return err
		}
	}
	w.state.Implementation = im
	w.Result.Output = im
	return nil
}

// withoutEmpty returns the commit that an attempt's head comes to: the one that it began
// with, or the base, if the files are the same there. Commits alone are no change,
// whatever their messages say.
func (w *work) withoutEmpty(ctx context.Context, head git.OID) (git.OID, error) {
	tree, err := w.Store.Tree(ctx, head)
	if err != nil {
		return "", err
	}
	for _, before := range []git.OID{w.state.From, w.state.Base} {
		was, err := w.Store.Tree(ctx, before)
		if err != nil {
			return "", err
		}
		if was == tree {
			return before, nil
		}
	}
	return head, nil
}

// measure fills in what the task's commits come to, of which a checkout that began
// with some of them knows only its own.
func (w *work) measure(ctx context.Context, im *forge.Implementation, got *checkout.Collected) (err error) {
	changes := got.Changes
	im.Commits = got.Commits
	if w.checkout.Start() != w.state.Base {
		if im.Commits, err = w.Store.Commits(ctx, w.state.Base, got.Head); err != nil {
			return err
		}
		if changes, err = w.Store.Changes(ctx, w.state.Base, got.Head); err != nil {
			return err
		}
	}
	im.Files = jobs.Files(changes)
	return nil
}
