package outside

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

// whole takes an issue from its label to an intent that is cancelled, by comments alone.
func (w *forgeWorld) whole(between func()) {
	w.t.Helper()
	issue := w.open()
	between()
	text := w.hash(issue, "")
	w.say("eve", issue, "/forge approve "+text)
	w.until(issue, "needs the right to write")
	w.say("ada", issue, "> /forge approve "+text)
	w.say("ada", issue, "/forge approve 0123456")
	between()
	w.say("ada", issue, "I have read it.\n\n/forge approve "+text)
	asked := w.until(issue, "/forge answer 1")
	if strings.Contains(asked, "@ada") || strings.Contains(asked, "Closes #1") {
		w.t.Errorf("the question is quoted so that others obey it: %q", asked)
	}
	between()
	w.say("ada", issue, "/forge answer 1 this one")
	former := w.hash(issue, text)
	w.say("ada", issue, "/forge changes "+former)
	w.until(issue, "changes are asked for by the hash of what was read, and in words")
	w.say("ada", issue, "/forge changes "+former+" call it two")
	between()
	hash := w.hash(issue, former)
	w.say("ada", issue, "/forge approve "+hash)
	between()
	w.until(issue, "**executing**")
	w.until(issue, "ada: call it two")
	w.say("ada", issue, "/forge cancel")
	w.until(issue, "**cancelled**")
	w.check(hash)
}

// check reads the journals: there is one intent, and each decision on it is a
// person's, through the gateway and with its comment.
func (w *forgeWorld) check(hash string) {
	w.t.Helper()
	b := w.nats.Connect(w.t)
	list, err := b.Journal.Summaries(wait.Context(w.t), "shop")
	if err != nil || len(list) != 1 {
		w.t.Fatalf("there are %d intents, %v", len(list), err)
	}
	records, _, err := b.Journal.Load(wait.Context(w.t), list[0].Key)
	if err != nil {
		w.t.Fatal(err)
	}
	approved, wished := 0, 0
	for _, r := range records {
		for _, ev := range r.Events {
			if m := forge.As[*forge.RequestChanges](ev.Message); m != nil {
				wished++
				if ev.Actor != "ada" || ev.Via != "gateway" || m.Words != "call it two" || !strings.Contains(ev.Ref, w.repo+"#1 comment ") {
					w.t.Errorf("changes were asked for by %+v: %+v", ev, m)
				}
			}
			if a := forge.As[*forge.Approve](ev.Message); a != nil && a.Plan == hash {
				approved++
				if ev.Actor != "ada" || ev.Via != "gateway" || !strings.HasSuffix(ev.Account, " ada") || !strings.Contains(ev.Ref, w.repo+"#1 comment ") {
					w.t.Errorf("approved by %+v", ev)
				}
			}
		}
	}
	if approved != 1 || wished != 1 {
		w.t.Errorf("it was approved %d times, and changes were asked for %d times", approved, wished)
	}
}

// TestIssueByHooks: hooks alone take an issue to its end, doubled ones as well,
// and there is one intent and one comment.
func TestIssueByHooks(t *testing.T) {
	t.Parallel()
	onForges(t, func(_ *testing.T, w *forgeWorld, fake *forgetest.Fake) {
		if fake != nil {
			fake.Send(forgetest.Doubled)
		}
		w.hooked()
		w.watch(time.Hour)
		w.whole(func() {})
	})
}

// TestIssueBySweep: without a single hook everything happens all the same.
func TestIssueBySweep(t *testing.T) {
	t.Parallel()
	onForges(t, func(_ *testing.T, w *forgeWorld, _ *forgetest.Fake) {
		w.watch(100 * time.Millisecond)
		w.whole(func() {})
	})
}

// TestIssueWithKills: a watcher that ends and another one that begins at every
// step lead to the same.
func TestIssueWithKills(t *testing.T) {
	t.Parallel()
	onForges(t, func(_ *testing.T, w *forgeWorld, fake *forgetest.Fake) {
		stop := w.watch(50 * time.Millisecond)
		w.whole(func() {
			stop()
			if fake != nil { // comments are written, and their answers lost
				part := map[bool]string{false: "/comments", true: "/notes"}[w.dialect == hooks.GitLab]
				fake.Script(forgetest.Fault{
					Method: "POST", Part: part, By: "bot", Status: 502, After: true, Header: http.Header{"Retry-After": {"1"}},
				})
			}
			stop = w.watch(50 * time.Millisecond)
		})
	})
}

// TestMarkOfAnotherIntent: a writer who edits our comment has no other intent
// shown there, and none decided on.
func TestMarkOfAnotherIntent(t *testing.T) {
	t.Parallel()
	f := forgetest.NewFake()
	t.Cleanup(f.Close)
	w := newForgeWorld(t, f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"})
	first, second := w.open(), w.open() // before the only sweep
	stop := w.watch(time.Hour)
	w.until(first, "/forge approve")
	other := w.until(second, "/forge approve")
	stop()
	var list []struct {
		ID   int64
		User struct{ Login string }
	}
	w.as("root1", http.MethodGet, first+"/comments", nil, &list)
	for _, c := range list {
		if c.User.Login == "bot" {
			w.as("bot", http.MethodPatch, fmt.Sprintf("/repos/%s/issues/comments/%d", w.repo, c.ID), object{"body": other}, nil)
		}
	}
	w.say("ada", first, "/forge cancel")
	w.say("ada", second, "/forge status")
	w.watch(time.Hour)
	wait.Until(t, "the other issue is looked at", func() bool { return strings.Contains(w.until(second, "**proposed**"), `"last":`) })
	all, err := w.nats.Connect(t).Journal.Summaries(wait.Context(t), "shop")
	if err != nil || len(all) != 2 || all[0].Status != forge.StatusProposed || all[1].Status != forge.StatusProposed {
		t.Errorf("there are %+v, %v", all, err)
	}
}
