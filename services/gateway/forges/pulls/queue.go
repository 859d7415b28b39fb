package pulls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
)

// queues is about pull requests that the forge merges by its own queue. What is put in is
// the commit that was verified and reviewed. What is merged is for the rules to prove.
//
//	rules: merge_pull        the newest look allows it: it is put in, for that head
//	the forge merges         a look says by which commit, which an implementer proves
//	the forge takes it out   a look says why, with the end of the logs where the forge names the commit that it tried
//	a person takes it out    a look says who: people alone put it in again, or a retry does
//	we take it out           is no removal: the rules asked for another change, or will ask to merge again
//
// Some forges go on by themselves after a push (auto-merge on GitHub and Gitea): so
// it is taken out again as soon as a look finds a head that is not ours, or a person
// who asks for changes, and before another head of ours is brought up to date.
type queues struct{ *Keeper }

// isByQueue reports whether a request is to be merged by the forge's own queue.
func isByQueue(in *forge.PullInput) bool { return forges.Method(in.Policy.Method) == forges.ByQueue }

// isMarkedForQueue reports whether a text says that its pull request is merged
// by the forge's own queue.
func isMarkedForQueue(body string) bool {
	for line := range strings.Lines(lineEnds.Replace(body)) {
		if strings.HasPrefix(line, markBegin) && strings.Contains(line, `"queue":true`) {
			return true
		}
	}
	return false
}

// noQueue returns the error of a forge without a queue: a person turns one on,
// or chooses another method.
func noQueue(err error) error {
	return &PersonError{fmt.Sprintf("merge.method: %s; or choose another method", err)}
}

// ready has a pull request that is brought up to date not be in the queue, for a commit
// before this one. That there is a queue is found out here, before the change waits for it.
func (k queues) ready(ctx context.Context, r *ask, number int64, in *forge.PullInput) error {
	if !isByQueue(in) {
		return nil
	}
	q, err := k.cfg.Forge.Queue(ctx, r.repository, number, r.base)
	switch {
	case errors.Is(err, forges.ErrMethod):
		return noQueue(err)
	case err != nil:
		return part("merge queue", err)
	case !q.In:
		return nil
	}
	return k.cfg.Forge.Dequeue(ctx, r.repository, number)
}

// look puts into a snapshot where a pull request stands in the queue. That it is behind its
// base is told where that is in its way: a queue that tries it on the tip does not mind.
func (k queues) look(ctx context.Context, repository string, l *look, s *forge.PullRequest) error {
	q, err := k.cfg.Forge.Queue(ctx, repository, l.Number, l.Base)
	if errors.Is(err, forges.ErrMethod) { // it was turned off: the next merge says so
		s.Queue = &forge.PullQueue{}
		return nil
	}
	if err != nil {
		return err
	}
	s.Behind = s.Behind && !q.Tests && l.protection.UpToDate
	s.Queue = &forge.PullQueue{In: q.In, Position: q.Position}
	if o := q.Out; o != nil && !q.In && o.By != k.self.Login {
		s.Queue.Out, s.Queue.Reason, s.Queue.Cause = k.line(o.ID), k.line(o.Reason), string(o.Cause)
		if o.By != "" {
			s.Queue.Reason = k.line(o.Reason + ", by " + o.By)
		}
		s.Queue.Output, err = k.output(ctx, repository, o)
	}
	return err
}

// output returns the end of what the checks wrote that failed in the queue;
// empty where the forge does not tell on which commit.
func (k queues) output(ctx context.Context, repository string, o *forges.Removal) (string, error) {
	if o.Cause != forges.CauseChecks || o.Commit == "" {
		return "", nil
	}
	list, err := k.cfg.Forge.Statuses(ctx, repository, o.Commit)
	if err != nil && !isHidden(err) {
		return "", err
	}
	var b strings.Builder
	for _, s := range list {
		if s.Outcome == forges.Failed {
			fmt.Fprintf(&b, "%s failed: %s\n%s\n", k.line(s.Name), s.Text, s.Log)
		}
	}
	return k.words(strings.TrimSpace(b.String()), maxOutput), nil
}

// takeOut takes a pull request out of the queue that may not be merged as it is
// now, and reports whether it did: it is looked at again.
func (k queues) takeOut(ctx context.Context, key pullKey, s *forge.PullRequest, l *look) bool {
	if s.Queue == nil || !s.Queue.In || k.isVouchedFor(l) && !isUnwanted(s) {
		return false
	}
	err := k.cfg.Forge.Dequeue(ctx, key.repository, key.number)
	if err != nil {
		k.failed(ctx, "take out of the merge queue", key.repository, err)
	}
	return err == nil
}

// isVouchedFor reports whether the head of a pull request has the status by
// which we say that it was reviewed.
func (k queues) isVouchedFor(l *look) bool {
	return slices.ContainsFunc(l.statuses, func(s forges.Status) bool {
		return s.Name == ownStatuses+"review" && s.Author.ID == k.self.ID && s.Outcome == forges.Passed
	})
}
