package gitea

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

type (
	reviewJSON struct {
		ID   int64    `json:"id"`
		User userJSON `json:"user"`
		// State is APPROVED, REQUEST_CHANGES or COMMENT; PENDING is not sent
		// yet, and REQUEST_REVIEW says who was asked for one.
		State     string `json:"state"`
		Body      string `json:"body"`
		Commit    string `json:"commit_id"`
		Official  bool   `json:"official"`
		Dismissed bool   `json:"dismissed"`
		Stale     bool   `json:"stale"`
		// Comments counts the remarks about lines.
		Comments  int       `json:"comments_count"`
		Submitted time.Time `json:"submitted_at"`
	}
	remarkJSON struct {
		ID   int64  `json:"id"`
		Body string `json:"body"`
		Path string `json:"path"`
		// Line is of the new text, Old of the old one; one of them is 0.
		Line int64 `json:"position"`
		Old  int64 `json:"original_position"`
		// Resolver is the account that resolved it; null if it is open.
		Resolver *userJSON `json:"resolver"`
	}
	// statusJSON has its state in a field of the name status, other than in requests.
	statusJSON struct {
		State   string   `json:"status"`
		Context string   `json:"context"`
		Text    string   `json:"description"`
		URL     string   `json:"target_url"`
		Creator userJSON `json:"creator"`
	}
	// ruleJSON is the protection of the branches that its name or pattern matches.
	ruleJSON struct {
		StatusCheck  bool     `json:"enable_status_check"`
		Contexts     []string `json:"status_check_contexts"`
		Approvals    int64    `json:"required_approvals"`
		Rejections   bool     `json:"block_on_rejected_reviews"`
		Outdated     bool     `json:"block_on_outdated_branch"`
		DismissStale bool     `json:"dismiss_stale_approvals"`
		IgnoreStale  bool     `json:"ignore_stale_approvals"`
		AdminsToo    bool     `json:"block_admin_merge_override"`
	}
)

// Reviews returns the reviews of a pull request. Those that are not sent yet, and requests for
// one, are none.
func (c *Client) Reviews(ctx context.Context, repository string, number int64) ([]forges.Review, error) {
	path, err := rest.Path(repository, "pulls", number, "reviews")
	if err != nil {
		return nil, err
	}
	var out []forges.Review
	remarks := map[int64]bool{}
	err = rest.Shrink(page, func(size int) error {
		out = nil
		return rest.Pages(size, func(n int) (int, error) {
			var list []reviewJSON
			err := c.Call(ctx, http.MethodGet, fmt.Sprintf("%s?limit=%d&page=%d", path, size, n), nil, &list)
			for i := range list {
				if r, ok := c.review(&list[i]); ok {
					remarks[r.ID] = list[i].Comments > 0
					out = append(out, r)
				}
			}
			return len(list), err
		})
	})
	for i := range out {
		if r := &out[i]; err == nil && remarks[r.ID] {
			r.Threads, err = c.threads(ctx, path, r.ID)
		}
	}
	slices.SortFunc(out, func(a, b forges.Review) int { return cmp.Compare(a.ID, b.ID) })
	return out, err
}

// review returns a review; false if it is none.
func (c *Client) review(j *reviewJSON) (forges.Review, bool) {
	r := forges.Review{
		ID: j.ID, Author: c.account(j.User), Official: j.Official, Dismissed: j.Dismissed, Stale: j.Stale, Body: j.Body, At: j.Submitted,
	}
	switch j.State {
	case "APPROVED":
		r.Verdict = forges.Approved
	case "REQUEST_CHANGES":
		r.Verdict = forges.ChangesRequested
	case "COMMENT":
		r.Verdict = forges.Remark
	default:
		return r, false
	}
	// A review whose commit cannot be read is about no commit that we know.
	if commit, err := git.ParseOID(j.Commit); err == nil {
		r.Commit = commit
	}
	return r, true
}

// threads returns the remarks of a review about lines. Gitea has no pages here.
func (c *Client) threads(ctx context.Context, reviews string, id int64) ([]forges.Thread, error) {
	var list []remarkJSON
	if err := c.Call(ctx, http.MethodGet, fmt.Sprintf("%s/%d/comments", reviews, id), nil, &list); err != nil {
		return nil, err
	}
	var out []forges.Thread
	for _, j := range list {
		out = append(out, forges.Thread{ID: j.ID, Path: j.Path, Line: cmp.Or(j.Line, j.Old), Body: j.Body, Resolved: j.Resolver != nil})
	}
	slices.SortFunc(out, func(a, b forges.Thread) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// Answer is an error: Gitea's API has no way to answer in a discussion, and its threads have
// no topic. A remark about the same line would begin another one where the line has moved.
func (*Client) Answer(context.Context, string, int64, string, string) error {
	return fmt.Errorf("an answer in a discussion: Gitea: %w", errors.ErrUnsupported)
}

// Statuses returns the last status of each name, by name.
func (c *Client) Statuses(ctx context.Context, repository string, commit git.OID) ([]forges.Status, error) {
	path, err := rest.Path(repository, "commits", commit, "status")
	if err != nil {
		return nil, err
	}
	var out []forges.Status
	err = rest.Pages(page, func(n int) (int, error) {
		var got struct {
			Statuses []statusJSON `json:"statuses"`
		}
		err := c.Call(ctx, http.MethodGet, fmt.Sprintf("%s?limit=%d&page=%d", path, page, n), nil, &got)
		for i := range got.Statuses {
			j := &got.Statuses[i]
			out = append(out, forges.Status{Name: j.Context, Outcome: outcome(j.State), Text: j.Text, URL: j.URL, Author: c.account(j.Creator)})
		}
		return len(got.Statuses), err
	})
	slices.SortFunc(out, func(a, b forges.Status) int { return cmp.Compare(a.Name, b.Name) })
	return out, err
}

// outcome returns the meaning of a state of Gitea. A check that was skipped and one that only
// warns have passed, for the forge as well; a state that we do not know has not.
func outcome(state string) forges.Outcome {
	switch state {
	case "success", "warning", "skipped":
		return forges.Passed
	case "pending":
		return forges.Pending
	default:
		return forges.Failed
	}
}

// maxStatus bounds the line of a status, in characters.
const maxStatus = 200

// SetStatus writes a status.
func (c *Client) SetStatus(ctx context.Context, repository string, commit git.OID, s *forges.Status) error {
	if _, err := git.ParseOID(string(commit)); err != nil {
		return err
	}
	path, err := rest.Path(repository, "statuses", commit)
	if err != nil {
		return err
	}
	state := map[forges.Outcome]string{forges.Passed: "success", forges.Pending: "pending", forges.Failed: "failure"}[s.Outcome]
	if state == "" {
		return fmt.Errorf("status %.100q: its outcome is %.50q", s.Name, s.Outcome)
	}
	text := []rune(s.Text)
	return c.Call(ctx, http.MethodPost, path, map[string]string{
		"context": s.Name, "state": state, "description": string(text[:min(len(text), maxStatus)]), "target_url": s.URL,
	}, nil)
}

// Protection returns the rule that counts for a branch. Only administrators may read it.
func (c *Client) Protection(ctx context.Context, repository string, branch git.Branch) (forges.Protection, error) {
	if _, err := git.ParseBranch(string(branch)); err != nil {
		return forges.Protection{}, err
	}
	path, err := rest.Path(repository)
	if err != nil {
		return forges.Protection{}, err
	}
	var b struct {
		Protected bool   `json:"protected"`
		Rule      string `json:"effective_branch_protection_name"`
	}
	if err := c.Call(ctx, http.MethodGet, path+"/branches/"+url.PathEscape(string(branch)), nil, &b); err != nil || !b.Protected {
		return forges.Protection{}, err
	}
	var r ruleJSON
	if err := c.Call(ctx, http.MethodGet, path+"/branch_protections/"+url.PathEscape(b.Rule), nil, &r); err != nil {
		return forges.Protection{}, err
	}
	p := forges.Protection{
		Protected: true, Approvals: r.Approvals, Rejections: r.Rejections, UpToDate: r.Outdated,
		DismissStale: r.DismissStale || r.IgnoreStale, AdminsToo: r.AdminsToo,
	}
	if r.StatusCheck {
		p.Statuses = r.Contexts
	}
	return p, nil
}
