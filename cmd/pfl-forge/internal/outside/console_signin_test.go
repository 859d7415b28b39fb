package outside

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// TestConsoleSignInsAreBounded: after too many failures the next is refused and told
// when to try again; a token that counts is taken all the same, who is signed in
// goes on, and the API as well. Each failure up to then is in the log, and no token.
func TestConsoleSignInsAreBounded(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{Console: gateway.Console{Key: filepath.Join(t.TempDir(), "k")}})
	ada, typed := w.signIn("ada"), "pflt_typed-with-a-mistake"
	var p page
	failures := 0
	for p.status != http.StatusTooManyRequests && failures < 100 {
		p = (&browser{w: w}).do(http.MethodPost, "/console/sign-in", url.Values{"token": {typed}})
		failures++
	}
	if failures != 11 {
		t.Errorf("%d tries were taken", failures)
	}
	p.wants(t, "one too many", http.StatusTooManyRequests, "Signing in failed too often from here. Try again in", `name="token"`)
	if seconds, err := strconv.Atoi(p.header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 6 {
		t.Errorf("Retry-After is %q", p.header.Get("Retry-After"))
	}
	right := (&browser{w: w}).do(http.MethodPost, "/console/sign-in", url.Values{"token": {w.secrets["bob"]}})
	if right.status != http.StatusSeeOther || right.header.Get("Set-Cookie") == "" {
		t.Errorf("with a token that counts, beside those who fail, it answers %d", right.status)
	}
	if got := ada.get("/console/board"); got.status == http.StatusUnauthorized || got.status == http.StatusTooManyRequests {
		t.Errorf("who is signed in gets %d", got.status)
	}
	if got := w.request("bob", http.MethodGet, intents, "").status; got == http.StatusUnauthorized || got == http.StatusTooManyRequests {
		t.Errorf("the API answers %d", got)
	}
	log := w.log.String()
	if n := strings.Count(log, "signing in failed"); n != failures-1 || !strings.Contains(log, "address=127.0.0.1:") || !strings.Contains(log, "not known") {
		t.Errorf("%d failures are logged in\n%s", n, log)
	}
	for _, secret := range []string{typed, w.secrets["bob"], w.secrets["ada"]} {
		if strings.Contains(log, secret) {
			t.Error("a token is in the log")
		}
	}
}

// TestConsoleTwoAskForChanges: of two people who ask for changes at the same moment one counts,
// and the other is told whose, with their own words to send again; then both are in the request.
func TestConsoleTwoAskForChanges(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	list := maps.Clone(entries)
	for _, who := range []string{"cyd", "dan", "eli"} {
		list[who] = "person: " + who + ", projects: {shop: [requester]}"
	}
	w.writeTokens(list)
	wait.Until(t, "they are known", func() bool { return w.knows("eli") })
	people := []string{"ada", "cyd", "dan", "eli"}
	for round := range 3 {
		path, _ := w.proposed(fmt.Sprint("changes", round))
		var browsers []*browser
		var forms []url.Values
		action := ""
		for _, who := range people {
			b := w.signIn(who)
			at, form := b.get(consolePath(path)).form(t, path, "change")
			form.Set("text", "Words of "+who+" </textarea><script>.")
			action, browsers, forms = at, append(browsers, b), append(forms, form)
		}
		answers := make([]page, len(people))
		var sent sync.WaitGroup
		for i := range people {
			sent.Go(func() { answers[i] = browsers[i].do(http.MethodPost, action, forms[i]) })
		}
		sent.Wait()
		first := slices.IndexFunc(answers, func(p page) bool { return p.status == http.StatusSeeOther })
		if first < 0 {
			t.Fatalf("nobody's counts: %+v", answers)
		}
		for i, p := range answers {
			if i != first {
				p.wants(t, people[i], http.StatusConflict, "Not done", "<strong><bdi>"+people[first]+"</bdi></strong>", "Your words, which were not taken",
					"Words of "+people[i]+" &lt;/textarea&gt;")
			}
		}
		other := (first + 1) % len(people)
		var again page
		wait.Until(t, "it waits again", func() bool {
			again = browsers[other].do(http.MethodPost, action, forms[other])
			return strings.Contains(again.text, "Look at it as it is now before you send them again")
		})
		_, form := again.form(t, path, "change")
		form.Set("text", forms[other].Get("text"))
		browsers[other].do(http.MethodPost, action, form).wants(t, "they are sent again", http.StatusSeeOther)
		body, _ := w.request("ada", http.MethodGet, path, "").body["body"].(string)
		if !strings.Contains(body, "Words of "+people[first]) || !strings.Contains(body, "Words of "+people[other]) {
			t.Errorf("the request is %q", body)
		}
	}
}

// TestConsoleRoleTakenAway: a page that was opened with a role decides nothing without it.
func TestConsoleRoleTakenAway(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	path, _ := w.proposed("taken")
	bob := w.signIn("bob")
	action, approve := bob.get(consolePath(path)).form(t, path, "approve")
	list := maps.Clone(entries)
	list["bob"] = "person: bob, projects: {shop: [viewer]}"
	w.writeTokens(list)
	wait.Until(t, "the role is taken away", func() bool { return !strings.Contains(bob.get(consolePath(path)).text, `class="decision approve"`) })
	bob.do(http.MethodPost, action, approve).wants(t, "the page from before", http.StatusForbidden, "Your roles in this project do not include this decision.")
	if shown := w.request("ada", http.MethodGet, path, ""); shown.body["waiting"] != "approval" {
		t.Errorf("it is %s", shown.text)
	}
}
