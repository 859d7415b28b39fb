package outside

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// picked matches the boxes by which plans are selected.
var picked = regexp.MustCompile(`<input type="checkbox" form="batch" name="pick" value="([^"]*)"`)

// picks returns the values of the boxes of a page, by the ids of their intents.
func (p page) picks(t *testing.T) map[string]string {
	t.Helper()
	list := map[string]string{}
	for _, m := range picked.FindAllStringSubmatch(p.text, -1) {
		value := html.UnescapeString(m[1])
		q, err := url.ParseQuery(value)
		if err != nil {
			t.Fatal(err)
		}
		list[q.Get("intent")] = value
	}
	return list
}

// TestConsoleApprovesSeveral: plans that are selected in the inbox are approved together,
// each by the hash that was shown with it: one that has changed since is not, and says
// so, and the others are. Sent again, each counts once. What is not in the inbox as a
// whole, or not the person's to approve, is not approved, whatever the form says.
func TestConsoleApprovesSeveral(t *testing.T) {
	t.Parallel()
	const address = "/console/inbox/approve"
	w := withConsole(t)
	id := func(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
	first, _ := w.proposed("several-1")
	bob := w.signIn("bob")
	if p := bob.get("/console/inbox"); strings.Contains(p.text, "Approve several at once") {
		t.Error("one plan can be approved together with none")
	}
	second, plan := w.proposed("several-2")
	third, _ := w.proposed("several-3")
	long := w.request("ada", http.MethodPost, intents, `{"title": "Long", "body": "`+strings.Repeat("Do it well. ", 4000)+`"}`).header.Get("Location")
	waits := func(path string) bool {
		return w.request("ada", http.MethodGet, path, "").body["waiting"] == "approval"
	}
	wait.Until(t, "it waits", func() bool { return waits(long) })
	inbox := bob.get("/console/inbox")
	inbox.wants(t, "the inbox", http.StatusOK, "Approve several at once", "Approve what is selected")
	at := 0
	for _, path := range []string{first, second, third, long} { // the one that has waited for the longest comes first
		here := strings.Index(inbox.text, `href="`+consolePath(path)+`"`)
		if here < at {
			t.Errorf("%s is at %d, before %d", path, here, at)
		}
		at = here
	}
	picks := inbox.picks(t)
	if len(picks) != 3 || picks[id(long)] != "" {
		t.Fatalf("the boxes are %v", picks)
	}
	w.request("ada", http.MethodPost, second+"/edit", `{"body": "Do something else."}`).wants(t, "edit", http.StatusOK)
	now := ""
	wait.Until(t, "there is another plan", func() bool {
		now, _ = w.request("ada", http.MethodGet, second, "").body["plan"].(string)
		return waits(second) && now != plan
	})
	all := url.Values{"pick": {picks[id(first)], picks[id(second)], picks[id(third)], picks[id(first)]}}
	for _, who := range []string{"viewer", "banker"} {
		p := w.signIn(who).do(http.MethodPost, address, all)
		if p.wants(t, who, http.StatusOK, "Not approved."); strings.Contains(p.text, "Your approval counts.") || !waits(first) {
			t.Errorf("%s approves:\n%s", who, p.text)
		}
	}
	(&browser{w: w, cookie: bob.cookie, headers: map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}}).
		do(http.MethodPost, address, all).wants(t, "another site", http.StatusForbidden)
	(&browser{w: w}).do(http.MethodPost, address, all).wants(t, "without a session", http.StatusUnauthorized)
	for about, form := range map[string]url.Values{
		"nothing": {}, "no form": {"pick": {"x"}}, "no name": {"pick": {"project=shop&intent=.."}}, "nothing seen": {"pick": {"project=shop&intent=a"}},
		"too many": {"pick": strings.Fields("a b c d e f g h i j k")},
	} {
		bob.do(http.MethodPost, address, form).wants(t, about, http.StatusBadRequest)
	}
	for range 2 {
		p := bob.do(http.MethodPost, address, all)
		p.wants(t, "approve", http.StatusOK, "Your approval counts.", "Not approved.",
			"What there is to approve was &#34;"+plan+"&#34;, and is &#34;"+now+"&#34; now.")
		if n := strings.Count(p.text, "Your approval counts."); n != 2 {
			t.Errorf("%d approvals count:\n%s", n, p.text)
		}
	}
	for path, want := range map[string]bool{first: false, second: true, third: false, long: true} {
		approvals := 0
		for _, d := range w.request("ada", http.MethodGet, path, "").body["decisions"].([]any) {
			if d.(map[string]any)["what"] == "approve" {
				approvals++
			}
		}
		if waits(path) != want || (approvals == 0) != want || approvals > 1 {
			t.Errorf("%s waits %t, with %d approvals", path, waits(path), approvals)
		}
	}
	// A form that was made up for what the inbox does not show as a whole.
	_, form := bob.get(consolePath(long)).form(t, long, "approve")
	made := url.Values{"project": {"shop"}, "intent": {id(long)}, "seen": form["seen"], "key": {"k"}}
	bob.do(http.MethodPost, address, url.Values{"pick": {made.Encode()}}).wants(t, "a long one", http.StatusOK, "It cannot be approved in the inbox.")
	if !waits(long) {
		t.Error("what is not shown is approved")
	}
}
