package github

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

// The types below have the names of GitHub's API; those fields that are needed.
type (
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
		User    *userJSON   `json:"user"`
		Labels  []labelJSON `json:"labels"`
		State   string      `json:"state"`
		Updated time.Time   `json:"updated_at"`
		// Pull is there for a pull request, which is an issue, too.
		Pull *struct{} `json:"pull_request"`
		// Repository is the address of the one that it is in.
		Repository string `json:"repository_url"`
	}
	commentJSON struct {
		ID      int64     `json:"id"`
		User    *userJSON `json:"user"`
		Body    string    `json:"body"`
		Created time.Time `json:"created_at"`
		Updated time.Time `json:"updated_at"`
	}
	// eventJSON is something that happened to an issue: labeled and unlabeled have the label,
	// closed the actor.
	eventJSON struct {
		Event   string     `json:"event"`
		Actor   *userJSON  `json:"actor"`
		Label   *labelJSON `json:"label"`
		Created time.Time  `json:"created_at"`
	}
)

// Self returns our account: that of the token, or the one in whose name the App acts.
func (c *Client) Self(ctx context.Context) (intake.Account, error) {
	var u userJSON
	if c.app == nil {
		err := c.Call(ctx, http.MethodGet, "/user", nil, &u)
		return c.account(&u), err
	}
	var app struct {
		Slug string `json:"slug"`
	}
	if err := c.app.rest.Call(ctx, http.MethodGet, "/app", nil, &app); err != nil {
		return intake.Account{}, err
	}
	err := c.Call(ctx, http.MethodGet, "/users/"+url.PathEscape(app.Slug+"[bot]"), nil, &u)
	return c.account(&u), err
}

// Repository returns a repository by its name. After a rename the former name leads to it
// as long as no other has that.
func (c *Client) Repository(ctx context.Context, name string) (forges.Repository, error) {
	path, err := rest.Path(name)
	if err != nil {
		return forges.Repository{}, err
	}
	var r repoJSON
	if err := c.Call(ctx, http.MethodGet, path, nil, &r); err != nil {
		return forges.Repository{}, err
	}
	if err := cmp.Or(intake.CheckRepository(r.FullName), c.known(name, r.ID)); err != nil {
		return forges.Repository{}, err
	}
	if c.app != nil {
		err = c.app.covers(ctx, r.FullName)
	}
	return forges.Repository{ID: r.ID, Name: r.FullName}, err
}

// Issue returns an issue, with who put its labels on. That of a pull request is not found.
func (c *Client) Issue(ctx context.Context, repository string, number int64) (forges.Issue, error) {
	path, err := rest.Path(repository, "issues", number)
	if err != nil {
		return forges.Issue{}, err
	}
	repo, err := c.Repository(ctx, repository)
	if err != nil {
		return forges.Issue{}, err
	}
	var i issueJSON
	if err := c.Call(ctx, http.MethodGet, path, nil, &i); err != nil {
		return forges.Issue{}, err
	}
	// One that was transferred answers as the issue that it is in another repository, whose people
	// are others.
	elsewhere := i.Repository != "" && !strings.HasSuffix(strings.ToLower(i.Repository), "/repos/"+strings.ToLower(repo.Name))
	if i.Pull != nil || i.Number != number || elsewhere {
		return forges.Issue{}, fmt.Errorf("%s: %w", path, forges.ErrNotFound)
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

// labelled returns who put each label on last, as the events of an issue tell.
func (c *Client) labelled(ctx context.Context, issue string) (map[string]intake.Label, error) {
	by := map[string]intake.Label{}
	err := c.events(ctx, issue, func(e *eventJSON) {
		if e.Event == "labeled" && e.Label != nil {
			by[e.Label.Name] = intake.Label{By: c.account(e.Actor), At: e.Created}
		}
	})
	return by, err
}

// events calls each with what happened to an issue, the oldest first.
func (c *Client) events(ctx context.Context, issue string, each func(*eventJSON)) error {
	return rest.List(ctx, c.Client, fmt.Sprintf("%s/events?per_page=%d", issue, page), page, func(list []eventJSON) (int, bool) {
		for i := range list {
			each(&list[i])
		}
		return len(list), false
	})
}

// Changed returns the issues that changed since a time, the oldest change first.
func (c *Client) Changed(ctx context.Context, repository string, since time.Time) ([]forges.Change, error) {
	path, err := rest.Path(repository, "issues")
	if err != nil {
		return nil, err
	}
	// The newest first: one that changes meanwhile has others come twice, and none left out.
	query := url.Values{"state": {"all"}, "sort": {"updated"}, "direction": {"desc"}}
	if !since.IsZero() {
		query.Set("since", since.UTC().Format(time.RFC3339))
	}
	var out []forges.Change
	err = rest.Shrink(page, func(size int) error {
		out = nil
		query.Set("per_page", strconv.Itoa(size))
		return rest.List(ctx, c.Client, path+"?"+query.Encode(), size, func(list []issueJSON) (int, bool) {
			for i := range list {
				if list[i].Pull == nil {
					out = append(out, forges.Change{Number: list[i].Number, At: list[i].Updated})
				}
			}
			return len(list), false
		})
	})
	return rest.Sorted(out), err
}

// Comments returns the comments of an issue, or of the pull request that it is,
// that are new or edited since a time.
func (c *Client) Comments(ctx context.Context, repository string, on forges.Topic, since time.Time) ([]forges.Comment, error) {
	path, err := rest.Path(repository, "issues", on.Number, "comments")
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	if !since.IsZero() {
		query.Set("since", since.UTC().Format(time.RFC3339))
	}
	var out []forges.Comment
	err = rest.Shrink(page, func(size int) error {
		out = nil
		query.Set("per_page", strconv.Itoa(size))
		return rest.List(ctx, c.Client, path+"?"+query.Encode(), size, func(list []commentJSON) (int, bool) {
			for i := range list {
				out = append(out, c.comment(&list[i]))
			}
			return len(list), false
		})
	})
	slices.SortFunc(out, func(a, b forges.Comment) int { return cmp.Compare(a.ID, b.ID) })
	return out, err
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
	// Who may write in a repository that has taken a name of ours is decided by strangers.
	if _, err := c.Repository(ctx, repository); err != nil {
		return intake.Account{}, err
	}
	var got struct {
		// Permission is admin, write, read or none; Role says triage as well, and maintain, or
		// the name of a role of the organisation.
		Permission string    `json:"permission"`
		Role       string    `json:"role_name"`
		User       *userJSON `json:"user"`
	}
	if err := c.Call(ctx, http.MethodGet, path, nil, &got); err != nil {
		return intake.Account{}, err
	}
	a := c.account(got.User)
	switch got.Permission {
	case "admin":
		a.Permission = intake.Admin
	case "write":
		a.Permission = intake.Write
	case "read":
		a.Permission = intake.Read
		if got.Role == "triage" {
			a.Permission = intake.Triage
		}
	default:
		a.Permission = intake.None
	}
	if a.Kind == intake.Bot || a.ID <= 0 {
		return a, nil
	}
	a.Kind = intake.Outsider
	if a.Permission.Includes(intake.Write) {
		a.Kind = intake.Member
		return a, nil
	}
	return c.member(ctx, repository, a)
}

// member returns an account that may not write, as a member if it belongs to the
// organisation: it is no stranger all the same.
func (c *Client) member(ctx context.Context, repository string, a intake.Account) (intake.Account, error) {
	owner, _, _ := strings.Cut(repository, "/")
	err := c.Call(ctx, http.MethodGet, "/orgs/"+url.PathEscape(owner)+"/members/"+url.PathEscape(a.Login), nil, nil)
	if _, ok := errors.AsType[*forges.ParkedError](err); ok || ctx.Err() != nil {
		return intake.Account{}, err
	}
	// A person's repository has no organisation, and the members of one are shown to members
	// alone, others are sent to the public ones by a redirect. Who is not known to be one is a
	// stranger, which is the stricter of both.
	if err == nil {
		a.Kind = intake.Member
	}
	return a, nil
}

// File returns a file of the default branch.
func (i intakes) File(ctx context.Context, repository, path string) ([]byte, error) {
	c := i.of
	at, err := rest.Path(repository, "contents", path)
	if err != nil {
		return nil, err
	}
	// The rules of a repository that has taken a name of ours are those of strangers.
	if _, err := c.Repository(ctx, repository); err != nil {
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

// React puts a reaction on a comment. GitHub answers the same one again with the one that
// is there.
func (c *Client) React(ctx context.Context, repository string, _ forges.Topic, comment int64, r forges.Reaction) error {
	path, err := rest.Path(repository, "issues", "comments", comment, "reactions")
	if err != nil {
		return err
	}
	return c.Call(ctx, http.MethodPost, path, map[string]string{"content": string(r)}, nil)
}

// CloseIssue closes an issue.
func (c *Client) CloseIssue(ctx context.Context, repository string, number int64) error {
	path, err := rest.Path(repository, "issues", number)
	if err != nil {
		return err
	}
	return c.Call(ctx, http.MethodPatch, path, map[string]string{"state": "closed"}, nil)
}

// Hint reads a delivery. Those of issues, their labels and their comments hold the issue,
// which a pull request is as well; those of pull requests, reviews and remarks hold the
// pull request; those of statuses and checks a commit.
func (c *Client) Hint(_ string, body []byte) (forges.Hint, error) {
	type commit struct {
		SHA string `json:"head_sha"`
	}
	var d struct {
		Issue *issueJSON `json:"issue"`
		Pull  *struct {
			Number int64 `json:"number"`
		} `json:"pull_request"`
		SHA   string   `json:"sha"`
		Run   *commit  `json:"check_run"`
		Suite *commit  `json:"check_suite"`
		Repo  repoJSON `json:"repository"`
	}
	if err := json.Unmarshal(body, &d); err != nil {
		return forges.Hint{}, fmt.Errorf("the body of the delivery: %w", err)
	}
	for _, of := range []*commit{d.Run, d.Suite} {
		if of != nil {
			d.SHA = of.SHA
		}
	}
	h := forges.Hint{Repository: d.Repo.FullName, RepositoryID: d.Repo.ID}
	switch oid, err := git.ParseOID(d.SHA); {
	case d.Issue != nil && d.Issue.Pull != nil:
		h.Number, h.Pull = d.Issue.Number, true
	case d.Issue != nil:
		h.Number, h.Text, h.At = d.Issue.Number, intake.Hash(d.Issue.Title, d.Issue.Body), d.Issue.Updated
	case d.Pull != nil:
		h.Number, h.Pull = d.Pull.Number, true
	case err == nil:
		h.Commit = oid
	}
	if h.Number <= 0 && h.Commit == "" || h.Number < 0 || d.Repo.ID <= 0 {
		return forges.Hint{}, nil
	}
	if err := intake.CheckRepository(d.Repo.FullName); err != nil {
		return forges.Hint{}, fmt.Errorf("repository.full_name %w", err)
	}
	return h, nil
}
