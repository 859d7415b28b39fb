package outside

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestConsoleStale: a plan that changed since the page was made is not approved
// by it, which says what changed and who did it.
func TestConsoleStale(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	path, plan := w.proposed("stale")
	bob := w.signIn("bob")
	action, approve := bob.get("/console/inbox").form(t, path, "approve")
	_, reject := bob.get("/console/inbox").form(t, path, "reject")
	w.request("ada", http.MethodPost, path+"/edit", `{"body": "Do something else."}`).wants(t, "edit", http.StatusOK)
	now := ""
	wait.Until(t, "there is another plan", func() bool {
		shown := w.request("ada", http.MethodGet, path, "")
		now, _ = shown.body["plan"].(string)
		return shown.body["waiting"] == "approval" && now != plan
	})
	for name, form := range map[string]url.Values{"approve": approve, "reject": reject} {
		p := bob.do(http.MethodPost, action, form)
		p.wants(t, name, http.StatusConflict, "Not done: it has changed since you saw it", plan, now, "<strong><bdi>ada</bdi></strong>", "edit")
	}
	bob.get(consolePath(path)).wants(t, "its page", http.StatusOK,
		"<bdi>ada</bdi> edited <code>body</code> after it was asked for", "edit: <code>body</code>", "not begun", "Nothing has been changed yet.")
	forged := url.Values{"seen": {strings.Replace(approve.Get("seen"), plan, now, 1)}, "decision": {"approve"}, "key": {"k"}}
	bob.do(http.MethodPost, action, forged).wants(t, "their own word that they saw it", http.StatusSeeOther)
}

// TestConsoleTwoPeople has two people approve what both see, at the same
// moment: one counts, and the other is told whose.
func TestConsoleTwoPeople(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	path, _ := w.proposed("two")
	type form struct {
		b      *browser
		action string
		fields url.Values
	}
	var forms []form
	for _, who := range []string{"bob", "ada"} {
		b := w.signIn(who)
		action, fields := b.get("/console/inbox").form(t, path, "approve")
		forms = append(forms, form{b, action, fields})
	}
	answers := make([]page, len(forms))
	var people sync.WaitGroup
	for i, f := range forms {
		people.Go(func() { answers[i] = f.b.do(http.MethodPost, f.action, f.fields) })
	}
	people.Wait()
	counted := 0
	for i, p := range answers {
		if p.status == http.StatusSeeOther {
			counted++
			continue
		}
		other := []string{"ada", "bob"}[i]
		p.wants(t, "the other", http.StatusConflict, "<strong><bdi>"+other+"</bdi></strong>", "approve")
	}
	if counted != 1 {
		t.Errorf("%d counted: %+v", counted, answers)
	}
	// Sent again by the one whose decision counted, it counts once.
	for i, p := range answers {
		if p.status == http.StatusSeeOther {
			forms[i].b.do(http.MethodPost, forms[i].action, forms[i].fields).wants(t, "again", http.StatusOK, "It was done")
		}
	}
}

// TestConsoleTwice: a form that is sent four times at the same moment, as by an
// impatient person, counts once.
func TestConsoleTwice(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	path, _ := w.proposed("twice")
	ada := w.signIn("ada")
	action, change := ada.get("/console/inbox").form(t, path, "change")
	change.Set("text", "Once.")
	var sent sync.WaitGroup
	for range 4 {
		sent.Go(func() { (&browser{w: w, cookie: ada.cookie}).do(http.MethodPost, action, change) })
	}
	sent.Wait()
	edits := 0
	shown := w.request("ada", http.MethodGet, path, "")
	for _, d := range shown.body["decisions"].([]any) {
		if d.(map[string]any)["what"] == "edit" {
			edits++
		}
	}
	if edits != 1 || shown.body["body"] != "Do it.\n\nOnce." {
		t.Errorf("%d edits: %s", edits, shown.text)
	}
}

// TestConsoleRoles: who may only look is offered nothing, what another project
// has is not seen, and a form that is sent all the same does nothing.
func TestConsoleRoles(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	path, _ := w.proposed("roles")
	bob := w.signIn("bob")
	action, approve := bob.get("/console/inbox").form(t, path, "approve")
	for _, who := range []string{"viewer", "every", "banker"} {
		b := w.signIn(who)
		inbox := b.get("/console/inbox")
		inbox.wants(t, who, http.StatusOK, "Nothing waits for you")
		board := b.get("/console/board")
		if sees := strings.Contains(board.text, "Risky"); sees != (who != "banker") || strings.Contains(inbox.text, "<form class=\"decision") {
			t.Errorf("%s sees it: %t", who, sees)
		}
		b.do(http.MethodPost, action, approve).wants(t, who+" approves", http.StatusForbidden)
	}
	if inbox := bob.get("/console/inbox"); strings.Contains(inbox.text, "Change the request") || strings.Contains(inbox.text, ">Cancel<") {
		t.Error("an approver is offered what a requester or an operator may")
	}
	change := url.Values{"decision": {"change"}, "seen": approve["seen"], "key": {"k"}, "text": {"More."}}
	bob.do(http.MethodPost, action, change).wants(t, "an approver edits", http.StatusForbidden)
	if shown := w.request("ada", http.MethodGet, path, ""); shown.body["waiting"] != "approval" {
		t.Errorf("it is %s", shown.text)
	}
}

// TestConsoleAnswers answers a question in place, by a suggestion and in words,
// and asks for changes of a plan.
func TestConsoleAnswers(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	w.analysis = func(c *forge.Command) *forge.Analysis {
		if len(c.Intent.Clarifications) == 0 {
			return &forge.Analysis{Clarifications: []forge.Clarification{
				{Question: "Which\none?", SuggestedAnswers: []string{"blue", "red"}}, {Question: "How many?"},
			}}
		}
		return &forge.Analysis{Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "paint: " + *c.Intent.Clarifications[0].Answer}}}
	}
	made := w.request("ada", http.MethodPost, intents, `{"title": "Paint", "body": "Paint it."}`)
	path := made.header.Get("Location")
	waiting := func(what string) {
		wait.Until(t, what, func() bool { return w.request("ada", http.MethodGet, path, "").body["waiting"] == what })
	}
	waiting("clarification")
	ada := w.signIn("ada")
	inbox := ada.get("/console/inbox")
	inbox.wants(t, "questions", http.StatusOK, "Which\none?", "How many?", `value="blue"`)
	action, first := inbox.form(t, path, "answer")
	second := url.Values{"index": {"1"}}
	for name, values := range first {
		if name != "index" && name != "question" {
			second[name] = values
		}
	}
	second["question"] = []string{questionOf(t, inbox, 1)}
	ada.do(http.MethodPost, action, first).wants(t, "no answer", http.StatusBadRequest, "The answer is empty")
	first["answer"] = []string{"", "blue"}
	ada.do(http.MethodPost, action, first).wants(t, "an answer", http.StatusSeeOther)
	second["answer"] = []string{" two "}
	ada.do(http.MethodPost, action, second).wants(t, "the other answer, from the same page", http.StatusSeeOther)
	waiting("approval")
	again := ada.get("/console/inbox")
	again.wants(t, "its plan", http.StatusOK, "paint: blue")
	_, change := again.form(t, path, "change")
	ada.do(http.MethodPost, action, change).wants(t, "no words", http.StatusBadRequest, "say it in words")
	change.Set("text", "Use\r\nless paint.")
	ada.do(http.MethodPost, action, change).wants(t, "ask for changes", http.StatusSeeOther)
	if body := w.request("ada", http.MethodGet, path, "").body["body"]; body != "Paint it.\n\nUse\nless paint." {
		t.Errorf("asked for is %q", body)
	}
}

// TestConsoleAsksForChanges has two people ask for changes of one plan at the same moment,
// in different words: one counts, and the other is told whose, with their own words kept.
// The plan that comes of it waits again, and the journal says who and through what.
func TestConsoleAsksForChanges(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	w.analysis = func(c *forge.Command) *forge.Analysis {
		title := "as planned"
		if c.Wish != nil {
			title = c.Wish.Person + " wants " + c.Wish.Words
		}
		return &forge.Analysis{Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: title}}}
	}
	path, plan := w.proposed("again")
	type form struct {
		b      *browser
		action string
		fields url.Values
	}
	forms := map[string]form{}
	for _, who := range []string{"bob", "ada"} {
		b := w.signIn(who)
		inbox := b.get("/console/inbox")
		inbox.wants(t, who, http.StatusOK, "Ask for changes", `data-key="c"`, "It uses no attempt", "You become one of its requesters")
		action, fields := inbox.form(t, path, "changes")
		b.do(http.MethodPost, action, fields).wants(t, "no words", http.StatusBadRequest, "say it in words")
		fields.Set("text", "what "+who+" <b>says")
		forms[who] = form{b, action, fields}
	}
	answers := map[string]page{}
	var people sync.WaitGroup
	var mu sync.Mutex
	for who, f := range forms {
		people.Go(func() {
			p := f.b.do(http.MethodPost, f.action, f.fields)
			mu.Lock()
			defer mu.Unlock()
			answers[who] = p
		})
	}
	people.Wait()
	first, other := "bob", "ada"
	if answers[first].status != http.StatusSeeOther {
		first, other = other, first
	}
	if answers[first].status != http.StatusSeeOther {
		t.Fatalf("none counted: %+v", answers)
	}
	answers[other].wants(t, "the other", http.StatusConflict, "<strong><bdi>"+first+"</bdi></strong>", "request changes", plan[:10],
		"what "+other+" &lt;b&gt;says")
	forms[first].b.do(http.MethodPost, forms[first].action, forms[first].fields).wants(t, "sent again", http.StatusOK, "It was done")
	wait.Until(t, "another plan waits", func() bool {
		shown := w.request("ada", http.MethodGet, path, "")
		return shown.body["waiting"] == "approval" && shown.body["plan"] != plan
	})
	inbox := forms[other].b.get("/console/inbox")
	inbox.wants(t, "the next plan", http.StatusOK, first+" wants what "+first+" &lt;b&gt;says")
	forms[first].b.get(consolePath(path)).wants(t, "its page", http.StatusOK, "Who decided", "request changes", "what "+first+" &lt;b&gt;says")
	if ev := w.journaled(path, func(m forge.Message) bool { return forge.As[*forge.RequestChanges](m) != nil }); ev.Actor != first || ev.Via != "gateway" {
		t.Errorf("journaled is %+v", ev)
	}
}

// questionOf returns the name of a question in the forms of a page.
func questionOf(t *testing.T, p page, index int) string {
	t.Helper()
	m := regexp.MustCompile(fmt.Sprintf(`name="index" value="%d"><input type="hidden" name="question" value="([0-9a-f]+)"`, index)).FindStringSubmatch(p.text)
	if m == nil {
		t.Fatal(p.text)
	}
	return m[1]
}
