package gitlab

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
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

var _ forges.Forge = (*Client)(nil)

// The types below have the names of GitLab's API; those fields that are needed.
type (
	// issueJSON is an issue; in a list of them, a merge request has the same fields.
	issueJSON struct {
		// Number is that in its project, and not its id. Project says in which
		// one it is now: an issue can be moved to another one.
		Number  int64     `json:"iid"`
		Project int64     `json:"project_id"`
		Title   string    `json:"title"`
		Body    string    `json:"description"`
		Author  *userJSON `json:"author"`
		Labels  []string  `json:"labels"`
		// State is opened or closed.
		State   string    `json:"state"`
		Updated time.Time `json:"updated_at"`
		// Confidential is one that those with the right to triage see, and who wrote it.
		Confidential bool `json:"confidential"`
	}
	// labelEventJSON says that a label was put on (add) or taken off (remove). Of a label that is
	// gone it has none.
	labelEventJSON struct {
		Action  string    `json:"action"`
		User    *userJSON `json:"user"`
		Created time.Time `json:"created_at"`
		Label   *struct {
			Name string `json:"name"`
		} `json:"label"`
	}
	// noteJSON is a comment, a remark about a line, or an entry that says what happened.
	noteJSON struct {
		// ID grows, over all projects.
		ID int64 `json:"id"`
		// Type is DiffNote for a remark about a line; null for a comment.
		Type    string    `json:"type"`
		Body    string    `json:"body"`
		Author  *userJSON `json:"author"`
		Created time.Time `json:"created_at"`
		Updated time.Time `json:"updated_at"`
		// System says that GitLab itself wrote it in the author's name, of something that they did.
		System bool `json:"system"`
		// Internal is one that those with the right to triage see; Confidential is the older word.
		Internal     bool `json:"internal"`
		Confidential bool `json:"confidential"`
		// Resolvable is a remark that waits to be resolved.
		Resolvable bool `json:"resolvable"`
		Resolved   bool `json:"resolved"`
		// Position is that of a remark about a line: the line of the new text,
		// or of the old one where the new one has none.
		Position *struct {
			Path    string `json:"new_path"`
			Line    int64  `json:"new_line"`
			OldPath string `json:"old_path"`
			OldLine int64  `json:"old_line"`
		} `json:"position"`
	}
)

// hidden reports whether a note is not for all who see the project.
func (j *noteJSON) hidden() bool { return j.Internal || j.Confidential }

// Issue returns an issue, with who put its labels on. A confidential one is not
// found: what becomes of an issue, in its merge request and in the journal, is shown
// to all who see the project. The same holds where all issues are for members alone.
// Nor is one found that was moved to another project, whose people are others.
func (c *Client) Issue(ctx context.Context, repository string, number int64) (forges.Issue, error) {
	path, err := c.path(ctx, repository, "issues", number)
	if err != nil {
		return forges.Issue{}, err
	}
	project, err := c.project(ctx, repository)
	if err != nil {
		return forges.Issue{}, err
	}
	if project.discloses() {
		return forges.Issue{}, fmt.Errorf("%s: the issues of the project are for its members alone, and its merge requests are not: %w", path, forges.ErrNotFound)
	}
	repo := forges.Repository{ID: project.ID, Name: project.Name}
	var i issueJSON
	if err := c.Call(ctx, http.MethodGet, path, nil, &i); err != nil {
		return forges.Issue{}, err
	}
	if i.Confidential || i.Number != number || i.Project != repo.ID {
		return forges.Issue{}, fmt.Errorf("%s: %w", path, forges.ErrNotFound)
	}
	out := forges.Issue{
		Repository: repo, Number: i.Number, Title: i.Title, Body: i.Body, Author: c.account(i.Author), Open: i.State == "opened",
	}
	if len(i.Labels) == 0 {
		return out, nil
	}
	by, err := c.labelled(ctx, path)
	for _, name := range i.Labels {
		label := by[name]
		label.Name = name
		out.Labels = append(out.Labels, label)
	}
	return out, err
}

// labelled returns who put each label on last, as the events of an issue tell. One that the
// issue was opened with has an event as well. Where there is no event, no account has put it on.
func (c *Client) labelled(ctx context.Context, issue string) (map[string]intake.Label, error) {
	by := map[string]intake.Label{}
	err := rest.List(ctx, c.Client, fmt.Sprintf("%s/resource_label_events?per_page=%d", issue, page), page, func(list []labelEventJSON) (int, bool) {
		for _, e := range list { // the oldest first
			if e.Label == nil {
				continue
			}
			if delete(by, e.Label.Name); e.Action == "add" {
				by[e.Label.Name] = intake.Label{By: c.account(e.User), At: e.Created}
			}
		}
		return len(list), false
	})
	return by, err
}

// Changed returns the issues that changed since a time, the oldest change first, without those
// that are confidential.
func (c *Client) Changed(ctx context.Context, repository string, since time.Time) ([]forges.Change, error) {
	path, err := c.path(ctx, repository, "issues")
	if err != nil {
		return nil, err
	}
	return c.changed(ctx, path, url.Values{"state": {"all"}}, since, func(i *issueJSON) bool { return !i.Confidential })
}

// changed lists issues or merge requests by a query, with those that are wanted. The newest are
// first: one that changes meanwhile has others come twice, and none left out.
func (c *Client) changed(ctx context.Context, path string, query url.Values, since time.Time, want func(*issueJSON) bool) ([]forges.Change, error) {
	query.Set("scope", "all")
	query.Set("order_by", "updated_at")
	query.Set("sort", "desc")
	if !since.IsZero() {
		query.Set("updated_after", since.UTC().Format(time.RFC3339))
	}
	var out []forges.Change
	err := rest.Shrink(page, func(size int) error {
		out = nil
		query.Set("per_page", strconv.Itoa(size))
		return rest.List(ctx, c.Client, path+"?"+query.Encode(), size, func(list []issueJSON) (int, bool) {
			for i := range list {
				if want(&list[i]) {
					out = append(out, forges.Change{Number: list[i].Number, At: list[i].Updated})
				}
			}
			return len(list), false
		})
	})
	return rest.Sorted(out), err
}

// CloseIssue closes an issue. For one that is closed GitLab changes nothing, and answers with it.
func (c *Client) CloseIssue(ctx context.Context, repository string, number int64) error {
	path, err := c.path(ctx, repository, "issues", number)
	if err != nil {
		return err
	}
	return c.Call(ctx, http.MethodPut, path, map[string]string{"state_event": "close"}, nil)
}

// topic returns the path of an issue or a merge request.
func (c *Client) topic(ctx context.Context, repository string, on forges.Topic) (string, error) {
	kind := "issues"
	if on.Pull {
		kind = "merge_requests"
	}
	return c.path(ctx, repository, kind, on.Number)
}

// Comments returns the comments that are new or edited since a time. What
// GitLab writes itself, what is internal, and remarks about lines are none.
func (c *Client) Comments(ctx context.Context, repository string, on forges.Topic, since time.Time) ([]forges.Comment, error) {
	path, err := c.topic(ctx, repository, on)
	if err != nil {
		return nil, err
	}
	var out []forges.Comment
	err = rest.Shrink(page, func(size int) error {
		out = nil
		query := fmt.Sprintf("%s/notes?order_by=created_at&sort=asc&per_page=%d", path, size)
		return rest.List(ctx, c.Client, query, size, func(list []noteJSON) (int, bool) {
			for i := range list {
				if j := &list[i]; !j.System && !j.hidden() && j.Type != "DiffNote" && !j.Updated.Before(since) {
					out = append(out, c.comment(j))
				}
			}
			return len(list), false
		})
	})
	slices.SortFunc(out, func(a, b forges.Comment) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(out, func(a, b forges.Comment) bool { return a.ID == b.ID }), err
}

// comment returns a comment without the permission of its author.
func (c *Client) comment(j *noteJSON) forges.Comment {
	return forges.Comment{ID: j.ID, Author: c.account(j.Author), Body: j.Body, Created: j.Created, Updated: j.Updated}
}

// Say writes a comment. Lines that begin with a slash and a command of GitLab's
// would be carried out, and a comment of such lines alone be none; our texts
// have no such line (TestNothingOutIsObeyed).
func (c *Client) Say(ctx context.Context, repository string, on forges.Topic, body string) (forges.Comment, error) {
	path, err := c.topic(ctx, repository, on)
	if err != nil {
		return forges.Comment{}, err
	}
	var j noteJSON
	err = c.Call(ctx, http.MethodPost, path+"/notes", map[string]string{"body": body}, &j)
	if err == nil && j.ID <= 0 {
		err = fmt.Errorf("%s: the forge took the comment for its own commands", path)
	}
	return c.comment(&j), err
}

// Edit replaces the text of a comment.
func (c *Client) Edit(ctx context.Context, repository string, on forges.Topic, comment int64, body string) error {
	path, err := c.topic(ctx, repository, on)
	if err != nil {
		return err
	}
	return c.Call(ctx, http.MethodPut, rest.Join(path, "notes", comment), map[string]string{"body": body}, nil)
}

// File returns a file of the default branch, which GitLab calls HEAD.
func (i intakes) File(ctx context.Context, repository, path string) ([]byte, error) {
	c := i.of
	at, err := c.path(ctx, repository, "repository", "files", path)
	if err != nil {
		return nil, err
	}
	return rest.File(ctx, c.Client, at+"?ref=HEAD")
}

// emoji are GitLab's names of the reactions. It knows thumbsdown as -1 as well,
// and tells it by this one.
var emoji = map[forges.Reaction]string{forges.Seen: "eyes", forges.Done: "rocket", forges.Refused: "thumbsdown"}

// React puts a reaction on a comment. GitLab answers the same one again with 404, as if the comment
// were not there: whether ours is, the list says.
func (c *Client) React(ctx context.Context, repository string, on forges.Topic, comment int64, r forges.Reaction) error {
	path, err := c.topic(ctx, repository, on)
	if err != nil {
		return err
	}
	path = rest.Join(path, "notes", comment, "award_emoji")
	err = c.Call(ctx, http.MethodPost, path, map[string]string{"name": emoji[r]}, nil)
	if !errors.Is(err, forges.ErrNotFound) {
		return err
	}
	self, selfErr := c.Self(ctx)
	if selfErr != nil {
		return selfErr
	}
	there := false
	listErr := rest.List(ctx, c.Client, fmt.Sprintf("%s?per_page=%d", path, page), page, func(list []struct {
		Name string    `json:"name"`
		User *userJSON `json:"user"`
	},
	) (int, bool) {
		for _, a := range list {
			there = there || a.Name == emoji[r] && a.User != nil && a.User.ID == self.ID
		}
		return len(list), there
	})
	if there {
		return nil
	}
	return errors.Join(err, listErr)
}

type (
	// hintJSON is a delivery. Those of issues and merge requests have the thing in their
	// attributes, those of comments beside them, and those of pipelines, jobs and pushes a commit.
	hintJSON struct {
		Kind       string `json:"object_kind"`
		Attributes struct {
			hintedJSON

			SHA      string `json:"sha"`
			About    string `json:"noteable_type"`
			Internal bool   `json:"internal"`
		} `json:"object_attributes"`
		Issue *hintedJSON `json:"issue"`
		Pull  *hintedJSON `json:"merge_request"`
		SHA   string      `json:"sha"`
		After string      `json:"after"`
		// ProjectID is not in each delivery, nor is the project's own number.
		ProjectID int64       `json:"project_id"`
		Project   projectJSON `json:"project"`
	}
	// hintedJSON is an issue or a merge request in a delivery, where its
	// labels, its times and the addresses of images in its text have another
	// form than in an answer: the text is not compared.
	hintedJSON struct {
		Number       int64 `json:"iid"`
		Confidential bool  `json:"confidential"`
	}
)

// Hint reads a delivery. One about a confidential issue, or by an internal comment, leads to
// nothing.
func (c *Client) Hint(_ string, body []byte) (forges.Hint, error) {
	var d hintJSON
	if err := json.Unmarshal(body, &d); err != nil {
		return forges.Hint{}, fmt.Errorf("the body of the delivery: %w", err)
	}
	h := forges.Hint{Repository: d.Project.Name, RepositoryID: cmp.Or(d.Project.ID, d.ProjectID)}
	issue, pull, commit := d.about()
	oid, err := git.ParseOID(commit)
	switch {
	case pull != nil:
		h.Number, h.Pull = pull.Number, true
	case issue != nil && !issue.Confidential && !d.Attributes.Internal:
		h.Number = issue.Number
	case err == nil:
		h.Commit = oid
	}
	if h.Number <= 0 && h.Commit == "" || h.Number < 0 || h.RepositoryID <= 0 {
		return forges.Hint{}, nil
	}
	if err := intake.CheckNested(d.Project.Name); err != nil {
		return forges.Hint{}, fmt.Errorf("project.path_with_namespace %w", err)
	}
	return h, nil
}

// about returns the subject of a delivery: one of the three, or none. A pipeline of a merge request
// names both it and its commit; one of a branch has its commit alone.
func (d *hintJSON) about() (issue, pull *hintedJSON, commit string) {
	switch d.Kind {
	case "issue", "work_item":
		return &d.Attributes.hintedJSON, nil, ""
	case "merge_request":
		return nil, &d.Attributes.hintedJSON, ""
	case "note":
		switch d.Attributes.About {
		case "Issue":
			return d.Issue, nil, ""
		case "MergeRequest":
			return nil, d.Pull, ""
		}
	case "pipeline":
		return nil, d.Pull, d.Attributes.SHA
	case "build":
		return nil, nil, d.SHA
	case "push":
		return nil, nil, d.After
	}
	return nil, nil, ""
}
