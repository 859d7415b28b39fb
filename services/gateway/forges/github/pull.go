package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

var _ forges.Pulls = (*Client)(nil)

type (
	pullJSON struct {
		// Node is its name for GraphQL.
		Node   string      `json:"node_id"`
		Number int64       `json:"number"`
		Title  string      `json:"title"`
		Body   string      `json:"body"`
		User   *userJSON   `json:"user"`
		Labels []labelJSON `json:"labels"`
		State  string      `json:"state"`
		Draft  bool        `json:"draft"`
		// Merged is the only sign of it: the state is closed in both cases.
		Merged bool `json:"merged"`
		// Commit is the merge's; before that, that of a merge on trial.
		Commit   string    `json:"merge_commit_sha"`
		MergedBy *userJSON `json:"merged_by"`
		Head     endJSON   `json:"head"`
		Base     endJSON   `json:"base"`
		URL      string    `json:"html_url"`
		Updated  time.Time `json:"updated_at"`
	}
	endJSON struct {
		// Ref is the branch's name, without a prefix.
		Ref string `json:"ref"`
		// SHA is its commit; that of a base may be an old one.
		SHA string `json:"sha"`
		// Repo is null where the repository is gone.
		Repo *repoJSON `json:"repo"`
	}
)

// maxTitle is how long a title may be, in characters.
const maxTitle = 256

// title returns a title of one line.
func title(t *forges.PullText) string {
	s := strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError {
			return ' '
		}
		return r
	}, t.Title))
	if runes := []rune(s); len(runes) > maxTitle {
		s = string(runes[:maxTitle-1]) + "…"
	}
	return s
}

// branchesAre returns an error if one of the names is no branch's: the head is owner:branch
// in GitHub's words, and could be that of a fork.
func branchesAre(names ...git.Branch) error {
	for _, b := range names {
		if _, err := git.ParseBranch(string(b)); err != nil {
			return err
		}
	}
	return nil
}

// FindPull returns the pull request of a branch into another.
func (c *Client) FindPull(ctx context.Context, repository string, head, base git.Branch) (forges.Pull, error) {
	if err := branchesAre(head, base); err != nil {
		return forges.Pull{}, err
	}
	path, err := rest.Path(repository, "pulls")
	if err != nil {
		return forges.Pull{}, err
	}
	repo, err := c.Repository(ctx, repository) // after a rename the owner of the head has another name
	if err != nil {
		return forges.Pull{}, err
	}
	owner, _, _ := strings.Cut(repo.Name, "/")
	query := url.Values{
		"state": {"all"}, "head": {owner + ":" + string(head)}, "base": {string(base)}, "sort": {"created"}, "direction": {"desc"},
	}
	var found *pullJSON
	err = rest.Shrink(page, func(size int) error {
		found = nil
		query.Set("per_page", strconv.Itoa(size))
		return rest.List(ctx, c.Client, path+"?"+query.Encode(), size, func(list []pullJSON) (int, bool) {
			for i := range list { // the newest first
				p := &list[i]
				if p.Head.Ref != string(head) || p.Base.Ref != string(base) || !p.own() {
					continue
				}
				if found == nil || p.State == "open" && found.State != "open" {
					found = p
				}
			}
			return len(list), found != nil && found.State == "open"
		})
	})
	if err != nil {
		return forges.Pull{}, err
	}
	if found == nil {
		return forges.Pull{}, fmt.Errorf("%s: %w", path, forges.ErrNotFound)
	}
	return c.Pull(ctx, repository, found.Number) // a list does not say who merged
}

// own reports whether the head is in the repository of the base.
func (j *pullJSON) own() bool {
	return j.Head.Repo != nil && j.Base.Repo != nil && j.Head.Repo.ID == j.Base.Repo.ID
}

// Pull returns a pull request as it is now.
func (c *Client) Pull(ctx context.Context, repository string, number int64) (forges.Pull, error) {
	j, err := c.rawPull(ctx, repository, number)
	if err != nil {
		return forges.Pull{}, err
	}
	p := forges.Pull{
		PullText: forges.PullText{Title: j.Title, Body: j.Body, Draft: j.Draft}, Number: j.Number,
		Repository: forges.Repository{ID: j.Base.Repo.ID, Name: j.Base.Repo.FullName}, Author: c.account(j.User), State: forges.Open, URL: j.URL,
	}
	for _, l := range j.Labels {
		p.Labels = append(p.Labels, l.Name)
	}
	wrong := func(what string, err error) (forges.Pull, error) {
		return forges.Pull{}, fmt.Errorf("pull request %d: its %s: %w", j.Number, what, err)
	}
	if p.Base, err = git.ParseBranch(j.Base.Ref); err != nil {
		return wrong("base", err)
	}
	if p.Head, err = git.ParseOID(j.Head.SHA); err != nil {
		return wrong("head", err)
	}
	// One of a fork has its own name there, and is none of ours.
	if j.own() {
		if p.Branch, err = git.ParseBranch(j.Head.Ref); err != nil {
			p.Branch = ""
		}
	}
	// The base's commit is that of the time when the pull request was pushed to last: only the
	// branch itself says where it is.
	if p.BaseHead, err = c.BranchHead(ctx, repository, p.Base); errors.Is(err, forges.ErrNotFound) {
		p.BaseHead, err = git.ParseOID(j.Base.SHA)
	}
	if err != nil {
		return wrong("base", err)
	}
	switch {
	case j.Merged:
		p.State, p.MergedBy = forges.Merged, c.account(j.MergedBy)
		if p.Merge, err = git.ParseOID(j.Commit); err != nil {
			return wrong("merge commit", err)
		}
	case j.State != "open":
		p.State = forges.Closed
		p.ClosedBy, err = c.closedBy(ctx, repository, number)
	}
	return p, err
}

// rawPull reads a pull request, of a repository that is the one that had its name before.
func (c *Client) rawPull(ctx context.Context, repository string, number int64) (*pullJSON, error) {
	path, err := rest.Path(repository, "pulls", number)
	if err != nil {
		return nil, err
	}
	var j pullJSON
	if err := c.Call(ctx, http.MethodGet, path, nil, &j); err != nil {
		return nil, err
	}
	if j.Base.Repo == nil {
		return nil, fmt.Errorf("%s: the answer has no repository", path)
	}
	return &j, c.known(repository, j.Base.Repo.ID)
}

// closedBy returns who closed a pull request last, as its events tell.
func (c *Client) closedBy(ctx context.Context, repository string, number int64) (by intake.Account, err error) {
	path, err := rest.Path(repository, "issues", number)
	if err != nil {
		return by, err
	}
	err = c.events(ctx, path, func(e *eventJSON) {
		if e.Event == "closed" {
			by = c.account(e.Actor)
		}
	})
	return by, err
}

// OpenPull opens a pull request. GitHub refuses a second one of the same branches while one
// is open.
func (c *Client) OpenPull(ctx context.Context, repository string, head, base git.Branch, t forges.PullText) (forges.Pull, error) {
	if err := branchesAre(head, base); err != nil {
		return forges.Pull{}, err
	}
	path, err := rest.Path(repository, "pulls")
	if err != nil {
		return forges.Pull{}, err
	}
	var j pullJSON
	err = c.Call(ctx, http.MethodPost, path, map[string]any{
		"head": string(head), "base": string(base), "title": title(&t), "body": t.Body, "draft": t.Draft,
		"maintainer_can_modify": false,
	}, &j)
	// 422 is for everything that is wrong with it. Whether it is that there is one, the list
	// says.
	if refused, ok := errors.AsType[*forges.RefusedError](err); ok && refused.Code == http.StatusUnprocessableEntity {
		found, findErr := c.FindPull(ctx, repository, head, base)
		if findErr == nil && found.State == forges.Open {
			return found, nil
		}
		if errors.Is(findErr, forges.ErrNotFound) {
			findErr = nil
		}
		return forges.Pull{}, errors.Join(err, findErr)
	}
	if err != nil {
		return forges.Pull{}, err
	}
	if err := c.addLabels(ctx, repository, j.Number, t.Labels); err != nil {
		return forges.Pull{}, err
	}
	return c.Pull(ctx, repository, j.Number)
}

// EditPull adds labels, and replaces the title and the text, and whether it is a draft. The
// last one who writes wins, as on the page.
func (c *Client) EditPull(ctx context.Context, repository string, number int64, t forges.PullText) error {
	path, err := rest.Path(repository, "pulls", number)
	if err != nil {
		return err
	}
	missing := c.addLabels(ctx, repository, number, t.Labels)
	if missing != nil && !errors.Is(missing, forges.ErrLabel) {
		return missing
	}
	var j pullJSON
	if err := c.Call(ctx, http.MethodPatch, path, map[string]string{"title": title(&t), "body": t.Body}, &j); err != nil {
		return err
	}
	if j.Draft != t.Draft {
		if err := c.setDraft(ctx, j.Node, t.Draft); err != nil {
			return err
		}
	}
	return missing
}

// ReopenPull opens a pull request again. The same state again changes nothing.
func (c *Client) ReopenPull(ctx context.Context, repository string, number int64) error {
	path, err := rest.Path(repository, "pulls", number)
	if err != nil {
		return err
	}
	return c.Call(ctx, http.MethodPatch, path, map[string]string{"state": "open"}, nil)
}

// ClosePull closes a pull request, which is an issue to GitHub.
func (c *Client) ClosePull(ctx context.Context, repository string, number int64) error {
	return c.CloseIssue(ctx, repository, number)
}

// addLabels puts labels on. GitHub would make those that are not there, and so they are
// asked for first: those are left out, and the error names one.
func (c *Client) addLabels(ctx context.Context, repository string, number int64, labels []string) error {
	if len(labels) == 0 {
		return nil
	}
	path, err := rest.Path(repository, "issues", number, "labels")
	if err != nil {
		return err
	}
	var there []string
	var missing error
	for _, name := range labels {
		label, err := rest.Path(repository, "labels", name)
		if err == nil {
			err = c.Call(ctx, http.MethodGet, label, nil, nil)
		}
		if errors.Is(err, forges.ErrNotFound) {
			missing = fmt.Errorf("%w %.100q", forges.ErrLabel, name)
			continue
		}
		if err != nil {
			return err
		}
		there = append(there, name)
	}
	if len(there) > 0 {
		if err := c.Call(ctx, http.MethodPost, path, map[string][]string{"labels": there}, nil); err != nil {
			return err
		}
	}
	return missing
}

// methods are GitHub's names of the ways to merge. None of them brings the very commit to
// the base: "rebase" makes it anew although nothing moved.
var methods = map[forges.Method]string{forges.MergeCommit: "merge", forges.Squash: "squash", forges.Rebase: "rebase"}

// Merges reports whether GitHub has a method.
func (c *Client) Merges(_ context.Context, _ string, m forges.Method) error {
	switch {
	case m == forges.FastForward:
		return fmt.Errorf("%w %s: GitHub always makes new commits; choose merge, squash or rebase", forges.ErrMethod, m)
	case methods[m] == "":
		return fmt.Errorf("%w %.50q: choose merge, squash or rebase", forges.ErrMethod, m)
	}
	return nil
}

// Merge merges a pull request whose head is that commit. GitHub's rules for the base hold
// for it as for everybody.
func (c *Client) Merge(ctx context.Context, repository string, number int64, head git.OID, m forges.Method) error {
	path, err := rest.Path(repository, "pulls", number, "merge")
	if err != nil {
		return err
	}
	if err := c.Merges(ctx, repository, m); err != nil {
		return err
	}
	// Without a head GitHub would merge any.
	if _, err := git.ParseOID(string(head)); err != nil {
		return fmt.Errorf("head: %w", err)
	}
	if _, err := c.Repository(ctx, repository); err != nil {
		return err
	}
	return c.Call(ctx, http.MethodPut, path, map[string]string{"merge_method": methods[m], "sha": string(head)}, nil)
}

// ChangedPulls returns our pull requests that are open or ended since a time, the oldest
// change first.
func (c *Client) ChangedPulls(ctx context.Context, repository, login string, since time.Time) ([]forges.Change, error) {
	path, err := rest.Path(repository, "pulls")
	if err != nil {
		return nil, err
	}
	var out []forges.Change
	for _, state := range []string{"open", "closed"} {
		query := url.Values{"state": {state}, "sort": {"updated"}, "direction": {"desc"}}
		take := func(list []pullJSON) (int, bool) {
			for _, p := range list {
				if state == "closed" && p.Updated.Before(since) {
					return len(list), true
				}
				if p.User != nil && strings.EqualFold(p.User.Login, login) {
					out = append(out, forges.Change{Number: p.Number, At: p.Updated})
				}
			}
			return len(list), false
		}
		err := rest.Shrink(page, func(size int) error { // what comes twice is there once in the end
			query.Set("per_page", strconv.Itoa(size))
			return rest.List(ctx, c.Client, path+"?"+query.Encode(), size, take)
		})
		if err != nil {
			return nil, err
		}
	}
	return rest.Sorted(out), nil
}

// BranchHead returns the commit of a branch. It is asked for as a ref: a branch that was
// renamed is not the one of its new name.
func (c *Client) BranchHead(ctx context.Context, repository string, branch git.Branch) (git.OID, error) {
	if err := branchesAre(branch); err != nil {
		return "", err
	}
	path, err := rest.Path(repository, "git", "ref", "heads")
	if err != nil {
		return "", err
	}
	for part := range strings.SplitSeq(string(branch), "/") {
		path += "/" + url.PathEscape(part)
	}
	var b struct {
		Ref    string `json:"ref"`
		Object struct {
			SHA string `json:"sha"`
		} `json:"object"`
	}
	if err := c.Call(ctx, http.MethodGet, path, nil, &b); err != nil {
		return "", err
	}
	if b.Ref != "refs/heads/"+string(branch) {
		return "", fmt.Errorf("%s: %w", path, forges.ErrNotFound)
	}
	return git.ParseOID(b.Object.SHA)
}

// Behind reports whether a base has commits that a head has not.
func (c *Client) Behind(ctx context.Context, repository string, head, base git.OID) (bool, error) {
	for _, commit := range []git.OID{head, base} {
		if _, err := git.ParseOID(string(commit)); err != nil {
			return false, err
		}
	}
	path, err := rest.Path(repository, "compare", string(head)+"..."+string(base))
	if err != nil {
		return false, err
	}
	var got struct {
		Ahead int `json:"ahead_by"`
	}
	// The first page has all files with their changes, and every page the counts.
	err = c.Call(ctx, http.MethodGet, path+"?per_page=1&page=2", nil, &got)
	return got.Ahead > 0, err
}

// graphJSON is an answer of GraphQL: errors come with the number 200.
type graphJSON[T any] struct {
	Data   T `json:"data"`
	Errors []struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"errors"`
}

// graphQL asks the other API.
func graphQL[T any](ctx context.Context, c *Client, query string, variables map[string]any) (out T, err error) {
	var got graphJSON[T]
	if err := c.graph.Call(ctx, http.MethodPost, "/graphql", map[string]any{"query": query, "variables": variables}, &got); err != nil {
		return out, err
	}
	for _, e := range got.Errors {
		switch cmp.Or(e.Type, "UNKNOWN") {
		case "RATE_LIMITED":
			return out, &forges.ParkedError{Until: c.cfg.Now().Add(time.Minute), Reason: "the limits of the forge are used up"}
		case "FORBIDDEN", "INSUFFICIENT_SCOPES":
			return out, forges.ErrDenied
		case "NOT_FOUND":
			return out, forges.ErrNotFound
		default:
			return out, &forges.RefusedError{Code: http.StatusUnprocessableEntity, Reason: rest.Reason(e.Message)}
		}
	}
	return got.Data, nil
}

// setDraft makes a draft of a pull request, or makes it ready.
func (c *Client) setDraft(ctx context.Context, node string, draft bool) error {
	mutation := "markPullRequestReadyForReview"
	if draft {
		mutation = "convertPullRequestToDraft"
	}
	_, err := graphQL[struct{}](ctx, c, `mutation($id: ID!) { `+mutation+`(input: {pullRequestId: $id}) { pullRequest { isDraft } } }`,
		map[string]any{"id": node})
	return err
}
