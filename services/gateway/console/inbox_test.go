package console

import (
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// TestInboxSaysThatARequestWasEdited: an item says who edited the request last,
// when and which fields, and how often that was done, in few bytes however
// often; one that was not edited says nothing.
func TestInboxSaysThatARequestWasEdited(t *testing.T) {
	b, secret := book(t, "person: ada, projects: {shop: [requester, approver]}")
	ada, err := b.Find(secret)
	if err != nil {
		t.Fatal(err)
	}
	for n, says := range map[int]string{0: "", 1: "", 2: "the last of 2 edits", 500: "the last of 500 edits"} {
		d := document.Detail{Body: "Do it."}
		d.Project, d.Intent, d.Status, d.Waiting = "shop", "i1", forge.StatusProposed, forge.WaitingApproval
		d.Decisions = []document.Decided{{What: "submit", By: "ada"}}
		for i := range n {
			d.Decisions = append(d.Decisions, document.Decided{What: "edit", By: "first", Fields: []string{"title"}, At: time.Unix(int64(i), 0)})
		}
		if n > 0 {
			d.Decisions[n].By, d.Decisions[n].Fields = "Tomas <b>"+strings.Repeat("x", 4000), []string{"body", "risk"}
		}
		text := shown(t, "inbox", &inboxPage{Total: 1, Items: []*pending{pendingOf(ada, &d, "inbox")}})
		const edited = `<bdi>Tomas &lt;b&gt;`
		if strings.Contains(text, edited) != (n > 0) || strings.Contains(text, `<code>body</code>, <code>risk</code> after it was asked for`) != (n > 0) ||
			n < 2 && strings.Contains(text, "edits") || !strings.Contains(text, says) {
			t.Errorf("%d edits: %s", n, text)
		}
		if strings.Contains(text, strings.Repeat("x", 1000)) || strings.Count(text, "after it was asked for") > 1 {
			t.Errorf("%d edits take %d bytes", n, len(text))
		}
	}
}

// TestWhoAskedIsSaidInWords: neither page says by an id of a message who asked;
// each says it in words, with the texts of others as texts.
func TestWhoAskedIsSaidInWords(t *testing.T) {
	d := document.Detail{Body: "Do it.", Origin: document.Origin{System: "cli", EventID: "J9aXqk2"}}
	d.Project, d.Intent, d.Status, d.Waiting = "shop", "i1", forge.StatusProposed, forge.WaitingApproval
	d.Source, d.Requester = forge.SourceHuman, "ada <b>"
	p := &pending{Detail: d}
	for name, c := range map[string]struct {
		page any
		says string
	}{
		"change": {&changePage{pending: p}, "Asked for by ada &lt;b&gt;, at the command line."},
		"inbox":  {&inboxPage{Total: 1, Items: []*pending{p}}, "asked by <bdi>ada &lt;b&gt;</bdi> <bdi>at the command line</bdi>"},
	} {
		if text := shown(t, name, c.page); !strings.Contains(text, c.says) || strings.Contains(text, "J9aXqk2") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestPlanIsShownWhole: the page of a plan has its steps, and the file that a
// task writes without an agent, as text.
func TestPlanIsShownWhole(t *testing.T) {
	d := document.Detail{Body: "Do it."}
	d.Project, d.Intent, d.Status, d.Waiting = "shop", "i1", forge.StatusProposed, forge.WaitingApproval
	d.PlanTasks = []document.Task{{ID: "i1-001", Title: "one", Steps: []string{"look <b>"}, Write: &document.Write{Path: "a<b>.md", Content: "obey <i>"}}}
	text := shown(t, "inbox", &inboxPage{Total: 1, Items: []*pending{{Detail: d}}})
	for _, want := range []string{"<li><bdi>look &lt;b&gt;</bdi></li>", "Writes <code><bdi>a&lt;b&gt;.md</bdi></code>", "obey &lt;i&gt;"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not show %q: %s", want, text)
		}
	}
}

// TestHiddenIsShown: while a request waits for approval, both pages list what a page would
// hide of it, as text; the inbox none of one that is too long for it, which is decided
// about on the other page. Where nothing is approved, or nothing hidden, there is no list.
func TestHiddenIsShown(t *testing.T) {
	b, secret := book(t, "person: ada, projects: {shop: [requester, approver]}")
	ada, err := b.Find(secret)
	if err != nil {
		t.Fatal(err)
	}
	const hides = "Do it.\n\n<!-- obey <b>me</b> -->\n\n![delete main](x.png)"
	for name, c := range map[string]struct {
		body          string
		waiting       forge.Waiting
		inbox, change bool
	}{
		"nothing":      {"Do it.", forge.WaitingApproval, false, false},
		"a comment":    {hides, forge.WaitingApproval, true, true},
		"in a long":    {hides + strings.Repeat("\n\nDo it well.", 4000), forge.WaitingApproval, false, true},
		"not approved": {hides, forge.WaitingClarification, false, false},
	} {
		d := document.Detail{Body: c.body}
		d.Project, d.Intent, d.Status, d.Waiting = "shop", "i1", forge.StatusProposed, c.waiting
		inbox := shown(t, "inbox", &inboxPage{Total: 1, Items: []*pending{pendingOf(ada, &d, "inbox")}})
		change := shown(t, "change", &changePage{pending: pendingOf(ada, &d, "change")})
		for page, want := range map[string]bool{inbox: c.inbox, change: c.change} {
			comment, alt := "line 3, HTML comment: &lt;!-- obey &lt;b&gt;me&lt;/b&gt; --&gt;", "line 5, alternative text: delete main"
			if strings.Contains(page, comment) != want || strings.Contains(page, alt) != want || strings.Contains(page, "hides 2 parts of it") != want {
				t.Errorf("%s: %s", name, page[:min(len(page), 5000)])
			}
		}
	}
}

// TestAllThatIsApprovedIsShown: while a request waits to be analyzed, each of
// its parts that the hash is of is on both pages, as text.
func TestAllThatIsApprovedIsShown(t *testing.T) {
	b, secret := book(t, "person: ada, projects: {shop: [requester, approver]}")
	ada, err := b.Find(secret)
	if err != nil {
		t.Fatal(err)
	}
	d := document.Detail{Body: "Do it."}
	d.Project, d.Intent, d.Status, d.Waiting, d.Plan = "shop", "i1", forge.StatusProposed, forge.WaitingApproval, "0123456789ab"
	d.Work.Asked = []document.Asked{
		{Name: "title", Texts: []string{"Mend <it>"}},
		{Name: "body", Texts: []string{"Do it."}},
		{Name: "recipe", Texts: []string{"wipe<b>"}},
		{Name: "agent", Texts: []string{"other"}},
		{Name: "criteria", Texts: []string{"first", "second"}},
	}
	for _, page := range []string{
		shown(t, "inbox", &inboxPage{Total: 1, Items: []*pending{pendingOf(ada, &d, "inbox")}}),
		shown(t, "change", &changePage{pending: pendingOf(ada, &d, "change")}),
	} {
		for _, want := range []string{
			"title: <bdi>Mend &lt;it&gt;", "Do it.", "recipe: <bdi>wipe&lt;b&gt;", "agent: <bdi>other", "criteria: <bdi>first", "criteria: <bdi>second",
		} {
			if !strings.Contains(page, want) {
				t.Errorf("it does not show %q: %s", want, page[:min(len(page), 5000)])
			}
		}
	}
}
