package implementer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/service"
)

const (
	// cleaningLock lets one request to clean run at a time.
	cleaningLock = "cleaning"
	// reportTimeout bounds how long reporting a merge to a runner may take.
	reportTimeout = 10 * time.Second
)

// serveCleaning answers people's requests to clean, until stop is called or ctx ends.
// In one process with the command line it does nothing: that cleans the repository itself.
func (i *Implementer) serveCleaning(ctx context.Context, w *service.Worker) (stop func()) {
	if !w.Shared {
		return func() {}
	}
	ctx, stop = context.WithCancel(ctx)
	i.tidy.Go(func() {
		err := i.bus.Leftovers.Serve(ctx, func(ctx context.Context, project forge.ProjectID, person string, req requests.CleanRequest) (requests.Cleaned, error) {
			i.log.InfoContext(ctx, "clean", "project", project, "person", person, "dry_run", req.DryRun)
			answer, err := i.clean(ctx, project, req)
			return hideSecrets(w.Secrets, answer, err)
		})
		if err != nil && ctx.Err() == nil {
			i.log.ErrorContext(ctx, "this service cannot clean", "error", err)
		}
	})
	return stop
}

// hideSecrets redacts the messages of git in an answer and its error.
func hideSecrets(secrets *redact.Redactor, answer requests.Cleaned, err error) (requests.Cleaned, error) {
	if secrets == nil {
		return answer, err
	}
	for n := range answer.Kept {
		answer.Kept[n].Reason = secrets.Text(answer.Kept[n].Reason)
	}
	if _, field := errors.AsType[*forge.FieldError](err); err != nil && !field {
		err = errors.New(secrets.Text(err.Error()))
	}
	return answer, err
}

// cleaning is one request to clean.
type cleaning struct {
	*Implementer
	repo *jobs.Repository
	// refs are the hidden refs at the origin.
	refs store.Hidden
	// objects are stored sessions and transcripts.
	objects map[forge.IntentID][]objects.Info
	// busy has the intents that are being worked on, with a step of that work.
	busy map[forge.IntentID]forge.Step
	// chosen are the intents that are cleaned.
	chosen []*forge.Summary
	answer requests.Cleaned
}

// clean removes the leftovers of ended intents: hidden refs at the origin, and
// sessions and transcripts in the object store; then it tells all replicas to drop
// their local state. Each part is found by listing it, so a request that is cut off
// is completed by the next one.
func (i *Implementer) clean(ctx context.Context, project forge.ProjectID, req requests.CleanRequest) (requests.Cleaned, error) {
	r, err := i.repos.Open(ctx, project)
	if f, ok := errors.AsType[*agent.Failure](err); ok {
		return requests.Cleaned{}, &forge.FieldError{Reason: f.Message}
	}
	if err != nil {
		return requests.Cleaned{}, err
	}
	unlock, err := r.Lock(ctx, cleaningLock)
	if err != nil {
		return requests.Cleaned{}, err
	}
	defer unlock()
	c := &cleaning{Implementer: i, repo: r, answer: requests.Cleaned{Intents: []requests.CleanedIntent{}}}
	if err := c.look(ctx); err != nil {
		return c.answer, err
	}
	if err := c.choose(ctx, &req); err != nil {
		return c.answer, err
	}
	if !req.DryRun {
		c.remove(ctx)
	}
	return c.answer, nil
}

// look lists the refs at the origin and the stored objects.
func (c *cleaning) look(ctx context.Context) (err error) {
	if c.refs, err = c.repo.Store.HiddenRefs(ctx); err != nil {
		return fmt.Errorf("list what the origin keeps: %w", err)
	}
	all, err := c.bus.Objects.List(ctx, objects.Name{Project: c.repo.Project})
	if err != nil {
		return err
	}
	c.objects = map[forge.IntentID][]objects.Info{}
	for _, o := range all {
		c.objects[o.Intent] = append(c.objects[o.Intent], o)
	}
	return nil
}

// atWork finds the intents that are being worked on, whatever the journal says of
// them: an agent that is not wanted any more takes a moment to end, and so does a
// merge.
func (c *cleaning) atWork(ctx context.Context) (err error) {
	if c.busy, err = c.bus.Leases.AtWork(ctx, c.repo.Project); err != nil {
		return err
	}
	project, err := c.bus.Journal.Summary(ctx, forge.Key{Project: c.repo.Project})
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		return err
	}
	for _, a := range project.Open {
		c.busy[a.Task.Intent()] = a.Step
	}
	return nil
}

// choose selects the intents to clean, and records why others are kept. Work is
// looked up after the summaries: on an intent that was over by then, nothing begins
// any more.
func (c *cleaning) choose(ctx context.Context, req *requests.CleanRequest) error {
	all, err := c.bus.Journal.Summaries(ctx, c.repo.Project)
	if err != nil {
		return err
	}
	if err := c.atWork(ctx); err != nil { // of what is over by now, nothing begins any more
		return err
	}
	known := map[forge.IntentID]*forge.Summary{}
	for n := range all {
		known[all[n].Key.Intent] = &all[n]
	}
	ids := c.candidates(all, req)
	if len(ids) > requests.MaxClean {
		c.answer.Next = ids[requests.MaxClean-1]
	}
	for _, id := range ids[:min(len(ids), requests.MaxClean)] {
		s := known[id]
		if s == nil {
			c.keep(id, "is no intent of this project")
			continue
		}
		if why := c.needed(s); why != "" {
			c.keep(id, why)
			continue
		}
		if c.left(id) {
			c.chosen = append(c.chosen, s)
			c.answer.Intents = append(c.answer.Intents, c.found(s))
		}
	}
	return nil
}

// found returns how much an intent left.
func (c *cleaning) found(s *forge.Summary) requests.CleanedIntent {
	id := s.Key.Intent
	found := requests.CleanedIntent{
		ID: id, Status: s.Status, EndedAt: s.UpdatedAt, Refs: len(c.refs[git.Name(id)]),
	}
	for _, o := range c.objects[id] {
		found.Bytes += o.Size
		if o.Kind == objects.Session {
			found.Sessions++
		}
		if o.Kind == objects.Transcript { // changes count by their bytes alone
			found.Transcripts++
		}
	}
	return found
}

// candidates returns the intents that a request names, or all that are over and
// left something; sorted, one more than an answer holds.
func (c *cleaning) candidates(all []forge.Summary, req *requests.CleanRequest) []forge.IntentID {
	if len(req.Intents) > 0 {
		ids := slices.Clone(req.Intents)
		slices.Sort(ids)
		return slices.Compact(ids)
	}
	var ids []forge.IntentID
	for n := range all {
		s := &all[n]
		id := s.Key.Intent
		if jobs.Needed(s) == "" && strings.Compare(string(id), string(req.After)) > 0 && (req.Before.IsZero() || !s.UpdatedAt.After(req.Before)) && c.left(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids[:min(len(ids), requests.MaxClean+1)]
}

// left reports whether an intent left anything.
func (c *cleaning) left(id forge.IntentID) bool {
	return len(c.refs[git.Name(id)]) > 0 || len(c.objects[id]) > 0
}

// needed returns why the leftovers of an intent may still be needed or written to;
// empty if they are not.
func (c *cleaning) needed(s *forge.Summary) string {
	why := jobs.Needed(s)
	if step, busy := c.busy[s.Key.Intent]; why == "" && busy {
		why = fmt.Sprintf("is %s, but its %s is just ending: try again in half a minute", s.Status, step)
	}
	return why
}

// keep records that an intent is not cleaned.
func (c *cleaning) keep(id forge.IntentID, why string) {
	c.answer.Kept = append(c.answer.Kept, requests.KeptIntent{ID: id, Reason: why})
}

// remove removes the leftovers of the chosen intents, and tells all replicas. An
// intent for which a part fails is kept.
func (c *cleaning) remove(ctx context.Context) {
	c.without(c.reportMerges(ctx), "cannot report to a runner what may have been merged")
	c.without(c.sweep(ctx), "commits of it stay at the origin")
	c.crash("swept")
	c.without(c.forget(ctx), "sessions or transcripts of it stay")
	var gone []forge.IntentID
	for _, s := range c.chosen {
		gone = append(gone, s.Key.Intent)
	}
	for n := range c.answer.Intents {
		one := &c.answer.Intents[n]
		one.Removed = slices.Contains(gone, one.ID)
	}
	err := errors.Join(c.bus.Live.PublishCleaned(c.repo.Project, gone), c.repo.Drop(ctx, gone...))
	if err != nil && ctx.Err() == nil {
		c.log.WarnContext(ctx, "cannot let go of what cleaned intents left; the next start does", "project", c.repo.Project, "error", err)
	}
}

// without drops the intents with errors from those that are chosen, and records the
// errors.
func (c *cleaning) without(wrong map[forge.IntentID]error, what string) {
	c.chosen = slices.DeleteFunc(c.chosen, func(s *forge.Summary) bool {
		err := wrong[s.Key.Intent]
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.New("it took too long: clean again")
		}
		if err != nil {
			c.keep(s.Key.Intent, fmt.Sprintf("is kept: %s: %v", what, err))
		}
		return err != nil
	})
}

// reportMerges reports merges that may not have been reported, because the refs that
// prove them are about to be removed.
func (c *cleaning) reportMerges(ctx context.Context) map[forge.IntentID]error {
	wrong := map[forge.IntentID]error{}
	for _, s := range c.chosen {
		id := s.Key.Intent
		if slices.ContainsFunc(c.refs[git.Name(id)], func(ref string) bool { return strings.Contains(ref, "/merge/") }) {
			wrong[id] = c.reportMerge(ctx, s)
		}
	}
	return wrong
}

// reportMerge reports the pending merges of one intent. Merges of tasks that are done
// are known already.
func (c *cleaning) reportMerge(ctx context.Context, s *forge.Summary) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	unlock, err := c.repo.Lock(ctx, mergeLock)
	if err != nil {
		return err
	}
	defer unlock()
	all, err := c.repo.Store.PendingMerges(ctx, git.Name(s.Key.Intent))
	if err != nil {
		return err
	}
	return c.report(ctx, c.repo, slices.DeleteFunc(all, func(l store.PendingMerge) bool { return mergeKnown(s, l) }))
}

// sweep deletes the refs of all chosen intents in one push. If that fails, the
// intents with refs left have the error.
func (c *cleaning) sweep(ctx context.Context) map[forge.IntentID]error {
	var names []git.Name
	for _, s := range c.chosen {
		names = append(names, git.Name(s.Key.Intent))
	}
	err := c.repo.Store.Sweep(ctx, names...)
	if err == nil {
		return nil
	}
	left, unknown := c.repo.Store.HiddenRefs(ctx)
	wrong := map[forge.IntentID]error{}
	for _, name := range names {
		if unknown != nil || len(left[name]) > 0 {
			wrong[forge.IntentID(name)] = err
		}
	}
	return wrong
}

// forget removes stored sessions and transcripts.
func (c *cleaning) forget(ctx context.Context) map[forge.IntentID]error {
	wrong := map[forge.IntentID]error{}
	for _, s := range c.chosen {
		for _, o := range c.objects[s.Key.Intent] {
			if err := c.bus.Objects.Delete(ctx, o.Name); err != nil {
				wrong[s.Key.Intent] = err
			}
		}
	}
	return wrong
}
