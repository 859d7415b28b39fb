package gitea

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

var _ forges.Forge = (*Client)(nil)

// The types below have the names of Gitea's API; those fields that are needed.
type (
	userJSON struct {
		ID    int64  `json:"id"`
		Login string `json:"login"`
	}
	repoJSON struct {
		ID       int64  `json:"id"`
		FullName string `json:"full_name"`
	}
	labelJSON struct {
		Name string `json:"name"`
	}
	issueJSON struct {
		Number  int64       `json:"number"`
		Title   string      `json:"title"`
		Body    string      `json:"body"`
		User    userJSON    `json:"user"`
		Labels  []labelJSON `json:"labels"`
		State   string      `json:"state"`
		Updated time.Time   `json:"updated_at"`
		Repo    repoJSON    `json:"repository"`
		// Pull is not null for a pull request, which is an issue there, too.
		Pull *struct{} `json:"pull_request"`
	}
	commentJSON struct {
		ID      int64     `json:"id"`
		User    userJSON  `json:"user"`
		Body    string    `json:"body"`
		Created time.Time `json:"created_at"`
		Updated time.Time `json:"updated_at"`
		// Type and Label are there in the timeline.
		Type  string     `json:"type"`
		Label *labelJSON `json:"label"`
	}
)

// account returns a user, whose permission is not known.
func (c *Client) account(u userJSON) intake.Account {
	a := intake.Account{ID: u.ID, Login: u.Login}
	if c.isBot(u.ID, u.Login) {
		a.Kind = intake.Bot
	}
	return a
}

// Self returns our account.
func (c *Client) Self(ctx context.Context) (intake.Account, error) {
	var u userJSON
	err := c.Call(ctx, http.MethodGet, "/user", nil, &u)
	return c.account(u), err
}

// Repository returns a repository by its name.
func (c *Client) Repository(ctx context.Context, name string) (forges.Repository, error) {
	path, err := rest.Path(name)
	if err != nil {
		return forges.Repository{}, err
	}
	var r repoJSON
	if err := c.Call(ctx, http.MethodGet, path, nil, &r); err != nil {
		return forges.Repository{}, err
	}
	return forges.Repository{ID: r.ID, Name: r.FullName}, intake.CheckRepository(r.FullName)
}

// Issue returns an issue, with who put its labels on. That of a pull request is not found.
func (c *Client) Issue(ctx context.Context, repository string, number int64) (forges.Issue, error) {
	path, err := rest.Path(repository, "issues", number)
	if err != nil {
		return forges.Issue{}, err
	}
	var i issueJSON
	if err := c.Call(ctx, http.MethodGet, path, nil, &i); err != nil {
		return forges.Issue{}, err
	}
	if i.Pull != nil || i.Number != number {
		return forges.Issue{}, fmt.Errorf("%s: %w", path, forges.ErrNotFound)
	}
	// After a rename the old name leads to the repository, which answers with the new one.
	repo, err := c.Repository(ctx, repository)
	if err != nil {
		return forges.Issue{}, err
	}
	out := forges.Issue{
		Repository: repo, Number: i.Number, Title: i.Title, Body: i.Body, Author: c.account(i.User), Open: i.State == "open",
	}
	if len(i.Labels) == 0 {
		return out, nil
	}
	by, err := c.labelled(ctx, path)
	for _, l := range i.Labels {
		label := by[l.Name]
		label.Name = l.Name
		out.Labels = append(out.Labels, label)
	}
	return out, err
}

// labelled returns who put each label on last, as the timeline of an issue tells.
func (c *Client) labelled(ctx context.Context, issue string) (map[string]intake.Label, error) {
	by := map[string]intake.Label{}
	err := c.timeline(ctx, issue, func(e *commentJSON) {
		if e.Type == "label" && e.Label != nil {
			if delete(by, e.Label.Name); e.Body == "1" { // it was put on, and not taken off
				by[e.Label.Name] = intake.Label{By: c.account(e.User), At: e.Created}
			}
		}
	})
	return by, err
}

// timeline calls each with what happened to an issue, the oldest first; where it is read again
// in smaller pages, from the beginning.
func (c *Client) timeline(ctx context.Context, issue string, each func(*commentJSON)) error {
	return rest.Shrink(page, func(size int) error {
		return rest.Pages(size, func(n int) (int, error) {
			var list []commentJSON
			err := c.Call(ctx, http.MethodGet, fmt.Sprintf("%s/timeline?limit=%d&page=%d", issue, size, n), nil, &list)
			for i := range list {
				each(&list[i])
			}
			return len(list), err
		})
	})
}

// Changed returns the issues that changed since a time, the oldest change first.
func (c *Client) Changed(ctx context.Context, repository string, since time.Time) ([]forges.Change, error) {
	path, err := rest.Path(repository, "issues")
	if err != nil {
		return nil, err
	}
	query := url.Values{"type": {"issues"}, "state": {"all"}}
	if !since.IsZero() {
		query.Set("since", since.UTC().Format(time.RFC3339))
	}
	out, err := c.changed(ctx, path, query)
	slices.SortFunc(out, func(a, b forges.Change) int { return a.At.Compare(b.At) })
	return out, err
}

// changed lists issues, or pull requests, by a query.
func (c *Client) changed(ctx context.Context, issues string, query url.Values) ([]forges.Change, error) {
	var out []forges.Change
	err := rest.Shrink(page, func(size int) error {
		out = nil
		query.Set("limit", strconv.Itoa(size))
		return rest.Pages(size, func(n int) (int, error) {
			query.Set("page", strconv.Itoa(n))
			var list []issueJSON
			err := c.Call(ctx, http.MethodGet, issues+"?"+query.Encode(), nil, &list)
			for _, i := range list {
				if (i.Pull != nil) == (query.Get("type") == "pulls") {
					out = append(out, forges.Change{Number: i.Number, At: i.Updated})
				}
			}
			return len(list), err
		})
	})
	return out, err
}

// Comments returns the comments of an issue, or of the pull request that it is,
// that are new or edited since a time.
func (c *Client) Comments(ctx context.Context, repository string, on forges.Topic, since time.Time) ([]forges.Comment, error) {
	path, err := rest.Path(repository, "issues", on.Number, "comments")
	if err != nil {
		return nil, err
	}
	if !since.IsZero() {
		path += "?since=" + url.QueryEscape(since.UTC().Format(time.RFC3339))
	}
	var list []commentJSON // Gitea has no pages here
	if err := c.Call(ctx, http.MethodGet, path, nil, &list); err != nil {
		return nil, err
	}
	var out []forges.Comment
	for i := range list {
		out = append(out, c.comment(&list[i]))
	}
	slices.SortFunc(out, func(a, b forges.Comment) int { return int(a.ID - b.ID) })
	return out, nil
}

// comment returns a comment without the permission of its author.
func (c *Client) comment(j *commentJSON) forges.Comment {
	return forges.Comment{ID: j.ID, Author: c.account(j.User), Body: j.Body, Created: j.Created, Updated: j.Updated}
}

// Account returns an account with its permission in a repository, as they are now.
func (c *Client) Account(ctx context.Context, repository, login string) (intake.Account, error) {
	path, err := rest.Path(repository, "collaborators", login, "permission")
	if err != nil {
		return intake.Account{}, err
	}
	var got struct {
		Permission string   `json:"permission"`
		User       userJSON `json:"user"`
	}
	if err := c.Call(ctx, http.MethodGet, path, nil, &got); err != nil {
		return intake.Account{}, err
	}
	a := c.account(got.User)
	switch got.Permission {
	case "owner", "admin":
		a.Permission = intake.Admin
	case "write":
		a.Permission = intake.Write
	case "read":
		a.Permission = intake.Read
	default:
		a.Permission = intake.None
	}
	if a.Kind == intake.Bot {
		return a, nil
	}
	a.Kind = intake.Outsider
	if a.Permission.Includes(intake.Write) {
		a.Kind = intake.Member
		return a, nil
	}
	// A member of the organisation may have no right of their own in this repository, and is no
	// stranger all the same.
	owner, _, _ := strings.Cut(repository, "/")
	err = c.Call(ctx, http.MethodGet, "/orgs/"+url.PathEscape(owner)+"/members/"+url.PathEscape(login), nil, nil)
	if _, ok := errors.AsType[*forges.ParkedError](err); ok || ctx.Err() != nil {
		return intake.Account{}, err
	}
	// A person's repository has no organisation, and the members of one are shown to members
	// alone. Who is not known to be one is a stranger, which is the stricter of both.
	if err == nil {
		a.Kind = intake.Member
	}
	return a, nil
}

// File returns a file of the default branch.
func (c *Client) File(ctx context.Context, repository, path string) ([]byte, error) {
	at, err := rest.Path(repository, "contents", path)
	if err != nil {
		return nil, err
	}
	return rest.File(ctx, c.Client, at)
}

// Say writes a comment.
func (c *Client) Say(ctx context.Context, repository string, on forges.Topic, body string) (forges.Comment, error) {
	path, err := rest.Path(repository, "issues", on.Number, "comments")
	if err != nil {
		return forges.Comment{}, err
	}
	var j commentJSON
	err = c.Call(ctx, http.MethodPost, path, map[string]string{"body": body}, &j)
	return c.comment(&j), err
}

// Edit replaces the text of a comment.
func (c *Client) Edit(ctx context.Context, repository string, _ forges.Topic, comment int64, body string) error {
	path, err := rest.Path(repository, "issues", "comments", comment)
	if err != nil {
		return err
	}
	return c.Call(ctx, http.MethodPatch, path, map[string]string{"body": body}, nil)
}

// React puts a reaction on a comment. Gitea answers the same one again as it did at first.
func (c *Client) React(ctx context.Context, repository string, _ forges.Topic, comment int64, r forges.Reaction) error {
	path, err := rest.Path(repository, "issues", "comments", comment, "reactions")
	if err != nil {
		return err
	}
	return c.Call(ctx, http.MethodPost, path, map[string]string{"content": string(r)}, nil)
}

// Hint reads a delivery. Those of issues, their labels and their comments hold the issue, which
// a pull request is as well; those of pull requests and reviews hold the pull request; those of
// statuses and pushes a commit.
func (c *Client) Hint(_ string, body []byte) (forges.Hint, error) {
	var d struct {
		Action string     `json:"action"`
		Issue  *issueJSON `json:"issue"`
		Sender userJSON   `json:"sender"`
		// Comment is there where the action is about one.
		Comment *struct{} `json:"comment"`
		Pull    *pullJSON `json:"pull_request"`
		Number  int64     `json:"number"`
		SHA     string    `json:"sha"`
		After   string    `json:"after"`
		Repo    repoJSON  `json:"repository"`
	}
	if err := json.Unmarshal(body, &d); err != nil {
		return forges.Hint{}, fmt.Errorf("the body of the delivery: %w", err)
	}
	h := forges.Hint{Repository: d.Repo.FullName, RepositoryID: d.Repo.ID}
	switch commit, err := git.ParseOID(cmp.Or(d.SHA, d.After)); {
	case d.Issue != nil && d.Issue.Pull != nil:
		h.Number, h.Pull = d.Issue.Number, true
	case d.Issue != nil:
		h.Number, h.Text, h.At = d.Issue.Number, intake.Hash(d.Issue.Title, d.Issue.Body), d.Issue.Updated
		if d.Action == "edited" && d.Comment == nil {
			h.Editor, h.EditorID = d.Sender.Login, d.Sender.ID
		}
	case d.Pull != nil:
		h.Number, h.Pull = cmp.Or(d.Pull.Number, d.Number), true
	case err == nil:
		h.Commit = commit
	}
	if h.Number <= 0 && h.Commit == "" || h.Number < 0 || d.Repo.ID <= 0 {
		return forges.Hint{}, nil
	}
	if err := intake.CheckRepository(d.Repo.FullName); err != nil {
		return forges.Hint{}, fmt.Errorf("repository.full_name %w", err)
	}
	return h, nil
}
