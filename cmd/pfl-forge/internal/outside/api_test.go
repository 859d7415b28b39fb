package outside

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// TestAsking submits the same and other things under one key, lists and shows them.
func TestAsking(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	w.decides(quota.Limits{})
	const wish = `{"title": "Fix it", "body": "It breaks.", "labels": ["bug"]}`
	for _, who := range []string{"ada", "scanner"} {
		made := w.request(who, http.MethodPost, intents, wish, "Idempotency-Key", "finding-1")
		made.wants(t, "first", http.StatusCreated, `"result":"new"`, `"intent":"finding-1-`)
		w.request(who, http.MethodPost, intents, wish, "Idempotency-Key", `"finding-1"`).
			wants(t, "again", http.StatusOK, `"result":"known"`, made.body["intent"].(string))
		w.request(who, http.MethodPost, intents, `{"title": "Other", "body": "x"}`, "Idempotency-Key", "finding-1").
			wants(t, "other content", http.StatusConflict, `"field":"Idempotency-Key"`, "was used for another intent")
		shown := w.request(who, http.MethodGet, made.header.Get("Location"), "")
		shown.wants(t, "show", http.StatusOK, `"body":"It breaks."`, `"event_id":"finding-1#`)
		if who == "ada" && (shown.body["source"] != "human" || fmt.Sprint(shown.body["requesters"]) != "[map[name:ada proven:true]]") {
			t.Errorf("asked by %v of %v", shown.body["requesters"], shown.body["source"])
		}
		if who == "scanner" && shown.body["source"] != "system" {
			t.Errorf("a system's is of source %v", shown.body["source"])
		}
	}
	first := w.request("viewer", http.MethodGet, intents+"?limit=1&label=bug", "")
	first.wants(t, "page", http.StatusOK)
	next, _ := first.body["next"].(string)
	rest := w.request("viewer", http.MethodGet, intents+"?after="+next, "")
	if list, _ := rest.body["intents"].([]any); next == "" || len(list) != 1 || rest.body["next"] != nil {
		t.Errorf("pages: %s; %s", first.text, rest.text)
	}
	w.request("ada", http.MethodPost, intents, `{"id": "mine", "title": "t", "body": "b"}`).wants(t, "own id", http.StatusCreated, `"intent":"mine"`)
	w.request("every", http.MethodGet, "/api/v1/projects/other/intents", "").wants(t, "another project", http.StatusOK, `"intents":[]`)
}

// TestDeciding approves by hash, as a person, through the gateway: the journal has both.
func TestDeciding(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	w.decides(quota.Limits{})
	path, plan := w.proposed("risky")
	w.request("bob", http.MethodPost, path+"/approve", `{"plan": "000000000000"}`).wants(t, "another hash", http.StatusConflict, "errors")
	w.request("ada", http.MethodPost, path+"/edit", `{"risk": "huge"}`).wants(t, "no risk", http.StatusBadRequest, `"field":"risk"`, "low, med or high")
	w.request("bob", http.MethodPost, path+"/approve", `{}`).wants(t, "no hash", http.StatusBadRequest, `"field":"plan"`)
	w.request("ada", http.MethodPost, path+"/answer", `{"index": 0, "answer": "x"}`).wants(t, "no question", http.StatusConflict)
	w.request("ada", http.MethodPost, path+"/pause", `{"reason": "lunch"}`).wants(t, "pause", http.StatusOK, `"result":"applied"`)
	w.request("ada", http.MethodPost, path+"/resume", "").wants(t, "resume", http.StatusOK)
	approved := w.request("bob", http.MethodPost, path+"/approve", `{"plan": "`+plan+`"}`, "Idempotency-Key", "k")
	approved.wants(t, "approve", http.StatusOK, `"result":"applied"`)
	w.request("bob", http.MethodPost, path+"/approve", `{"plan": "`+plan+`"}`, "Idempotency-Key", "k").wants(t, "again", http.StatusOK, `"result":"known"`)
	w.request("ada", http.MethodPost, path+"/cancel", `{"reason": "enough"}`).wants(t, "cancel", http.StatusOK)
	w.request("ada", http.MethodPost, intents+"/nothing/cancel", "").wants(t, "no intent", http.StatusNotFound, "there is no intent")
	ev := w.journaled(path, func(m forge.Message) bool { return forge.As[*forge.Approve](m) != nil })
	if ev.Actor != "bob" || ev.Via != "gateway" || ev.Account != "token bob" || ev.Ref != "request "+approved.header.Get("Request-Id") {
		t.Errorf("journaled is %+v", ev)
	}
}

// TestAskingForChanges has a plan made again by its hash, with words, as a
// person, through the gateway: the analyzer gets them, the approval of the
// former plan counts for nothing, and the first wish about it wins.
func TestAskingForChanges(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	wished := make(chan forge.Command, 1)
	w.analysis = func(c *forge.Command) *forge.Analysis {
		title := "one"
		if c.Wish != nil {
			wished <- *c
			title = c.Wish.Words
		}
		return &forge.Analysis{Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: title}}}
	}
	w.decides(quota.Limits{})
	path, plan := w.proposed("again")
	ask := func(who, hash, words string, headers ...string) answer {
		return w.request(who, http.MethodPost, path+"/request_changes", `{"hash": "`+hash+`", "words": "`+words+`"}`, headers...)
	}
	for who, status := range map[string]int{"viewer": http.StatusForbidden, "scanner": http.StatusForbidden, "banker": http.StatusForbidden} {
		ask(who, plan, "shorter").wants(t, who, status)
	}
	ask("bob", "000000000000", "shorter").wants(t, "another hash", http.StatusConflict, "000000000000 is not what waits now, which is plan "+plan)
	ask("bob", "", "shorter").wants(t, "no hash", http.StatusBadRequest, `"field":"hash"`)
	ask("bob", plan, " ").wants(t, "no words", http.StatusBadRequest, `"field":"words"`)
	ask("bob", plan, strings.Repeat("w", 20<<10)).wants(t, "many words", http.StatusConflict, `"field":"words"`, "at most 16384 are allowed")
	w.request("bob", http.MethodPost, path+"/request_changes", `{"hash": "`+plan+`", "words": "w", "task": "no task"}`).
		wants(t, "no task", http.StatusBadRequest, `"field":"task"`)
	done := ask("bob", plan, "shorter", "Idempotency-Key", "k")
	done.wants(t, "ask", http.StatusOK, `"result":"applied"`)
	ask("bob", plan, "shorter", "Idempotency-Key", "k").wants(t, "again", http.StatusOK, `"result":"known"`)
	ask("bob", plan, "shorter").wants(t, "again, under another name", http.StatusOK, `"result":"known"`)
	ask("ada", plan, "longer").wants(t, "the second", http.StatusConflict, `\"bob\" asked for changes of `+plan)
	w.request("ada", http.MethodPost, path+"/approve", `{"plan": "`+plan+`"}`).wants(t, "a late approval", http.StatusConflict)
	c := wait.For(t, wished)
	if c.Wish.Person != "bob" || c.Wish.Words != "shorter" {
		t.Errorf("the analyzer gets %+v in %s", c.Wish, c.Attempt)
	}
	shown := w.request("ada", http.MethodGet, path, "")
	wait.Until(t, "the next plan waits", func() bool {
		shown = w.request("ada", http.MethodGet, path, "")
		return shown.body["waiting"] == "approval" && shown.body["plan"] != plan
	})
	shown.wants(t, "shown", http.StatusOK, `"what":"request_changes","by":"bob","via":"gateway"`, `"plan":"`+plan+`"`, `"reason":"shorter"`,
		`"rule":"changes-requested"`)
	ev := w.journaled(path, func(m forge.Message) bool { return forge.As[*forge.RequestChanges](m) != nil })
	if ev.Actor != "bob" || ev.Via != "gateway" || ev.Account != "token bob" || ev.Ref != "request "+done.header.Get("Request-Id") {
		t.Errorf("journaled is %+v", ev)
	}
}

// journaled returns the first event of an intent's journal that is like one.
func (w *world) journaled(path string, like func(forge.Message) bool) forge.Event {
	w.t.Helper()
	id := path[strings.LastIndexByte(path, '/')+1:]
	records, _, err := w.bus.Journal.Load(wait.Context(w.t), forge.Key{Project: "shop", Intent: forge.IntentID(id)})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range records {
		for _, ev := range r.Events {
			if like(ev.Message) {
				return ev
			}
		}
	}
	w.t.Fatalf("%s has no such event", path)
	return forge.Event{}
}

// TestApprovalsAtOnce has two people approve at the same moment, twice each:
// all are answered, and the journal counts one approval.
func TestApprovalsAtOnce(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	w.decides(quota.Limits{})
	path, plan := w.proposed("race")
	results := make(chan string, 4)
	var people sync.WaitGroup
	for _, who := range []string{"bob", "bob", "ada", "ada"} {
		people.Go(func() {
			a := w.request(who, http.MethodPost, path+"/approve", `{"plan": "`+plan+`"}`)
			results <- fmt.Sprint(a.status, " ", a.body["result"])
		})
	}
	people.Wait()
	close(results)
	applied := 0
	for r := range results {
		if r == "200 applied" {
			applied++
		} else if !slices.Contains([]string{"200 known", "409 <nil>"}, r) {
			t.Errorf("answered is %s", r)
		}
	}
	if applied != 1 {
		t.Errorf("%d of the approvals were applied", applied)
	}
}

// TestNoRunner: without a runner nothing is taken, and what was asked for does
// not appear when one comes.
func TestNoRunner(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	for _, ask := range []struct{ method, path, body string }{
		{http.MethodPost, intents, `{"title": "t", "body": "b"}`},
		{http.MethodGet, intents, ""},
		{http.MethodGet, intents + "/a", ""},
		{http.MethodPost, intents + "/a/cancel", ""},
	} {
		a := w.request("ada", ask.method, ask.path, ask.body)
		want := "no runner is up: nothing was done"
		if ask.method == http.MethodGet {
			want = "no runner is up to answer it: ask again"
		}
		a.wants(t, ask.method+" "+ask.path, http.StatusServiceUnavailable, want)
		if a.header.Get("Retry-After") == "" {
			t.Error("it is not said when to ask again")
		}
	}
	w.decides(quota.Limits{})
	wait.Until(t, "the runner answers", func() bool { return w.request("ada", http.MethodGet, intents, "").status == http.StatusOK })
	w.request("ada", http.MethodGet, intents, "").wants(t, "list", http.StatusOK, `"intents":[]`)
}

// TestQuota: what a quota has no room for may come later.
func TestQuota(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	w.decides(quota.Limits{Project: 1, System: 1})
	w.request("scanner", http.MethodPost, intents, `{"title": "t", "body": "b"}`).wants(t, "the first", http.StatusCreated)
	a := w.request("scanner", http.MethodPost, intents, `{"title": "u", "body": "b"}`)
	a.wants(t, "the second", http.StatusTooManyRequests)
	if a.header.Get("Retry-After") != "60" {
		t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
	}
}

// TestKilledBetweenStoreAndAnswer: a gateway that ends before it answers, asked
// again with the same key, has asked for one intent.
func TestKilledBetweenStoreAndAnswer(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	w.decides(quota.Limits{})
	const wish = `{"title": "Once", "body": "Only."}`
	settings := gateway.Settings{Listen: "127.0.0.1:0", Tokens: w.file}
	stop, other := w.gateway(settings)
	ctx, cancel := context.WithCancel(wait.Context(t))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, other+intents, strings.NewReader(wish))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.secrets["ada"])
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", "once")
	changed, err := w.nats.Connect(t).Journal.Summaries(ctx, "shop")
	if err != nil || len(changed) > 0 {
		t.Fatal(changed, err)
	}
	go func() {
		wait.Poll(ctx, func() bool { // as soon as it is stored, the answer is lost
			list, err := w.bus.Journal.Summaries(ctx, "shop")
			return err == nil && len(list) > 0
		})
		cancel()
	}()
	if resp, err := http.DefaultClient.Do(r); err == nil {
		_ = resp.Body.Close() // the answer was faster
	}
	stop()
	w.request("ada", http.MethodPost, intents, wish, "Idempotency-Key", "once").wants(t, "again", http.StatusOK, `"result":"known"`)
	list, err := w.bus.Journal.Summaries(wait.Context(t), "shop")
	if err != nil || len(list) != 1 {
		t.Errorf("there are %d intents, %v", len(list), err)
	}
}
