package forgetest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/reviews"
)

// reviewed opens a pull request and has ada ask for changes there, with a
// remark about a.txt. It returns its number.
func (w *world) reviewed(c interface{ forges.Pulls }) int64 {
	w.t.Helper()
	w.commit("forge/a", "a.txt", "a\n", true)
	p, err := c.OpenPull(wait.Context(w.t), w.repo, "forge/a", "main", forges.PullText{Title: "T", Body: "B"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.review("ada", p.Number, "REQUEST_CHANGES", "please explain", object{"path": "a.txt", "body": "why this?", "new_position": 1})
	return p.Number
}

// thread returns the remark that ada's review has.
func (w *world) thread(c interface{ forges.Pulls }, n int64) forges.Thread {
	w.t.Helper()
	list, err := c.Reviews(wait.Context(w.t), w.repo, n)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range list {
		if r.Author.Login == "ada" && len(r.Threads) > 0 {
			return r.Threads[0]
		}
	}
	w.t.Fatalf("ada has no remark in %+v", list)
	return forges.Thread{}
}

// TestAnswers: an answer is in the discussion of its remark, whatever was pushed since,
// says whose it is, and resolves nothing; it is no review that decides, nor a remark of
// ada's. Where the forge has no way to answer in a discussion, the thread has no topic.
func TestAnswers(t *testing.T) {
	t.Parallel()
	worlds(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		c, ctx := w.bot(), wait.Context(t)
		n := w.reviewed(c)
		before := w.thread(c, n)
		if before.Topic == "" {
			if err := c.Answer(ctx, w.repo, n, "1", "x"); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("without a topic: %v", err)
			}
			return
		}
		later := w.commit("forge/a", "a.txt", "b\n", false) // the line is another one
		wait.Until(t, "the forge sees what was pushed", func() bool {
			p, err := c.Pull(ctx, w.repo, n)
			return err == nil && p.Head == later
		})
		if err := c.Answer(ctx, w.repo, n, before.Topic, "Reworked."); err != nil {
			t.Fatal(err)
		}
		got := w.thread(c, n)
		if got.ID != before.ID || got.Body != before.Body || got.Resolved || got.Topic != before.Topic || len(got.Replies) != 1 ||
			got.Replies[0].Body != "Reworked." || got.Replies[0].Author.Login != "bot" || got.Replies[0].ID == got.ID {
			t.Errorf("answered it is %+v", got)
		}
		list, err := c.Reviews(ctx, w.repo, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			if r.Author.Login == "bot" && r.Verdict != forges.Remark || r.Author.Login == "ada" && (r.Verdict != forges.ChangesRequested || len(r.Threads) != 1) {
				t.Errorf("after the answer there is the review %+v", r)
			}
		}
		for _, topic := range []string{"", "1/../../../issues/1", "..", "%2e", strings.Repeat("1", 100), "999999"} {
			if err := c.Answer(ctx, w.repo, n, topic, "x"); err == nil {
				t.Errorf("answered in %q", topic)
			}
		}
	})
}

// TestAnswersFail: what may go wrong with an answer is told apart: come again, we may not,
// it is gone. One whose answer was lost is there. Gitea has no answers in discussions.
func TestAnswersFail(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"github", "gitlab"} {
		t.Run(name, func(t *testing.T) {
			f := forgetest.NewFake()
			t.Cleanup(f.Close)
			w := newWorld(t, dialects[name], f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"})
			n := w.reviewed(w.bot())
			thread := w.thread(w.bot(), n)
			answer := func(faults ...forgetest.Fault) error {
				f.Script(faults...)
				return w.bot().Answer(wait.Context(t), w.repo, n, thread.Topic, fmt.Sprint("at ", time.Now()))
			}
			var parked *forges.ParkedError
			if err := answer(forgetest.Fault{Method: "POST", Status: 502}); !errors.As(err, &parked) || len(w.thread(w.bot(), n).Replies) > 0 {
				t.Errorf("away: %v", err)
			}
			if err := answer(forgetest.Fault{Method: "POST", Status: 403}); !errors.Is(err, forges.ErrDenied) {
				t.Errorf("not allowed: %v", err)
			}
			if err := answer(forgetest.Fault{Method: "POST", Status: 502, After: true}); !errors.As(err, &parked) || len(w.thread(w.bot(), n).Replies) != 1 {
				t.Errorf("lost: %v, %+v", err, w.thread(w.bot(), n))
			}
			f.Reviews(w.repo, n, func(l reviews.List) { l.Remove("a.txt") })
			if err := answer(); !isNotFound(err) {
				t.Errorf("gone: %v", err)
			}
		})
	}
}
