package gitea

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

// Gitea has no merge queue, but merges when the checks have passed. It does not
// note for which head that was asked, and neither does a push end it: whoever
// has it do so looks again, and takes it back (Dequeue).

// queued is the part of a Client that has Gitea merge by itself.
type queued struct{ c *Client }

// The entries of a timeline that say that it was asked for, and taken back.
const (
	scheduled = "pull_scheduled_merge"
	cancelled = "pull_cancel_scheduled_merge"
)

// Queue returns whether a pull request is merged when its checks have passed:
// nothing but its timeline says so.
func (l queued) Queue(ctx context.Context, repository string, number int64, _ git.Branch) (q forges.Queue, err error) {
	path, err := rest.Path(repository, "issues", number, "timeline")
	if err != nil {
		return q, err
	}
	err = rest.Shrink(page, func(size int) error {
		q = forges.Queue{}
		return rest.Pages(size, func(n int) (int, error) {
			var list []struct {
				ID   int64    `json:"id"`
				Type string   `json:"type"`
				User userJSON `json:"user"`
			}
			err := l.c.Call(ctx, http.MethodGet, fmt.Sprintf("%s?limit=%d&page=%d", path, size, n), nil, &list)
			for _, j := range list {
				switch j.Type {
				case scheduled:
					q = forges.Queue{In: true}
				case cancelled:
					q = forges.Queue{Out: &forges.Removal{
						ID: fmt.Sprint(j.ID), Cause: forges.CauseOther, Reason: "the merge was cancelled", By: j.User.Login,
					}}
				}
			}
			return len(list), err
		})
	})
	return q, err
}

// Enqueue has Gitea merge when the checks have passed, in the way that is the repository's default.
func (l queued) Enqueue(ctx context.Context, repository string, number int64, _ git.Branch, head git.OID) error {
	path, err := rest.Path(repository)
	if err != nil {
		return err
	}
	var r struct {
		Style string `json:"default_merge_style"`
	}
	if err := l.c.Call(ctx, http.MethodGet, path, nil, &r); err != nil {
		return err
	}
	// What is only asked to be merged later is not compared with the head by
	// Gitea: it is here, and in the merge itself by Gitea.
	p, err := l.c.Pull(ctx, repository, number)
	if err != nil {
		return err
	}
	if p.Head != head {
		return &forges.RefusedError{Code: http.StatusConflict, Reason: "its head is another commit"}
	}
	q, err := l.Queue(ctx, repository, number, p.Base)
	if err != nil || q.In {
		return err
	}
	in, err := l.c.order(ctx, repository, number, head, cmp.Or(r.Style, "merge"))
	if err != nil {
		return err
	}
	in["merge_when_checks_succeed"] = true
	return l.c.Call(ctx, http.MethodPost, rest.Join(path, "pulls", number, "merge"), in, nil)
}

// Dequeue takes that back.
func (l queued) Dequeue(ctx context.Context, repository string, number int64) error {
	path, err := rest.Path(repository, "pulls", number, "merge")
	if err != nil {
		return err
	}
	if err := l.c.Call(ctx, http.MethodDelete, path, nil, nil); !errors.Is(err, forges.ErrNotFound) {
		return err
	}
	return nil
}
