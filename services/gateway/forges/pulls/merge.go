package pulls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
)

// tries is how often a merge is asked for that the forge has not computed yet.
const tries = 5

// Merge has the forge merge a pull request whose head is the commit of the request, and
// returns how it is then: whatever the forge answers, a look says what became of it.
//
// The request may be hours old, and the forge's own rules may demand less than the project's
// policy. So it is asked for only if nothing is in its way as it is now, and looked at again
// each time that the forge says to ask again. What is in the way is in the answer.
func (k *Keeper) Merge(ctx context.Context, to forge.Key, in *forge.PullInput) (*forge.PullRequest, error) {
	r, err := k.check(ctx, to, in)
	if err != nil {
		return nil, err
	}
	if err := k.Introduce(ctx); err != nil {
		return nil, err
	}
	p, found, err := k.find(ctx, &r, in.Number)
	if err == nil && !found {
		err = &PersonError{fmt.Sprintf("there is no pull request of the branch %s", r.branch)}
	}
	if err != nil {
		return nil, err
	}
	defer k.answered(r.repository, p.Number)
	refused := "the forge has not found out yet whether it can be merged"
	for range tries {
		s, l, err := k.snapshot(ctx, r.repository, p.Number, isByQueue(in))
		if err != nil || !mayMerge(in, s, l) {
			return s, err
		}
		reason, again, err := k.merge(ctx, &r, p.Number, forges.Method(in.Policy.Method))
		if err != nil {
			return nil, fmt.Errorf(ofChange, r.branch, err)
		}
		if !again {
			refused = reason
			break
		}
	}
	s, _, err := k.snapshot(ctx, r.repository, p.Number, isByQueue(in))
	if err == nil && s.State == forge.PullOpen && refused != "" {
		s.Blocked = ""
		k.refuse(r.repository, p.Number, s, k.line(refused))
		s.Blocked = k.line(refused)
	}
	return s, err
}

// mayMerge reports whether nothing is in the way of a merge by a look at a pull
// request. What no other field of the snapshot shows, it says in Blocked.
func mayMerge(in *forge.PullInput, s *forge.PullRequest, l *look) bool {
	switch {
	case s.State != forge.PullOpen:
		return false
	case s.Base != in.Base:
		s.Blocked = "it is to be merged into " + s.Base
	case s.Branch != in.Branch:
		s.Blocked = "it is that of another branch"
	case s.Head != in.Head:
		s.Blocked = "its head is another commit"
	case s.Blocked != "", s.Behind, s.Queue != nil && s.Queue.In:
		return false
	// A base that was taken back has less than what the head was verified on, and is not
	// ahead of it: a merge would bring that back. A merge queue has a tip of its own.
	case in.Parent != "" && l.BaseHead != git.OID(in.Parent) && !isByQueue(in):
		s.Blocked = "its base is at another commit than the one that it was verified on"
	default:
		return !isUnwanted(s) && havePassed(in.Policy.Checks, s.Checks)
	}
	return false
}

// isUnwanted reports whether a person who may asks for changes. The forge
// counts that as well only where its protection says so.
func isUnwanted(s *forge.PullRequest) bool {
	return slices.ContainsFunc(s.Reviews, func(r forge.PullReview) bool { return r.May && r.Verdict == forge.PullChangesRequested })
}

// havePassed reports whether the checks have passed that a policy names. Without names these
// are all that there are, and one at least: a forge shows none until its CI has begun.
func havePassed(names []string, checks []forge.PullCheck) bool {
	passed := map[string]bool{}
	for _, c := range checks {
		passed[c.Name] = c.State == forge.PullCheckPassed
		if !passed[c.Name] && len(names) == 0 {
			return false
		}
	}
	return len(passed) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !passed[name] })
}

// merge asks for the merge once. It returns the reason of a refusal, and whether to ask
// again: then the forge has not computed yet whether it can, and was given a moment for that.
func (k *Keeper) merge(ctx context.Context, r *ask, number int64, m forges.Method) (reason string, again bool, err error) {
	if m == forges.ByQueue {
		err = k.cfg.Forge.Enqueue(ctx, r.repository, number, r.base, r.head)
	} else {
		err = k.cfg.Forge.Merge(ctx, r.repository, number, r.head, m)
	}
	if errors.Is(err, forges.ErrMethod) {
		return "", false, noQueue(err)
	}
	refusal, ok := errors.AsType[*forges.RefusedError](err)
	switch {
	case errors.Is(err, forges.ErrNotFound): // Gitea's word for one that was closed
		return "it is not open any more", false, nil
	case !ok:
		return "", false, err
	case !refusal.Again:
		return refusal.Reason, false, nil
	}
	timer := time.NewTimer(k.cfg.Again)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return "", false, ctx.Err()
	case <-timer.C:
		return "", true, nil
	}
}
