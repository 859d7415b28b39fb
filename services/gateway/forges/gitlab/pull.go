package gitlab

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

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

var _ forges.Pulls = (*Client)(nil)

// mergeJSON is a merge request.
type mergeJSON struct {
	mergeableJSON

	// Number is counted apart from those of issues.
	Number int64     `json:"iid"`
	Title  string    `json:"title"`
	Body   string    `json:"description"`
	Author *userJSON `json:"author"`
	Labels []string  `json:"labels"`
	// State is opened, closed, merged or, while it is being merged, locked.
	State string `json:"state"`
	Draft bool   `json:"draft"`
	// From and Into are branches, FromProject and IntoProject whose they are.
	From        string `json:"source_branch"`
	Into        string `json:"target_branch"`
	FromProject int64  `json:"source_project_id"`
	IntoProject int64  `json:"target_project_id"`
	// SHA is the head. Commit and Squashed came to be on the base: a commit with two parents, one
	// of the whole change, both (the first then has the second), or, by a fast-forward, neither.
	SHA      string `json:"sha"`
	Commit   string `json:"merge_commit_sha"`
	Squashed string `json:"squash_commit_sha"`
	// MergedBy is the older word for MergeUser. ClosedBy is null in some
	// answers of older instances.
	MergeUser *userJSON `json:"merge_user"`
	MergedBy  *userJSON `json:"merged_by"`
	ClosedBy  *userJSON `json:"closed_by"`
	URL       string    `json:"web_url"`
}

// mergeableJSON says whether a merge request can be merged, and whether that happens by itself.
type mergeableJSON struct {
	// Detailed says why it cannot be merged; older instances have Status alone.
	Detailed string `json:"detailed_merge_status"`
	Status   string `json:"merge_status"`
	// Later says that it is merged by itself when it may be, or is in a merge
	// train. A push ends that.
	Later bool `json:"merge_when_pipeline_succeeds"`
}

// maxTitle is how long a title may be, in characters.
const maxTitle = 255

// drafts are how GitLab tells a draft; the last beginnings did so in older
// versions.
var drafts = rest.Drafts{Begin: "Draft: ", Known: []string{"draft:", "[draft]", "(draft)", "draft - ", "wip:", "[wip]"}}

// title returns the title that says what is wanted.
func title(t *forges.PullText) string { return drafts.Title(t.Title, t.Draft, maxTitle) }

// FindPull returns the merge request of a branch into another. One of a fork's branch of that name
// is another one.
func (c *Client) FindPull(ctx context.Context, repository string, head, base git.Branch) (forges.Pull, error) {
	if err := rest.Branches(head, base); err != nil {
		return forges.Pull{}, err
	}
	path, err := c.path(ctx, repository, "merge_requests")
	if err != nil {
		return forges.Pull{}, err
	}
	query := url.Values{
		"state": {"all"}, "scope": {"all"}, "source_branch": {string(head)}, "target_branch": {string(base)}, "order_by": {"created_at"}, "sort": {"desc"},
	}
	var found *mergeJSON
	err = rest.Shrink(page, func(size int) error {
		found = nil
		query.Set("per_page", strconv.Itoa(size))
		return rest.List(ctx, c.Client, path+"?"+query.Encode(), size, func(list []mergeJSON) (int, bool) {
			for i := range list { // the newest first
				p := &list[i]
				if p.From != string(head) || p.Into != string(base) || !p.own() {
					continue
				}
				if found == nil || p.open() && !found.open() {
					found = p
				}
			}
			return len(list), found != nil && found.open()
		})
	})
	if err != nil {
		return forges.Pull{}, err
	}
	if found == nil {
		return forges.Pull{}, fmt.Errorf("%s: %w", path, forges.ErrNotFound)
	}
	return c.Pull(ctx, repository, found.Number)
}

// own reports whether the head is in the project of the base. A stranger can
// make a fork with a branch of our name.
func (j *mergeJSON) own() bool { return j.FromProject > 0 && j.FromProject == j.IntoProject }

// open reports whether it is neither closed nor merged.
func (j *mergeJSON) open() bool { return j.State == "opened" || j.State == "locked" }

// raw reads a merge request. That it is read has GitLab compute whether it can be merged.
func (c *Client) raw(ctx context.Context, repository string, number int64) (*mergeJSON, error) {
	path, err := c.path(ctx, repository, "merge_requests", number)
	if err != nil {
		return nil, err
	}
	var j mergeJSON
	err = c.Call(ctx, http.MethodGet, path, nil, &j)
	return &j, err
}

// Pull returns a merge request as it is now.
func (c *Client) Pull(ctx context.Context, repository string, number int64) (forges.Pull, error) {
	j, err := c.raw(ctx, repository, number)
	if err != nil {
		return forges.Pull{}, err
	}
	repo, err := c.Repository(ctx, repository)
	if err != nil {
		return forges.Pull{}, err
	}
	p := forges.Pull{
		PullText:   forges.PullText{Title: drafts.Wanted(j.Title, j.Draft), Body: j.Body, Draft: j.Draft, Labels: j.Labels},
		Repository: repo, Number: j.Number, Author: c.account(j.Author), State: forges.Open, URL: j.URL,
	}
	wrong := func(what string, err error) (forges.Pull, error) {
		return forges.Pull{}, fmt.Errorf("merge request %d: its %s: %w", number, what, err)
	}
	if j.Number != number || j.IntoProject != repo.ID {
		return wrong("number or project", forges.ErrNotFound)
	}
	if p.Base, err = git.ParseBranch(j.Into); err != nil {
		return wrong("base", err)
	}
	if p.Head, err = git.ParseOID(j.SHA); err != nil {
		return wrong("head", err)
	}
	// One of a fork has its own name there, and is none of ours.
	if j.own() {
		if p.Branch, err = git.ParseBranch(j.From); err != nil {
			p.Branch = ""
		}
	}
	// What it has of its base is that of its last push. A base can be deleted,
	// and the merge request is there all the same: one that ended is as it was,
	// and one that is open cannot go on.
	switch p.BaseHead, err = c.BranchHead(ctx, repository, p.Base); {
	case errors.Is(err, forges.ErrNotFound) && j.open():
		return forges.Pull{}, fmt.Errorf("merge request %d: its base branch %.100q is not there", number, p.Base)
	case err != nil && !errors.Is(err, forges.ErrNotFound):
		return wrong("base", err)
	}
	switch {
	case j.State == "merged":
		p.State, p.MergedBy = forges.Merged, c.account(cmp.Or(j.MergeUser, j.MergedBy))
		if p.Merge, err = git.ParseOID(cmp.Or(j.Commit, j.Squashed, j.SHA)); err != nil {
			return wrong("merge commit", err)
		}
	case !j.open():
		p.State, p.ClosedBy = forges.Closed, c.account(j.ClosedBy)
	}
	return p, nil
}

// OpenPull opens a merge request. GitLab refuses a second one of the same branches while one is
// open, by 409. Its branch stays when it is merged, whatever the project does with others.
func (c *Client) OpenPull(ctx context.Context, repository string, head, base git.Branch, t forges.PullText) (forges.Pull, error) {
	if err := rest.Branches(head, base); err != nil {
		return forges.Pull{}, err
	}
	path, err := c.path(ctx, repository, "merge_requests")
	if err != nil {
		return forges.Pull{}, err
	}
	there, missing := c.labels(ctx, repository, t.Labels)
	if missing != nil && !errors.Is(missing, forges.ErrLabel) {
		return forges.Pull{}, missing
	}
	var j mergeJSON
	err = c.Call(ctx, http.MethodPost, path, map[string]any{
		"source_branch": string(head), "target_branch": string(base), "title": title(&t), "description": t.Body, "labels": strings.Join(there, ","),
		"remove_source_branch": false,
	}, &j)
	if refused, ok := errors.AsType[*forges.RefusedError](err); ok && refused.Code == http.StatusConflict {
		found, findErr := c.FindPull(ctx, repository, head, base)
		if findErr == nil && found.State == forges.Open {
			return found, nil
		}
		if errors.Is(findErr, forges.ErrNotFound) {
			findErr = nil
		}
		return forges.Pull{}, errors.Join(err, findErr)
	}
	if err = cmp.Or(err, missing); err != nil {
		return forges.Pull{}, err
	}
	return c.Pull(ctx, repository, j.Number)
}

// EditPull adds labels and replaces the title and the text, in one request. The last one who writes
// wins, as on the page.
func (c *Client) EditPull(ctx context.Context, repository string, number int64, t forges.PullText) error {
	path, err := c.path(ctx, repository, "merge_requests", number)
	if err != nil {
		return err
	}
	there, missing := c.labels(ctx, repository, t.Labels)
	if missing != nil && !errors.Is(missing, forges.ErrLabel) {
		return missing
	}
	in := map[string]string{"title": title(&t), "description": t.Body}
	if len(there) > 0 {
		in["add_labels"] = strings.Join(there, ",")
	}
	return cmp.Or(c.Call(ctx, http.MethodPut, path, in, nil), missing)
}

// labels returns those of some labels that are there, and an error that names one that is not.
// GitLab would make it. One with a comma cannot be asked for.
func (c *Client) labels(ctx context.Context, repository string, names []string) (there []string, missing error) {
	for _, name := range names {
		path, err := c.path(ctx, repository, "labels", name)
		if err != nil {
			return nil, err
		}
		var l struct {
			Name string `json:"name"`
		}
		err = c.Call(ctx, http.MethodGet, path, nil, &l)
		if err != nil && !errors.Is(err, forges.ErrNotFound) {
			return nil, err
		}
		if err != nil || l.Name != name || strings.Contains(name, ",") { // a number may be that of another one
			missing = fmt.Errorf("%w %.100q", forges.ErrLabel, name)
			continue
		}
		there = append(there, name)
	}
	return there, missing
}

// ReopenPull opens a merge request again. One that cannot be opened is answered as if it were, and
// stays closed.
func (c *Client) ReopenPull(ctx context.Context, repository string, number int64) error {
	state, err := c.setState(ctx, repository, number, "reopen")
	if err == nil && state == "closed" {
		err = &forges.RefusedError{Code: http.StatusConflict, Reason: "it stays closed; is its branch still there?"}
	}
	return err
}

// ClosePull closes a merge request. One that is merged stays so.
func (c *Client) ClosePull(ctx context.Context, repository string, number int64) error {
	_, err := c.setState(ctx, repository, number, "close")
	return err
}

// setState opens or closes a merge request, and returns its state then.
func (c *Client) setState(ctx context.Context, repository string, number int64, event string) (string, error) {
	path, err := c.path(ctx, repository, "merge_requests", number)
	if err != nil {
		return "", err
	}
	var j mergeJSON
	err = c.Call(ctx, http.MethodPut, path, map[string]string{"state_event": event}, &j)
	return j.State, err
}

// ChangedPulls returns our merge requests that are open or ended since a time, the oldest change
// first.
func (c *Client) ChangedPulls(ctx context.Context, repository, login string, since time.Time) ([]forges.Change, error) {
	path, err := c.path(ctx, repository, "merge_requests")
	if err != nil {
		return nil, err
	}
	ours := func(i *issueJSON) bool { return i.Author != nil && strings.EqualFold(i.Author.Login, login) }
	open, err := c.changed(ctx, path, url.Values{"state": {"opened"}, "author_username": {login}}, time.Time{}, ours)
	if err != nil {
		return nil, err
	}
	ended, err := c.changed(ctx, path, url.Values{"state": {"all"}, "author_username": {login}}, since, func(i *issueJSON) bool {
		return ours(i) && i.State != "opened"
	})
	return rest.Sorted(append(open, ended...)), err
}
