package gitea

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
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
		Number int64       `json:"number"`
		Title  string      `json:"title"`
		Body   string      `json:"body"`
		User   userJSON    `json:"user"`
		Labels []labelJSON `json:"labels"`
		State  string      `json:"state"`
		Draft  bool        `json:"draft"`
		// Merged is the only sign of it: the state is closed in both cases.
		Merged bool `json:"merged"`
		// Commit is the merge's; null before that.
		Commit   string   `json:"merge_commit_sha"`
		MergedBy userJSON `json:"merged_by"`
		Head     endJSON  `json:"head"`
		Base     endJSON  `json:"base"`
		URL      string   `json:"html_url"`
	}
	endJSON struct {
		// Ref is the branch's name, without a prefix; that of a branch that is gone is
		// refs/pull/<number>/head. Label has its name then.
		Ref    string `json:"ref"`
		Label  string `json:"label"`
		SHA    string `json:"sha"`
		RepoID int64  `json:"repo_id"`
		// Repo is null where the repository is gone.
		Repo repoJSON `json:"repo"`
	}
)

// maxTitle is how long a title may be, in characters.
const maxTitle = 255

// drafts are how Gitea tells a draft.
var drafts = rest.Drafts{Begin: "WIP: ", Known: []string{"WIP:", "[WIP]"}}

// title returns the title that says what is wanted.
func title(t *forges.PullText) string { return drafts.Title(t.Title, t.Draft, maxTitle) }

// branches returns the path of a pull request by its two branches. Both are checked, since a
// name with a slash or a dot is a path, too.
func branches(head, base git.Branch) (string, error) {
	if err := rest.Branches(head, base); err != nil {
		return "", err
	}
	return url.PathEscape(string(base)) + "/" + url.PathEscape(string(head)), nil
}

// FindPull returns the pull request of a branch into another.
func (c *Client) FindPull(ctx context.Context, repository string, head, base git.Branch) (forges.Pull, error) {
	ends, err := branches(head, base)
	if err != nil {
		return forges.Pull{}, err
	}
	path, err := rest.Path(repository, "pulls")
	if err != nil {
		return forges.Pull{}, err
	}
	// This one is any of those that ever were: it says cheaply that there is none, and if it is
	// open, there is no other open one.
	var first pullJSON
	if err := c.Call(ctx, http.MethodGet, path+"/"+ends, nil, &first); err != nil {
		return forges.Pull{}, err
	}
	if first.State == "open" {
		return c.pull(ctx, path, &first)
	}
	query := url.Values{"state": {"all"}, "base_branch": {string(base)}}
	var found *pullJSON
	err = rest.Shrink(page, func(size int) error {
		query.Set("limit", fmt.Sprint(size))
		return rest.Pages(size, func(n int) (int, error) {
			query.Set("page", fmt.Sprint(n))
			var list []pullJSON
			if err := c.Call(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &list); err != nil {
				return 0, err
			}
			for i := range list { // the newest first
				if p := &list[i]; cmp.Or(p.Head.Label, p.Head.Ref) == string(head) && p.Head.RepoID == p.Base.RepoID {
					found = p
					return 0, nil
				}
			}
			return len(list), nil
		})
	})
	if err != nil {
		return forges.Pull{}, err
	}
	if found == nil { // it was closed, and removed since
		found = &first
	}
	return c.pull(ctx, path, found)
}

// pull returns a pull request as it was read; of one that is closed it asks by whom.
func (c *Client) pull(ctx context.Context, pulls string, j *pullJSON) (forges.Pull, error) {
	p := forges.Pull{
		PullText: forges.PullText{Title: drafts.Wanted(j.Title, j.Draft), Body: j.Body, Draft: j.Draft}, Number: j.Number,
		Repository: forges.Repository{ID: j.Base.RepoID, Name: j.Base.Repo.FullName}, Author: c.account(j.User), State: forges.Open,
		BaseHead: git.OID(j.Base.SHA), URL: j.URL,
	}
	for _, l := range j.Labels {
		p.Labels = append(p.Labels, l.Name)
	}
	wrong := func(what string, err error) (forges.Pull, error) {
		return forges.Pull{}, fmt.Errorf("pull request %d: its %s: %w", j.Number, what, err)
	}
	var err error
	if p.Base, err = git.ParseBranch(j.Base.Ref); err != nil {
		return wrong("base", err)
	}
	if p.Head, err = git.ParseOID(j.Head.SHA); err != nil {
		return wrong("head", err)
	}
	// One of a fork has its own name there, and is none of ours.
	if j.Head.RepoID == j.Base.RepoID {
		if p.Branch, err = git.ParseBranch(cmp.Or(j.Head.Label, j.Head.Ref)); err != nil {
			p.Branch = ""
		}
	}
	switch {
	case j.Merged:
		p.State, p.MergedBy = forges.Merged, c.account(j.MergedBy)
		if p.Merge, err = git.ParseOID(j.Commit); err != nil {
			return wrong("merge commit", err)
		}
	case j.State != "open":
		p.State = forges.Closed
		p.ClosedBy, err = closedBy(ctx, c, strings.TrimSuffix(pulls, "/pulls")+fmt.Sprintf("/issues/%d", j.Number))
	}
	return p, err
}

// closedBy returns who closed a pull request last, as its timeline tells.
func closedBy(ctx context.Context, c *Client, issue string) (by intake.Account, err error) {
	err = c.timeline(ctx, issue, func(e *commentJSON) {
		if e.Type == "close" {
			by = c.account(e.User)
		}
	})
	return by, err
}

// Pull returns a pull request as it is now.
func (c *Client) Pull(ctx context.Context, repository string, number int64) (forges.Pull, error) {
	path, err := rest.Path(repository, "pulls")
	if err != nil {
		return forges.Pull{}, err
	}
	var j pullJSON
	if err := c.Call(ctx, http.MethodGet, fmt.Sprintf("%s/%d", path, number), nil, &j); err != nil {
		return forges.Pull{}, err
	}
	return c.pull(ctx, path, &j)
}

// OpenPull opens a pull request. Gitea refuses a second one of the same branches while one is
// open.
func (c *Client) OpenPull(ctx context.Context, repository string, head, base git.Branch, t forges.PullText) (forges.Pull, error) {
	if _, err := branches(head, base); err != nil {
		return forges.Pull{}, err
	}
	path, err := rest.Path(repository, "pulls")
	if err != nil {
		return forges.Pull{}, err
	}
	var j pullJSON
	err = c.Call(ctx, http.MethodPost, path, map[string]string{
		"head": string(head), "base": string(base), "title": title(&t), "body": t.Body,
	}, &j)
	if refused, ok := errors.AsType[*forges.RefusedError](err); ok && refused.Code == http.StatusConflict {
		found, findErr := c.FindPull(ctx, repository, head, base)
		if findErr == nil && found.State == forges.Open {
			return found, nil
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

// EditPull adds labels, and replaces the title and the text. It asks for no version first: the
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
	if err := c.Call(ctx, http.MethodPatch, path, map[string]string{"title": title(&t), "body": t.Body}, nil); err != nil {
		return err
	}
	return missing
}

// ReopenPull opens a pull request again. Gitea takes it for a change of the issue that it is.
func (c *Client) ReopenPull(ctx context.Context, repository string, number int64) error {
	return c.setState(ctx, repository, number, "open")
}

// ClosePull closes a pull request, which is an issue to Gitea.
func (c *Client) ClosePull(ctx context.Context, repository string, number int64) error {
	return c.setState(ctx, repository, number, "closed")
}

// CloseIssue closes an issue.
func (c *Client) CloseIssue(ctx context.Context, repository string, number int64) error {
	return c.setState(ctx, repository, number, "closed")
}

// setState opens or closes an issue. The same state again changes nothing.
func (c *Client) setState(ctx context.Context, repository string, number int64, state string) error {
	path, err := rest.Path(repository, "issues", number)
	if err != nil {
		return err
	}
	return c.Call(ctx, http.MethodPatch, path, map[string]string{"state": state}, nil)
}

// BranchHead returns the commit of a branch.
func (c *Client) BranchHead(ctx context.Context, repository string, branch git.Branch) (git.OID, error) {
	if _, err := git.ParseBranch(string(branch)); err != nil {
		return "", err
	}
	path, err := rest.Path(repository, "branches", branch)
	if err != nil {
		return "", err
	}
	var b struct {
		Commit struct {
			ID string `json:"id"`
		} `json:"commit"`
	}
	if err := c.Call(ctx, http.MethodGet, path, nil, &b); err != nil {
		return "", err
	}
	return git.ParseOID(b.Commit.ID)
}

// Behind reports whether a base has commits that a head has not. The merge base that a pull
// request shows is computed late, and so may be of the head before.
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
		Commits int `json:"total_commits"`
	}
	err = c.Call(ctx, http.MethodGet, path, nil, &got)
	return got.Commits > 0, err
}

// addLabels puts labels on. Gitea passes over those that are not there, without a word.
func (c *Client) addLabels(ctx context.Context, repository string, number int64, labels []string) error {
	if len(labels) == 0 {
		return nil
	}
	path, err := rest.Path(repository, "issues", number, "labels")
	if err != nil {
		return err
	}
	var has []labelJSON
	if err := c.Call(ctx, http.MethodPost, path, map[string][]string{"labels": labels}, &has); err != nil {
		return err
	}
	for _, name := range labels {
		if !slices.Contains(has, labelJSON{Name: name}) {
			return fmt.Errorf("%w %.100q", forges.ErrLabel, name)
		}
	}
	return nil
}

// ChangedPulls returns our pull requests that are open or ended since a time, the oldest change
// first.
func (c *Client) ChangedPulls(ctx context.Context, repository, login string, since time.Time) ([]forges.Change, error) {
	path, err := rest.Path(repository, "issues")
	if err != nil {
		return nil, err
	}
	open := url.Values{"type": {"pulls"}, "created_by": {login}, "state": {"open"}}
	ended := url.Values{"type": {"pulls"}, "created_by": {login}, "state": {"closed"}, "since": {since.UTC().Format(time.RFC3339)}}
	var out []forges.Change
	for _, query := range []url.Values{open, ended} {
		list, err := c.changed(ctx, path, query)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	slices.SortFunc(out, func(a, b forges.Change) int { return a.At.Compare(b.At) })
	return out, nil
}
