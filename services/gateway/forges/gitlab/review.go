package gitlab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

// GitLab has no list of reviews. It has the accounts that approve now, the state of each reviewer,
// and, as notes that it alone can write, when each of them approved, took that back, or asked for
// changes.
type (
	// approvalsJSON has the approvals that hold now. Those that a push has
	// taken away are not in it.
	approvalsJSON struct {
		By []struct {
			User *userJSON `json:"user"`
			// At is not there in older instances.
			At time.Time `json:"approved_at"`
		} `json:"approved_by"`
	}
	// reviewerJSON has the state of an account that was asked for a review:
	// requested_changes is one of several.
	reviewerJSON struct {
		User  *userJSON `json:"user"`
		State string    `json:"state"`
	}
	// discussionJSON is a remark with its answers, or a single note. Whether it
	// is resolved, each of its notes says.
	discussionJSON struct {
		ID    string     `json:"id"`
		Notes []noteJSON `json:"notes"`
	}
	// versionJSON is a head that a merge request had, since when.
	versionJSON struct {
		Head string `json:"head_commit_sha"`
		// Patch is the same for the same change on another base; older instances have none.
		Patch   string    `json:"patch_id_sha"`
		Created time.Time `json:"created_at"`
	}
)

// verdicts are the notes that say what an author decided; none is for what they took back.
var verdicts = map[string]forges.Verdict{
	"approved this merge request":   forges.Approved,
	"requested changes":             forges.ChangesRequested,
	"unapproved this merge request": "",
}

// changesAsked is the state of a reviewer who asks for changes.
const changesAsked = "requested_changes"

// reviewed has all that makes reviews of a merge request. What each part tells is put together by
// complete, and nothing is decided before that.
type reviewed struct {
	*Client

	// project and path are those of the merge request.
	project, path string
	// approve has those who approve now, by their number.
	approve map[int64]forges.Review
	// states has the state of each reviewer; nil if this instance does not tell.
	states map[int64]reviewerJSON
	// versions has the newest first.
	versions []versionJSON
	// said are comments, whose words go to the decision of their author, and list the reviews.
	said []noteJSON
	list []forges.Review
}

// Reviews returns the reviews of a merge request, the oldest first.
func (c *Client) Reviews(ctx context.Context, repository string, number int64) ([]forges.Review, error) {
	project, err := c.path(ctx, repository)
	if err != nil {
		return nil, err
	}
	r := reviewed{Client: c, project: project, path: rest.Join(project, "merge_requests", number)}
	for _, do := range []func(context.Context) error{r.readVersions, r.readApprovals, r.readStates, r.readNotes, r.complete, r.official} {
		if err := do(ctx); err != nil {
			return nil, err
		}
	}
	return r.list, nil
}

// readVersions reads the heads that there were. A version is made a moment after its push: what is
// decided in between is about the one before.
func (r *reviewed) readVersions(ctx context.Context) error {
	return rest.List(ctx, r.Client.Client, fmt.Sprintf("%s/versions?per_page=%d", r.path, page), page, func(list []versionJSON) (int, bool) {
		r.versions = append(r.versions, list...)
		slices.SortStableFunc(r.versions, func(a, b versionJSON) int { return b.Created.Compare(a.Created) })
		return len(list), false
	})
}

// readApprovals reads who approves now. Where the project says so, a push has emptied the list.
func (r *reviewed) readApprovals(ctx context.Context) error {
	var got approvalsJSON
	err := r.Call(ctx, http.MethodGet, r.path+"/approvals", nil, &got)
	r.approve = map[int64]forges.Review{}
	for _, a := range got.By {
		if a.User != nil && a.User.ID > 0 {
			r.approve[a.User.ID] = forges.Review{Author: r.account(a.User), Verdict: forges.Approved, At: a.At}
		}
	}
	return err
}

// readStates reads the states of reviewers. Instances before 16.9 know no requests for changes.
func (r *reviewed) readStates(ctx context.Context) error {
	r.states = map[int64]reviewerJSON{}
	err := rest.List(ctx, r.Client.Client, fmt.Sprintf("%s/reviewers?per_page=%d", r.path, page), page, func(list []reviewerJSON) (int, bool) {
		for _, j := range list {
			if j.User != nil && j.User.ID > 0 {
				r.states[j.User.ID] = j
			}
		}
		return len(list), false
	})
	if errors.Is(err, forges.ErrNotFound) {
		r.states, err = nil, nil
	}
	return err
}

// readNotes makes reviews of the notes by GitLab itself, and remarks of those that wait to be
// resolved. What is internal is left out.
func (r *reviewed) readNotes(ctx context.Context) error {
	var notes []noteJSON
	var of map[int64]*discussionJSON
	err := rest.Shrink(page, func(size int) error {
		notes, of = nil, map[int64]*discussionJSON{}
		return rest.List(ctx, r.Client.Client, fmt.Sprintf("%s/discussions?per_page=%d", r.path, size), size, func(list []discussionJSON) (int, bool) {
			for i := range list {
				notes = append(notes, list[i].Notes...)
				for _, n := range list[i].Notes {
					of[n.ID] = &list[i]
				}
			}
			return len(list), false
		})
	})
	slices.SortFunc(notes, func(a, b noteJSON) int { return cmp.Compare(a.ID, b.ID) })
	notes = slices.CompactFunc(notes, func(a, b noteJSON) bool { return a.ID == b.ID })
	for i := range notes {
		j := &notes[i]
		v, decides := verdicts[strings.TrimSpace(j.Body)]
		review := forges.Review{ID: j.ID, Author: r.account(j.Author), Verdict: v, At: j.Created}
		switch {
		case j.hidden() || j.Author == nil:
		case j.System && decides:
			r.list = append(r.list, review)
		case j.System:
		case j.Resolvable:
			review.Verdict, review.Threads = forges.Remark, []forges.Thread{r.thread(j, of[j.ID])}
			r.list = append(r.list, review)
		default:
			r.said = append(r.said, *j)
		}
	}
	return err
}

// thread returns a note of a discussion as a remark. One about the whole has no
// position, and so no path.
func (r *reviewed) thread(j *noteJSON, in *discussionJSON) forges.Thread {
	t := forges.Thread{ID: j.ID, Body: j.Body, Resolved: j.Resolved, Topic: in.ID}
	for i := range in.Notes[1:] {
		if n := &in.Notes[i+1]; !n.System && n.Author != nil {
			t.Replies = append(t.Replies, r.comment(n))
		}
	}
	if p := j.Position; p != nil {
		t.Path, t.Line = cmp.Or(p.Path, p.OldPath), cmp.Or(p.Line, p.OldLine)
	}
	return t
}

// discussions is the part of a Client that answers in them.
type discussions struct{ c *Client }

// Answer writes a remark in a discussion. A line that begins with a slash and a command of GitLab's
// would be carried out; our texts have none.
func (d discussions) Answer(ctx context.Context, repository string, number int64, topic, body string) error {
	if topic == "" || len(topic) > 64 || strings.Trim(topic, "0123456789abcdefghijklmnopqrstuvwxyz") != "" {
		return fmt.Errorf("topic %.50q: it is no name of a discussion", topic)
	}
	project, err := d.c.path(ctx, repository)
	if err != nil {
		return err
	}
	path := rest.Join(project, "merge_requests", number, "discussions", topic, "notes")
	return d.c.Call(ctx, http.MethodPost, path, map[string]string{"body": body}, nil)
}

// complete finds out which of the reviews hold still, adds those of which there
// is no note, and puts the words of each author to the last one.
func (r *reviewed) complete(context.Context) error {
	last := map[int64]int{} // the last decision of each author, by its place
	for i := range r.list {
		v := &r.list[i]
		if v.Verdict == forges.Remark {
			continue
		}
		if before, there := last[v.Author.ID]; there {
			r.list[before].Dismissed = true
		}
		last[v.Author.ID] = i
		v.Dismissed = !r.holds(v)
	}
	for id, v := range r.approve {
		if i, there := last[id]; r.holds(&v) && (!there || r.list[i].Verdict != forges.Approved) {
			last[id] = len(r.list)
			r.list = append(r.list, v)
		}
	}
	for id, j := range r.states {
		if i, there := last[id]; j.State == changesAsked && (!there || r.list[i].Verdict != forges.ChangesRequested) {
			last[id] = len(r.list)
			r.list = append(r.list, forges.Review{Author: r.account(j.User), Verdict: forges.ChangesRequested})
		}
	}
	for i := range r.list {
		r.about(&r.list[i])
	}
	for id, i := range last {
		r.words(id, i)
	}
	// One that was taken back says nothing, and remarks of those who decided are with that.
	r.list = slices.DeleteFunc(r.list, func(v forges.Review) bool {
		_, decided := last[v.Author.ID]
		return v.Verdict == "" || v.Verdict == forges.Remark && decided && len(v.Threads) == 0
	})
	slices.SortStableFunc(r.list, func(a, b forges.Review) int {
		return cmp.Or(timeless(&a)-timeless(&b), a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
	return nil
}

// timeless sorts reviews without a time behind the others: a list has them, so
// they hold now, whatever their authors decided before.
func timeless(v *forges.Review) int {
	if v.At.IsZero() {
		return 1
	}
	return 0
}

// holds reports whether a decision is that of its author now: whoever asks for changes does not
// approve, whatever is in the list of those who do. A note alone decides nothing where a list says
// otherwise: it tells when a decision was made, and the list that it still is.
func (r *reviewed) holds(v *forges.Review) bool {
	asks := r.states[v.Author.ID].State == changesAsked
	switch v.Verdict {
	case forges.Approved:
		_, does := r.approve[v.Author.ID]
		return does && !asks
	case forges.ChangesRequested:
		return asks || r.states == nil
	default:
		return false
	}
}

// about finds the commit that a review is about: the head at that time, since GitLab does not note
// one. Without a time it is about no commit that we know.
func (r *reviewed) about(v *forges.Review) {
	i := slices.IndexFunc(r.versions, func(j versionJSON) bool { return !j.Created.After(v.At) })
	v.Stale = true
	if i < 0 || v.At.IsZero() {
		return
	}
	at, now := &r.versions[i], &r.versions[0]
	if commit, err := git.ParseOID(at.Head); err == nil {
		v.Commit = commit
		v.Stale = at.Head != now.Head && (at.Patch == "" || at.Patch != now.Patch)
	}
}

// words puts the comments of an author, since the head came that a decision is about, and their
// remarks to that decision.
func (r *reviewed) words(id int64, i int) {
	v := &r.list[i]
	var since time.Time
	if at := slices.IndexFunc(r.versions, func(j versionJSON) bool { return !j.Created.After(v.At) }); at >= 0 {
		since = r.versions[at].Created
	}
	var words []string
	for k := range r.said {
		if j := &r.said[k]; j.Author.ID == id && !j.Created.Before(since) {
			words = append(words, strings.TrimSpace(j.Body))
		}
	}
	v.Body = strings.Join(words, "\n\n")
	for k := range r.list {
		if t := &r.list[k]; k != i && t.Author.ID == id && t.Verdict == forges.Remark {
			v.Threads, t.Threads = append(v.Threads, t.Threads...), nil
		}
	}
}

// official finds out whose decisions count: those who may write now, as on other forges. Who may
// approve is a matter of editions and rules, and nothing in an approval says who counts.
func (r *reviewed) official(ctx context.Context) error {
	for i := range r.list {
		v := &r.list[i]
		if v.Verdict == forges.Remark || v.Dismissed || v.Author.ID <= 0 {
			continue
		}
		level, err := (members{r.Client}).level(ctx, r.project, v.Author.ID)
		if err != nil {
			return err
		}
		v.Official = level >= developer
	}
	return nil
}
