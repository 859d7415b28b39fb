package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

type (
	reviewJSON struct {
		ID   int64     `json:"id"`
		User *userJSON `json:"user"`
		// State is APPROVED, CHANGES_REQUESTED, COMMENTED or DISMISSED; PENDING is not sent yet.
		State     string    `json:"state"`
		Body      string    `json:"body"`
		Commit    string    `json:"commit_id"`
		Submitted time.Time `json:"submitted_at"`
	}
	remarkJSON struct {
		ID int64 `json:"id"`
		// Review is the one that it belongs to, and Reply the remark that it answers.
		Review int64  `json:"pull_request_review_id"`
		Reply  int64  `json:"in_reply_to_id"`
		Body   string `json:"body"`
		Path   string `json:"path"`
		// Line is null where the line is gone; Original is that of the commit that was reviewed.
		Line     int64     `json:"line"`
		Original int64     `json:"original_line"`
		User     *userJSON `json:"user"`
		Created  time.Time `json:"created_at"`
		Updated  time.Time `json:"updated_at"`
	}
)

// Reviews returns the reviews of a pull request. Those that are not sent yet are none.
func (c *Client) Reviews(ctx context.Context, repository string, number int64) ([]forges.Review, error) {
	path, err := rest.Path(repository, "pulls", number)
	if err != nil {
		return nil, err
	}
	var out []forges.Review
	err = rest.Shrink(page, func(size int) error {
		out = nil
		return rest.List(ctx, c.Client, fmt.Sprintf("%s/reviews?per_page=%d", path, size), size, func(list []reviewJSON) (int, bool) {
			for i := range list {
				if r, ok := c.review(&list[i]); ok {
					out = append(out, r)
				}
			}
			return len(list), false
		})
	})
	if err != nil || len(out) == 0 {
		return nil, err
	}
	slices.SortFunc(out, func(a, b forges.Review) int { return cmp.Compare(a.ID, b.ID) })
	r := reviewed{Client: c, repository: repository, number: number, list: out}
	for _, find := range []func(context.Context) error{r.official, r.moved, r.threads} {
		if err := find(ctx); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// reviewed are the reviews of a pull request, of which GitHub says less than is needed: the
// rest is asked for one by one.
type reviewed struct {
	*Client

	repository string
	number     int64
	// list has the oldest first.
	list []forges.Review
}

// review returns a review; false if it is none.
func (c *Client) review(j *reviewJSON) (forges.Review, bool) {
	r := forges.Review{ID: j.ID, Author: c.account(j.User), Body: j.Body, At: j.Submitted}
	switch j.State {
	case "APPROVED":
		r.Verdict = forges.Approved
	case "CHANGES_REQUESTED":
		r.Verdict = forges.ChangesRequested
	case "COMMENTED":
		r.Verdict = forges.Remark
	case "DISMISSED":
		// What it was is not told any more. It counts for nothing, and takes the place of those
		// before it.
		r.Verdict, r.Dismissed = forges.ChangesRequested, true
	default:
		return r, false
	}
	// A review whose commit cannot be read is about no commit that we know.
	if commit, err := git.ParseOID(j.Commit); err == nil {
		r.Commit = commit
	}
	return r, true
}

// official finds out which reviews GitHub's rules count: the last one of each author who
// may write. Everybody can write one, and nothing in it says who counts: its
// author_association is not a right.
func (c *reviewed) official(ctx context.Context) error {
	last := map[int64]bool{}
	for i := range slices.Backward(c.list) {
		r := &c.list[i]
		if r.Verdict == forges.Remark || r.Author.ID <= 0 {
			continue
		}
		if last[r.Author.ID] { // a later one of the same author has taken its place
			r.Dismissed = true
			continue
		}
		last[r.Author.ID] = true
		if r.Dismissed {
			continue
		}
		may, err := c.mayWrite(ctx, r)
		if err != nil {
			return err
		}
		r.Official = may
	}
	return nil
}

// mayWrite reports whether the author of a review may write in a repository now.
func (c *reviewed) mayWrite(ctx context.Context, r *forges.Review) (bool, error) {
	path, err := rest.Path(c.repository, "collaborators", r.Author.Login, "permission")
	if err != nil {
		return false, err
	}
	var got struct {
		Permission string    `json:"permission"`
		User       *userJSON `json:"user"`
	}
	err = c.Call(ctx, http.MethodGet, path, nil, &got)
	if errors.Is(err, forges.ErrNotFound) {
		return false, nil
	}
	// Another account may have the name by now.
	return err == nil && got.User != nil && got.User.ID == r.Author.ID && (got.Permission == "write" || got.Permission == "admin"), err
}

// moved takes the commit off reviews that GitHub has moved to the head of a pull request,
// although another change was reviewed: where the protection does not dismiss stale
// approvals, each push takes them along. One that is older than our first status of the
// head cannot be about it, and while there is no status of ours nothing says which are.
// Where stale ones are dismissed, those that are left are about the same change.
func (c *reviewed) moved(ctx context.Context) error {
	j, err := c.rawPull(ctx, c.repository, c.number)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(c.list, func(r forges.Review) bool { return string(r.Commit) == j.Head.SHA && !r.Dismissed }) {
		return nil
	}
	first, err := c.firstOfOurs(ctx, git.OID(j.Head.SHA))
	if err != nil {
		return err
	}
	older := func(r *forges.Review) bool {
		return string(r.Commit) == j.Head.SHA && (first.IsZero() || r.At.Before(first))
	}
	if !slices.ContainsFunc(c.list, func(r forges.Review) bool { return older(&r) }) {
		return nil
	}
	p, err := c.Protection(ctx, c.repository, git.Branch(j.Base.Ref))
	if err != nil && !errors.Is(err, forges.ErrDenied) && !errors.Is(err, forges.ErrNotFound) {
		return err
	}
	for i := range c.list {
		if r := &c.list[i]; older(r) && !p.DismissStale {
			r.Commit, r.Stale = "", true
		}
	}
	return nil
}

// firstOfOurs returns when we wrote the first status for a commit; zero if we wrote none.
func (c *reviewed) firstOfOurs(ctx context.Context, commit git.OID) (first time.Time, err error) {
	self, err := c.Self(ctx)
	if err != nil {
		return first, err
	}
	err = c.statuses(ctx, c.repository, commit, func(j *statusJSON) {
		if j.Creator != nil && j.Creator.ID == self.ID && (first.IsZero() || j.Created.Before(first)) {
			first = j.Created
		}
	})
	return first, err
}

// threads puts the remarks about lines to their reviews.
func (c *reviewed) threads(ctx context.Context) error {
	path, err := rest.Path(c.repository, "pulls", c.number, "comments")
	if err != nil {
		return err
	}
	var remarks []remarkJSON
	err = rest.Shrink(page, func(size int) error {
		remarks = nil
		return rest.List(ctx, c.Client.Client, fmt.Sprintf("%s?per_page=%d", path, size), size, func(list []remarkJSON) (int, bool) {
			remarks = append(remarks, list...)
			return len(list), false
		})
	})
	if err != nil || len(remarks) == 0 {
		return err
	}
	resolved, err := c.resolved(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(remarks, func(a, b remarkJSON) int { return cmp.Compare(a.ID, b.ID) })
	replies := map[int64][]forges.Comment{}
	for _, j := range remarks {
		if j.Reply != 0 {
			replies[j.Reply] = append(replies[j.Reply], forges.Comment{
				ID: j.ID, Author: c.account(j.User), Body: j.Body, Created: j.Created, Updated: j.Updated,
			})
		}
	}
	for _, j := range remarks {
		first := cmp.Or(j.Reply, j.ID)
		i := slices.IndexFunc(c.list, func(r forges.Review) bool { return r.ID == j.Review })
		if i < 0 {
			continue // its review is not sent yet
		}
		c.list[i].Threads = append(c.list[i].Threads, forges.Thread{
			ID: j.ID, Path: j.Path, Line: cmp.Or(j.Line, j.Original), Body: j.Body, Resolved: resolved[first],
			Topic: strconv.FormatInt(first, 10), Replies: replies[first],
		})
	}
	return nil
}

// discussions is the part of a Client that answers in them.
type discussions struct{ c *Client }

// Answer writes a remark in a discussion, which has the number of its first one.
func (d discussions) Answer(ctx context.Context, repository string, number int64, topic, body string) error {
	first, err := strconv.ParseInt(topic, 10, 64)
	if err != nil || first <= 0 {
		return fmt.Errorf("topic %.50q: it is no number of a remark", topic)
	}
	path, err := rest.Path(repository, "pulls", number, "comments", first, "replies")
	if err != nil {
		return err
	}
	return d.c.Call(ctx, http.MethodPost, path, map[string]string{"body": body}, nil)
}

// resolvedJSON has the threads of a pull request as GraphQL does.
type resolvedJSON struct {
	Repository struct {
		Pull struct {
			Threads struct {
				Nodes []struct {
					Resolved bool `json:"isResolved"` //nolint:tagliatelle // GraphQL\'s name
					Comments struct {
						Nodes []struct {
							ID int64 `json:"databaseId"` //nolint:tagliatelle // GraphQL\'s name
						} `json:"nodes"`
					} `json:"comments"`
				} `json:"nodes"`
				Page struct {
					More bool   `json:"hasNextPage"` //nolint:tagliatelle // GraphQL\'s name
					End  string `json:"endCursor"`   //nolint:tagliatelle // GraphQL\'s name
				} `json:"pageInfo"` //nolint:tagliatelle // GraphQL\'s name
			} `json:"reviewThreads"` //nolint:tagliatelle // GraphQL\'s name
		} `json:"pullRequest"` //nolint:tagliatelle // GraphQL\'s name
	} `json:"repository"`
}

// threadsQuery asks for a page of threads, each with its first remark.
const threadsQuery = `query($owner: String!, $name: String!, $number: Int!, $after: String) { repository(owner: $owner, name: $name) {
  pullRequest(number: $number) { reviewThreads(first: 100, after: $after) {
    nodes { isResolved comments(first: 1) { nodes { databaseId } } } pageInfo { hasNextPage endCursor } } } } }`

// resolved returns the first remarks of the threads that a person took as done. The other
// API does not tell.
func (c *reviewed) resolved(ctx context.Context) (map[int64]bool, error) {
	owner, name, _ := strings.Cut(c.repository, "/")
	out := map[int64]bool{}
	var after any
	for range rest.MaxPages {
		got, err := graphQL[resolvedJSON](ctx, c.Client, threadsQuery, map[string]any{
			"owner": owner, "name": name, "number": c.number, "after": after,
		})
		if err != nil {
			return nil, err
		}
		t := &got.Repository.Pull.Threads
		for _, n := range t.Nodes {
			for _, first := range n.Comments.Nodes {
				out[first.ID] = n.Resolved
			}
		}
		if !t.Page.More {
			return out, nil
		}
		after = t.Page.End
	}
	return nil, fmt.Errorf("pull request %d: its remarks have more than %d pages", c.number, rest.MaxPages)
}
