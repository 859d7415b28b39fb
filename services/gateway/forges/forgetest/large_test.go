package forgetest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
)

// large is a text in characters of four bytes, and crowd is how many of them
// are more than is read of one answer.
var large = strings.Repeat("\U0001F4A3", 8192)

const crowd = 33

// TestLargeTexts: a stranger who writes long texts, which everybody may, hides nothing: what
// an answer is too large for is asked for in smaller pages, in each list that has texts.
func TestLargeTexts(t *testing.T) {
	t.Parallel()
	for name, d := range dialects {
		t.Run(name, func(t *testing.T) {
			f := forgetest.NewFake()
			t.Cleanup(f.Close)
			w := newWorld(t, d, f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"})
			f.LargePages()
			c, ctx := w.bot(), wait.Context(t)
			w.commit("forge/a", "a.txt", "a\n", true)
			for range crowd {
				w.issue("eve", "spam", large)
			}
			list, err := c.Changed(ctx, w.repo, time.Time{})
			if err != nil || len(list) != crowd {
				t.Errorf("there are %d issues, %v", len(list), err)
			}
			var number int64
			for range crowd { // opened and closed one after the other
				number = int64(w.as("bot", "POST", "/repos/"+w.repo+"/pulls", object{
					"head": "forge/a", "base": "main", "title": "spam", "body": large,
				})["number"].(float64))
				w.as("bot", "PATCH", fmt.Sprintf("/repos/%s/issues/%d", w.repo, number), object{"state": "closed"})
			}
			if p, err := c.FindPull(ctx, w.repo, "forge/a", "main"); err != nil || p.Number != number {
				t.Errorf("the last one is %d, and not %d, %v", p.Number, number, err)
			}
			if list, err := c.ChangedPulls(ctx, w.repo, "bot", time.Time{}); err != nil || len(list) != crowd {
				t.Errorf("there are %d pull requests, %v", len(list), err)
			}
			for range crowd {
				w.review("eve", number, "COMMENT", large, object{"path": "a.txt", "body": large, "new_position": 1})
			}
			w.review("ada", number, "REQUEST_CHANGES", "no")
			reviews, err := c.Reviews(ctx, w.repo, number)
			if err != nil || len(reviews) != crowd+1 || reviews[crowd].Verdict != forges.ChangesRequested || len(reviews[0].Threads) != 1 {
				t.Errorf("there are %d reviews, %v", len(reviews), err)
			}
			if name != "gitea" { // which has no pages of comments
				for range crowd {
					w.say("eve", number, large)
				}
				want := crowd
				if d.summaries {
					want += crowd + 1
				}
				if list, err := c.Comments(ctx, w.repo, forges.OfPull(number), time.Time{}); err != nil || len(list) != want {
					t.Errorf("there are %d comments, %v", len(list), err)
				}
			}
			// Nothing is smaller than one alone.
			w.review("eve", number, "COMMENT", strings.Repeat(large, crowd))
			if _, err := c.Reviews(ctx, w.repo, number); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
				t.Errorf("one that is too large alone: %v", err)
			}
		})
	}
}
