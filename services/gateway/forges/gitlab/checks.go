package gitlab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

// statusJSON is a status that was written, or a job of a pipeline.
type statusJSON struct {
	// ID grows with each; a job that is tried again has another one.
	ID     int64     `json:"id"`
	Name   string    `json:"name"`
	Ref    string    `json:"ref"`
	State  string    `json:"status"`
	Text   string    `json:"description"`
	URL    string    `json:"target_url"`
	Author *userJSON `json:"author"`
	// Allowed says that GitLab does not mind if it fails.
	Allowed bool `json:"allow_failure"`
}

// outcome returns the meaning of a state. A job that may fail, or that waits for a person and need
// not run, keeps nothing from being merged, for GitLab as well. One that was cancelled has found
// nothing wrong: another change would not help, and another run may. A state that we do not know
// has not passed.
func (j *statusJSON) outcome() forges.Outcome {
	switch j.State {
	case "success", "skipped":
		return forges.Passed
	case "created", "waiting_for_resource", "preparing", "pending", "running", "scheduled", "canceling", "canceled":
		return forges.Pending
	case "manual":
		if !j.Allowed {
			return forges.Pending
		}
	}
	if j.Allowed {
		return forges.Passed
	}
	return forges.Failed
}

// Statuses returns the last status of each name, by name: those that were written, and the jobs of
// pipelines. The pipelines of a branch and of its merge request may have jobs of one name: of each
// the last counts, and of both the worse.
func (c *Client) Statuses(ctx context.Context, repository string, commit git.OID) ([]forges.Status, error) {
	list, err := c.statuses(ctx, repository, commit)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b statusJSON) int { return cmp.Compare(b.ID, a.ID) })
	rank := map[forges.Outcome]int{forges.Failed: 0, forges.Pending: 1, forges.Passed: 2}
	type place struct{ name, ref string }
	seen, by := map[place]bool{}, map[string]forges.Status{}
	for i := range list {
		j := &list[i]
		at := place{j.Name, j.Ref}
		if seen[at] {
			continue
		}
		seen[at] = true
		s := forges.Status{Name: j.Name, Outcome: j.outcome(), Text: j.Text, URL: j.URL, Author: c.account(j.Author)}
		if other, both := by[s.Name]; !both || rank[s.Outcome] < rank[other.Outcome] {
			by[s.Name] = s
		}
	}
	out := make([]forges.Status, 0, len(by))
	for _, s := range by {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b forges.Status) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// statuses lists those of a commit that no later run has replaced. GitLab replaces
// within a pipeline: a second pipeline of the same ref adds its own, which are newer.
func (c *Client) statuses(ctx context.Context, repository string, commit git.OID) (out []statusJSON, err error) {
	if _, err := git.ParseOID(string(commit)); err != nil {
		return nil, err
	}
	path, err := c.path(ctx, repository, "repository", "commits", commit, "statuses")
	if err != nil {
		return nil, err
	}
	err = rest.List(ctx, c.Client, fmt.Sprintf("%s?per_page=%d", path, page), page, func(list []statusJSON) (int, bool) {
		out = append(out, list...)
		return len(list), false
	})
	return out, err
}

// maxStatus bounds the line of a status, in characters.
const maxStatus = 200

// SetStatus writes a status, which GitLab adds to the last pipeline of the commit,
// or makes one for it. It refuses one that waits as the one before it did, by 400
// as for all else that is wrong: whether ours is there then, the list says.
func (c *Client) SetStatus(ctx context.Context, repository string, commit git.OID, s *forges.Status) error {
	if _, err := git.ParseOID(string(commit)); err != nil {
		return err
	}
	path, err := c.path(ctx, repository, "statuses", commit)
	if err != nil {
		return err
	}
	state := map[forges.Outcome]string{forges.Passed: "success", forges.Pending: "pending", forges.Failed: "failed"}[s.Outcome]
	if state == "" {
		return fmt.Errorf("status %.100q: its outcome is %.50q", s.Name, s.Outcome)
	}
	text := []rune(s.Text)
	in := map[string]string{"name": s.Name, "state": state, "description": string(text[:min(len(text), maxStatus)])}
	if s.URL != "" {
		in["target_url"] = s.URL
	}
	err = c.Call(ctx, http.MethodPost, path, in, nil)
	if refused, ok := errors.AsType[*forges.RefusedError](err); !ok || refused.Code != http.StatusBadRequest || s.Outcome != forges.Pending {
		return err
	}
	self, selfErr := c.Self(ctx)
	list, listErr := c.Statuses(ctx, repository, commit)
	there := slices.ContainsFunc(list, func(h forges.Status) bool {
		return h.Name == s.Name && h.Outcome == s.Outcome && h.Author.ID == self.ID && self.ID > 0
	})
	if there {
		return nil
	}
	return errors.Join(err, selfErr, listErr)
}

// ruleJSON says how many approvals are needed; editions without such rules have
// none. Of several rules for a branch each demands its own, by people whom it names:
// that there are as many as the largest demands is the least that can be known.
type ruleJSON struct {
	Count int64 `json:"approvals_required"`
	// All says that it is for each protected branch, and Branches for which ones. Without either it
	// is for each branch.
	All      bool `json:"applies_to_all_protected_branches"`
	Branches []struct {
		Name string `json:"name"`
	} `json:"protected_branches"`
}

// isFor reports whether a rule is about a branch. GitLab's patterns have a star for any text, a
// slash included.
func (j *ruleJSON) isFor(branch string, protected bool) bool {
	switch {
	case j.All:
		return protected
	case len(j.Branches) == 0:
		return true
	}
	flat := func(s string) string { return strings.ReplaceAll(s, "/", "|") } // path.Match's star stops at a slash
	for _, b := range j.Branches {
		if ok, err := path.Match(flat(b.Name), flat(branch)); ok || err != nil {
			return true
		}
	}
	return false
}

// Protection returns the demands of GitLab on all that comes to be on a branch. The settings of the
// project are for all merge requests, whatever their base is. Rules that only administrators are
// told, or that this edition has not, demand nothing that is known: a merge that they forbid is
// refused all the same.
func (c *Client) Protection(ctx context.Context, repository string, branch git.Branch) (forges.Protection, error) {
	b, err := c.branch(ctx, repository, branch)
	if err != nil {
		return forges.Protection{}, err
	}
	p, err := c.project(ctx, repository)
	if err != nil {
		return forges.Protection{}, err
	}
	out := forges.Protection{Protected: b.Protected, UpToDate: p.Method == "ff" || p.Method == "rebase_merge", Resolved: p.Resolved}
	if p.Pipelines {
		out.Statuses = []string{"*"} // all that there are, and one at least
	}
	project, err := c.path(ctx, repository)
	if err != nil {
		return out, err
	}
	var approvals struct {
		Reset bool `json:"reset_approvals_on_push"`
	}
	switch err := c.Call(ctx, http.MethodGet, project+"/approvals", nil, &approvals); {
	case errors.Is(err, forges.ErrNotFound), errors.Is(err, forges.ErrDenied):
		return out, nil
	case err != nil:
		return out, err
	}
	out.DismissStale, out.Rejections = approvals.Reset, true
	err = rest.List(ctx, c.Client, fmt.Sprintf("%s/approval_rules?per_page=%d", project, page), page, func(list []ruleJSON) (int, bool) {
		for i := range list {
			if list[i].isFor(string(branch), b.Protected) {
				out.Approvals = max(out.Approvals, list[i].Count)
			}
		}
		return len(list), false
	})
	if errors.Is(err, forges.ErrNotFound) || errors.Is(err, forges.ErrDenied) {
		err = nil
	}
	return out, err
}
