package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

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
func title(t *forges.PullText) string { return rest.Title(t.Title, maxTitle) }

// FindPull returns the pull request of a branch into another.
func (c *Client) FindPull(ctx context.Context, repository string, head, base git.Branch) (forges.Pull, error) {
	if err := rest.Branches(head, base); err != nil {
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
	if err := rest.Branches(branch); err != nil {
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
