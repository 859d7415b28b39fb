package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/trust"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/forgedir"
	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/notify"
	"github.com/pfl-forge/pfl-forge/proof"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

const (
	readEvery  = time.Second            // how often a person's files are looked at
	writePause = 100 * time.Millisecond // between two writes of the files
	endTime    = 5 * time.Second        // for deciding on what workers reported last
)

// RunConfig says what to run, for whom, and until when. Repo, Base, Observer,
// Log and Trust are required.
type RunConfig struct {
	// Repo is the person's repository. Its idle git processes end with the run.
	Repo *Repository
	// Base is the branch and the configuration that the run begins with.
	Base *Base
	// Observer is told of every decision and all progress.
	Observer Observer
	Log      *slog.Logger
	// Watch goes on when nothing is left to do, until ctx ends.
	Watch bool
	// Only ends the run when this intent cannot go on any more; other intents
	// go on meanwhile, and no drafts are taken in. Then nothing new begins, and the attempts
	// of others that run go on to their end. Empty means all intents.
	Only forge.IntentID
	// Notify says which people are notified of decisions that wait for them; nil:
	// none.
	Notify *notify.Config
	// Trust says which configurations of the repository may have effect. The run looks at
	// each commit's, also at those that come while it goes on.
	Trust *trust.Guard
	// Keys has the key that signs what the run merges; empty: nothing is signed.
	Keys proof.Folder
	// Sandbox is the word of the person on it; a repository can only be
	// stricter. Bounds tell how much of this machine a command may take.
	Sandbox demand.Demand
	Bounds  demand.Bounds
}

// errPulls is the error of a run whose changes are to be merged by pull requests: there
// is no gateway here that could open one, and the change would wait for it without end.
var errPulls = errors.New(config.FileName + ": merge.how is pull_request, which takes the services with a gateway that has an account at the forge; " +
	"a run on its own has none: let the services work on it, or remove merge.how")

// Run works on everything that can go on without a person, and returns when
// nothing is left (with Only: of that intent), or, with Watch, when ctx ends.
// If ctx ends before, agents are ended and their work is kept for the next run.
// Nothing is left running. Error: *natsd.HeldError when another run goes on
// here.
func Run(ctx context.Context, cfg RunConfig) (*Outcome, error) {
	if cfg.Base.Config.Merge.How == config.MergePull {
		return nil, errPulls
	}
	s, err := openRun(ctx, cfg.Repo, cfg.Log)
	if err != nil {
		return nil, err
	}
	defer s.Close(ctx)
	d, err := openFilesSync(s.Bus, cfg.Repo, cfg.Log)
	if err != nil {
		return nil, err
	}
	defer d.close()
	if err := d.checkWhole(ctx); err != nil {
		return nil, err
	}
	d.branch = cfg.Base.Branch
	if cfg.Keys, err = prepared(cfg.Keys, cfg.Log); err != nil {
		return nil, err
	}
	r := &activeRun{
		RunConfig: cfg, session: s, files: d,
		watch:  newWatch(s.Bus, cfg.Repo.Project, cfg.Observer),
		failed: make(chan error, 1), reconciled: make(chan struct{}), written: -1,
	}
	r.watch.only = cfg.Only
	d.view = func(_ context.Context, id forge.IntentID) (forge.View, bool) { return r.watch.views.view(d.key(id)) }
	return r.run(ctx)
}

// activeRun is the state of one call of Run.
type activeRun struct {
	RunConfig
	session *Session
	files   *filesSync
	watch   *watch
	// failed has the error of the first part that ended early.
	failed chan error
	// reconciled is closed once what the previous run left has been reported or
	// removed.
	reconciled chan struct{}
	parts      sync.WaitGroup
	// written counts the records that state.yaml shows; -1 before it is
	// written.
	written int
	// noticed are the problems that were reported and are not solved.
	noticed map[forgedir.Problem]bool
}

// run starts the parts of a run in their order: first the journals are read,
// then the runner has in force what was under way, then workers take commands.
// They stop in the opposite order, so that results that workers report at the
// end are decided and shown.
func (r *activeRun) run(ctx context.Context) (*Outcome, error) {
	// What has to outlive the workers ends with this one.
	staying, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer r.parts.Wait()
	defer leave()
	r.part(staying, "following the journals", r.watch.run)
	ready := r.session.startRunner(staying, runner.Config{Serve: true, Notify: r.Notify, Key: r.Keys.Source("runner")})
	for _, c := range []<-chan struct{}{ready, r.watch.caughtUp} {
		select {
		case <-c:
		case <-ctx.Done():
			return r.outcome(true), nil
		case err := <-r.failed:
			return nil, err
		}
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	drained, err := r.startWorkers(working, ctx.Done())
	if err != nil {
		return nil, err
	}
	err = r.loop(working)
	interrupted := ctx.Err() != nil
	if n := r.othersAtWork(); n > 0 && !interrupted && err == nil {
		r.Observer.Notice(fmt.Sprintf("%s has ended; waiting for what is in progress for %d others (Ctrl-C stops it, nothing is lost)", r.Only, n))
	}
	stop()
	if endErr := drained(); err == nil {
		err = endErr
	}
	if endErr := r.finish(staying); err == nil {
		err = endErr
	}
	return r.outcome(interrupted), err
}

// othersAtWork counts, at the end of a run for one intent, the others that have attempts under
// way, which end before it does.
func (r *activeRun) othersAtWork() (n int) {
	if r.Only == "" {
		return 0
	}
	all, _ := r.watch.views.summaries()
	for i := range all {
		if all[i].Key.Intent != r.Only && len(all[i].Open) > 0 {
			n++
		}
	}
	return n
}

// part runs do in the background until its context ends; an earlier end, with
// an error, fails the run.
func (r *activeRun) part(ctx context.Context, name string, do func(context.Context) error) {
	r.parts.Go(func() {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			r.fail(fmt.Errorf("%s: %w", name, err))
		}
	})
}

// fail ends the run with an error, unless another one did before.
func (r *activeRun) fail(err error) {
	select {
	case r.failed <- err:
	default: // the first one says why
	}
}

// loop reads and writes files until nothing is left to do. Whatever a person
// saves is taken in within a second.
func (r *activeRun) loop(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case err := <-r.failed:
			return err
		case <-r.session.server.Failed():
			return fmt.Errorf("the store cannot be written: %w", r.session.server.Healthy(context.WithoutCancel(ctx)))
		default:
		}
		moved, err := r.syncFiles(ctx)
		if err != nil {
			return err
		}
		if !r.Watch && moved == 0 {
			quiet, err := r.watch.quiet(ctx)
			if err != nil && ctx.Err() == nil {
				r.Log.WarnContext(ctx, "cannot ask whether everything is done", "error", err)
			}
			if quiet {
				if waited, err := r.waitReconciled(ctx); !waited || err != nil {
					return err
				}
				continue // it may have found work
			}
		}
		r.watch.noticeWaits()
		r.watch.pause(ctx, writePause, readEvery)
	}
	return nil
}

// waitReconciled waits, if need be, until what the previous run left has been
// reported or removed. That may bring new work.
func (r *activeRun) waitReconciled(ctx context.Context) (waited bool, err error) {
	select {
	case <-r.reconciled:
		return false, nil
	default:
	}
	select {
	case <-r.reconciled:
	case err = <-r.failed:
	case <-ctx.Done():
	}
	return true, err
}

// syncFiles writes decisions into files and submits a person's files. It
// returns how many files it submitted: as long as there are some, the run is
// not at its end.
func (r *activeRun) syncFiles(ctx context.Context) (int, error) {
	if err := r.write(); err != nil {
		return 0, err
	}
	edited, err := r.files.edits(ctx)
	if err == nil && r.Only == "" {
		var submitted int
		submitted, err = r.files.drafts(ctx, r.watch.views.known)
		edited += submitted
	}
	r.noticeProblems()
	switch {
	case err == nil:
		return edited, nil
	case ctx.Err() != nil:
		return edited, nil //nolint:nilerr // the end of ctx is what the loop looks at
	case errors.Is(err, requests.ErrNoRuling):
		r.Log.WarnContext(ctx, "the runner is slow; reading your files again", "error", err)
		return edited + 1, nil
	}
	return edited, fmt.Errorf("reading your files: %w", err)
}

// noticeProblems reports the problems of a person's files, each once until it
// is solved.
func (r *activeRun) noticeProblems() {
	now := map[forgedir.Problem]bool{}
	for _, p := range r.files.found.all() {
		now[p] = true
		if !r.noticed[p] {
			r.Observer.Notice(p.Error())
		}
	}
	r.noticed = now
}

// write updates the files. A file that a person edited meanwhile is left alone until
// the edit is decided on.
func (r *activeRun) write() error {
	seqs, records := r.watch.views.seqs()
	for id, seq := range seqs {
		if r.files.files.Projected(id) == seq {
			continue
		}
		v, ok := r.watch.views.view(r.files.key(id))
		if !ok {
			continue
		}
		if err := r.files.write(&v); err != nil {
			return err
		}
	}
	if records == r.written && r.files.files.StateWritten() {
		return r.files.writeProblems()
	}
	r.written = records
	if err := r.files.files.RememberProject(r.watch.views.projectSeq(r.Repo.Project)); err != nil {
		return err
	}
	all, _ := r.watch.views.summaries()
	return r.files.writeState(append(all, r.watch.views.projects()...))
}

// finish waits, for five seconds at most, until everything that the workers
// reported is decided, and writes it into the files.
func (r *activeRun) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	r.session.waitIdle(ctx)
	for ctx.Err() == nil {
		if shown, err := r.watch.viewsCurrent(ctx); shown || err != nil {
			break
		}
		r.watch.pause(ctx, time.Millisecond, writePause)
	}
	err := r.write()
	r.noticeProblems()
	return err
}

// outcome returns the state of all intents, and the problems of files and
// journals.
func (r *activeRun) outcome(interrupted bool) *Outcome {
	all, _ := r.watch.views.summaries()
	problems := r.files.found.all()
	for _, key := range r.watch.views.damaged() {
		problems = append(problems, damage(key))
	}
	return &Outcome{Intents: all, Problems: problems, Interrupted: interrupted}
}
