package pulls

import (
	"context"
	"fmt"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
)

const (
	// closeAfter is for how long something has to be stopped before its pull
	// request is closed: a person who stopped the wrong one says retry.
	closeAfter = time.Minute
	// closedWord begins our comment on that, by which it is known that it was done.
	closedWord = "Closed: the "
)

// Stopped says that a person stopped an intent or a task.
type Stopped struct {
	// Status is cancelled or rejected; empty where it goes on.
	Status forge.Status
	// Task is the task that was stopped; empty where the intent was.
	Task forge.TaskID
	// At is when that was. Of an intent it is when something was last decided on it.
	At time.Time
}

// unwanted closes pull requests whose intent or task was stopped.
type unwanted struct{ *Keeper }

// close closes an open pull request whose intent was cancelled or rejected, or whose
// task was, and says so there: otherwise its checks and reviewers go on with it. It
// reports whether it did. When the intent is retried, Open opens the same one again.
//
// It is done once: where our comment is, a person has opened it again, and it is theirs. What
// became of the intent is asked for by the name in the mark if this gateway did not open the pull
// request; whoever can edit that can close it as well. A failure is made up for by a later look.
func (k unwanted) close(ctx context.Context, key pullKey, t *tracked, s *forge.PullRequest) bool {
	ours := s.State == forge.PullOpen || s.State == forge.PullClosed && s.By == k.account(k.self)
	if k.cfg.Stopped == nil || !ours || t.closed {
		return false
	}
	stopped, err := k.cfg.Stopped(ctx, t.to, t.attempt.Task)
	if err == nil && (stopped.Status == "" || k.cfg.Now().Sub(stopped.At) < closeAfter) {
		return false
	}
	done := false
	if err == nil {
		done, err = k.closeAndSay(ctx, key, stopped.words(t.to.Intent))
	}
	if err != nil {
		k.failed(ctx, "close", key.repository, err)
	}
	return done
}

// closeAndSay closes a pull request and writes the comment, unless it is there
// already. It reports whether it did something.
func (k unwanted) closeAndSay(ctx context.Context, key pullKey, words string) (bool, error) {
	list, err := k.cfg.Forge.Comments(ctx, key.repository, forges.OfPull(key.number), time.Time{})
	if err != nil {
		return false, err
	}
	if k.closedBy(list) != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.pulls[key].closed = true
		return false, nil
	}
	if err := k.cfg.Forge.ClosePull(ctx, key.repository, key.number); err != nil {
		return false, err
	}
	p, err := k.cfg.Forge.Pull(ctx, key.repository, key.number)
	if err != nil || p.State == forges.Merged { // a person was faster
		return err == nil, err
	}
	_, err = k.cfg.Forge.Say(ctx, key.repository, forges.OfPull(key.number), words)
	return err == nil, err
}

// words returns our comment on what was stopped. A task is retried with its
// intent, when that has ended.
func (s Stopped) words(id forge.IntentID) string {
	const then = " continues it, and opens this pull request again. If a person opens it by hand, it stays open."
	if s.Task != "" {
		return fmt.Sprintf(closedWord+"task `%s` was %s. When its intent has ended, `pfl-forge retry %s`"+then, s.Task, s.Status, id)
	}
	return fmt.Sprintf(closedWord+"intent `%s` was %s. `pfl-forge retry %[1]s`"+then, id, s.Status)
}

// closedBy returns our comment that says that a pull request was closed; nil if there is none.
func (k unwanted) closedBy(list []forges.Comment) *forges.Comment {
	for i := range list {
		if c := &list[i]; c.Author.ID == k.self.ID && strings.HasPrefix(c.Body, closedWord) {
			return c
		}
	}
	return nil
}

// takeBack has our comment on a pull request that was closed say that it is
// open again, so that it can be closed once more.
func (k unwanted) takeBack(ctx context.Context, repository string, number int64) error {
	list, err := k.cfg.Forge.Comments(ctx, repository, forges.OfPull(number), time.Time{})
	if c := k.closedBy(list); c != nil && err == nil {
		err = k.cfg.Forge.Edit(ctx, repository, forges.OfPull(number), c.ID, "Opened again. It had been closed: "+strings.TrimPrefix(c.Body, "Closed: "))
	}
	return err
}
