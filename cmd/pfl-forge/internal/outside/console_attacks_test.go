package outside

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// guarded is the policy of every answer.
const guarded = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// TestConsoleHeaders: whatever is answered, no other origin can frame it,
// script it or be told of it, and nothing of it is kept.
func TestConsoleHeaders(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	ada, nobody := w.signIn("ada"), &browser{w: w}
	style := regexp.MustCompile(`/console/static/[0-9a-f]{12}/console\.css`).FindString(nobody.get("/console/sign-in").text)
	for _, path := range []string{"/console/", "/console/inbox", "/console/board", "/console/sign-in", "/console/none", "/console/board?sort=id", style} {
		for name, b := range map[string]*browser{"ada": ada, "nobody": nobody} {
			p := b.get(path)
			for header, want := range map[string]string{
				"Content-Security-Policy": guarded, "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
				"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			} {
				if got := p.header.Get(header); got != want {
					t.Errorf("%s of %s has %s: %q", path, name, header, got)
				}
			}
			if kept := strings.Contains(p.header.Get("Cache-Control"), "public"); kept != (path == style) {
				t.Errorf("%s of %s is kept: %s", path, name, p.header.Get("Cache-Control"))
			}
			if strings.Contains(p.text, " style=") || strings.Contains(p.text, "<style") || strings.Contains(p.text, "javascript:") {
				t.Errorf("%s has what the policy forbids", path)
			}
		}
	}
	if got := ada.get(style); got.status != http.StatusOK || got.header.Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("%s: %d %v", style, got.status, got.header)
	}
	plain := start(t, gateway.Settings{})
	(&browser{w: plain}).get("/console/sign-in").wants(t, "a gateway without a console", http.StatusNotFound)
}

// TestConsoleSessions: a session ends with its token, in the middle of
// everything, says why, and survives a restart of the gateway.
func TestConsoleSessions(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	key := filepath.Join(t.TempDir(), "kept.key")
	settings := gateway.Settings{Listen: "127.0.0.1:0", Tokens: w.file, Console: gateway.Console{Key: key}}
	var stop func()
	stop, w.base = w.gateway(settings)
	path, _ := w.proposed("sessions")
	bob := w.signIn("bob")
	action, approve := bob.get("/console/inbox").form(t, path, "approve")
	stop()
	_, w.base = w.gateway(settings)
	bob.get("/console/inbox").wants(t, "after a restart", http.StatusOK, "Risky")

	for name, cookie := range map[string]string{
		"made up": "1.ada.x.y.z", "cut": bob.cookie[:len(bob.cookie)-1], "of another entry": strings.Replace(bob.cookie, "bob", "ada", 1),
		"empty": ".", "long": strings.Repeat("x", 5000),
	} {
		(&browser{w: w, cookie: cookie}).get("/console/inbox").wants(t, name, http.StatusUnauthorized, "Your session has ended", "not one of this installation")
	}
	for _, who := range []string{"former", "none", "scanner"} {
		p := (&browser{w: w}).do(http.MethodPost, "/console/sign-in", url.Values{"token": {w.secrets[who]}})
		p.wants(t, "sign in as "+who, http.StatusUnauthorized)
		if p.header.Get("Set-Cookie") != "" {
			t.Errorf("%s has %s", who, p.header.Get("Set-Cookie"))
		}
	}
	without := map[string]string{}
	for name, rest := range entries {
		if name != "bob" {
			without[name] = rest
		}
	}
	w.writeTokens(without)
	cookie := bob.cookie
	wait.Until(t, "the session ends", func() bool { bob.cookie = cookie; return bob.get("/console/inbox").status == http.StatusUnauthorized })
	bob.cookie = cookie
	bob.do(http.MethodPost, action, approve).wants(t, "a decision", http.StatusUnauthorized, "taken out of the operator&#39;s file", "What you sent was not done")
	if bob.cookie != "" {
		t.Error("the browser keeps the session")
	}
	delete(w.secrets, "bob") // another token under the same name
	w.writeTokens(entries)
	bob.cookie = cookie
	wait.Until(t, "another token is of no use to it", func() bool {
		bob.cookie = cookie
		return bob.get("/console/inbox").status == http.StatusUnauthorized && w.knows("bob")
	})
	if status := w.signInAs("bob"); status != http.StatusSeeOther {
		t.Errorf("with the other token: %d", status)
	}
	if shown := w.request("ada", http.MethodGet, path, ""); shown.body["waiting"] != "approval" {
		t.Errorf("it is %s", shown.text)
	}
	ada := w.signIn("ada")
	if p := ada.do(http.MethodPost, "/console/sign-out", url.Values{}); p.status != http.StatusSeeOther || ada.cookie != "" {
		t.Errorf("signed out: %d, %q", p.status, ada.cookie)
	}
	for name, secret := range w.secrets {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("the token %s is in the log", name)
		}
	}
}

// knows reports whether the token of an entry counts. Signing in to find out would be a failed try.
func (w *world) knows(who string) bool {
	w.t.Helper()
	return w.request(who, http.MethodGet, intents, "").status != http.StatusUnauthorized
}

// signInAs returns the status of signing in.
func (w *world) signInAs(who string) int {
	w.t.Helper()
	return (&browser{w: w}).do(http.MethodPost, "/console/sign-in", url.Values{"token": {w.secrets[who]}}).status
}

// TestConsoleOtherOrigins: a page of another origin can neither decide nor sign
// in nor out, whatever its form says.
func TestConsoleOtherOrigins(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	path, _ := w.proposed("forged")
	bob := w.signIn("bob")
	action, approve := bob.get("/console/inbox").form(t, path, "approve")
	for name, headers := range map[string]map[string]string{
		"another site":               {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
		"a neighbour":                {"Sec-Fetch-Site": "same-site", "Origin": "https://evil.example"},
		"an old browser":             {"Sec-Fetch-Site": "", "Origin": "https://evil.example"},
		"a frame without an origin":  {"Sec-Fetch-Site": "", "Origin": "null"},
		"one that hides its origin":  {"Sec-Fetch-Site": "", "Origin": ""},
		"our origin by another site": {"Sec-Fetch-Site": "cross-site"},
	} {
		b := &browser{w: w, cookie: bob.cookie, headers: headers}
		b.do(http.MethodPost, action, approve).wants(t, name, http.StatusForbidden)
		b.do(http.MethodPost, "/console/sign-in", url.Values{"token": {w.secrets["ada"]}}).wants(t, name+" signs in", http.StatusForbidden)
		b.do(http.MethodPost, "/console/sign-out", url.Values{}).wants(t, name+" signs out", http.StatusForbidden)
		if b.cookie != bob.cookie {
			t.Errorf("%s has the cookie changed", name)
		}
	}
	bob.get(action+"?"+approve.Encode()).wants(t, "a link that decides", http.StatusNotFound)
	if shown := w.request("ada", http.MethodGet, path, ""); shown.body["waiting"] != "approval" {
		t.Errorf("it is %s", shown.text)
	}
}

// TestConsoleAddresses: no address leads elsewhere, writes into a header, or names what is no id.
func TestConsoleAddresses(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	_, _ = w.proposed("addresses")
	ada := w.signIn("ada")
	for _, next := range []string{
		"https://evil.example/console/", "//evil.example/console/", `/\evil.example`, "/console/../api/v1", "/console//evil.example", "javascript:alert(1)",
		"/console/\r\nSet-Cookie: a=b",
		"/console/%0d%0aSet-Cookie:a=b", "/console/%2e%2e/api", "/consolex", "http:/console/",
		"/console/sign-in", "/console/" + strings.Repeat("x", 3000), "//console/", "\x00/console/",
	} {
		p := (&browser{w: w}).do(http.MethodPost, "/console/sign-in", url.Values{"token": {w.secrets["ada"]}, "next": {next}})
		if got := p.header.Get("Location"); p.status != http.StatusSeeOther || got != "/console/" {
			t.Errorf("%q leads to %q", next, got)
		}
		if len(p.header.Values("Set-Cookie")) != 1 {
			t.Errorf("%q sets %v", next, p.header.Values("Set-Cookie"))
		}
		if got := ada.get("/console/sign-in?next=" + url.QueryEscape(next)).header.Get("Location"); got != "/console/" {
			t.Errorf("with a session, %q leads to %q", next, got)
		}
	}
	for path, status := range map[string]int{
		"/console/../api/v1/projects/shop/intents": 404, "/console/inbox/": 404, "/console//inbox": 404, "/console/projects/shop%2f..%2fbank/intents/a/decide": 404,
		"/console/static/x/console.css": 404, "/console/static/../pages/inbox.html": 404, "/console/static/" + "000000000000" + "/..%2f..%2fconsole.go": 404,
		"/console/board?project=..": 400, "/console/board?project=SHOP": 400, "/console/board?project=%0d%0aX:+y": 400,
		"/console/board?status=none": 400, "/console/board?since=soon": 400,
		"/console/board?search=a&search=b": 400, "/console/inbox?project=shop&intent=%3cscript%3e": 400,
		"/console/board?page=x": 200, "/console/board?page=99999999999999999999": 200,
		"/console/board?project=bank": 403, "/console/inbox?project=bank&intent=a": 403, "/console/inbox?project=shop&intent=none": 404,
	} {
		ada.get(path).wants(t, path, status)
	}
	for path, status := range map[string]int{
		"/console/projects/shop/intents/%3e/decide": 400, "/console/projects/SHOP/intents/a/decide": 400,
		"/console/projects/bank/intents/a/decide": 403, "/console/projects/shop/intents/none/decide": 404,
	} {
		ada.do(http.MethodPost, path, url.Values{"decision": {"approve"}, "seen": {"status=proposed"}, "key": {"k"}}).wants(t, path, status)
	}
	large := url.Values{"decision": {"reject"}, "seen": {"status=proposed"}, "text": {strings.Repeat("x", 300<<10)}}
	ada.do(http.MethodPost, "/console/projects/shop/intents/a/decide", large).wants(t, "a large form", http.StatusBadRequest)
}

// evil has what a text could do to a page or to who reads it.
const evil = `</title></bdi><script>alert(1)</script><img src=x onerror=alert(1)>"'><svg/onload=alert(1)>{{.}}` + "javascript:alert(1)"

// ownScript matches the one script of the pages.
var ownScript = regexp.MustCompile(`<script defer src="/console/static/[0-9a-f]{12}/console\.js"></script>`)

// hides is a text that reads otherwise than it is.
const hides = "pay\u202etxt.exe\u2066 zero\u200bwidth \U000e0041tag"

// TestConsoleTexts: whatever people, systems and agents write is shown as text,
// with all that hides in it.
func TestConsoleTexts(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	w.analysis = func(c *forge.Command) *forge.Analysis {
		if strings.Contains(c.Intent.Body, "ask me") && len(c.Intent.Clarifications) == 0 {
			return &forge.Analysis{Clarifications: []forge.Clarification{
				{Question: "Q " + evil + hides, Context: "C " + evil, SuggestedAnswers: []string{"S " + evil}},
			}}
		}
		return &forge.Analysis{Risk: forge.RiskHigh, Type: "fix", Tasks: []forge.TaskPlan{{
			Name: "one", Title: "T " + evil, Plan: "P " + evil + hides, Requirements: []string{"R " + evil}, RelevantFiles: []string{"a" + evil[:20] + ".go"},
		}}}
	}
	text := func(s string) string {
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	wish := `{"title": ` + text("I "+evil+hides) + `, "body": ` + text("B "+evil+hides+"%s") + `, "labels": [` + text("L"+evil[:20]) + `]}`
	var addresses []string
	for _, one := range [][2]string{{"scanner", ""}, {"ada", ""}, {"ada", " ask me"}} { // a system's waits before it is analyzed
		made := w.request(one[0], http.MethodPost, intents, strings.Replace(wish, "%s", one[1], 1))
		made.wants(t, "submit", http.StatusCreated)
		addresses = append(addresses, consolePath(made.header.Get("Location")))
		wait.Until(t, "it waits", func() bool {
			return w.request("ada", http.MethodGet, made.header.Get("Location"), "").body["waiting"] != nil
		})
	}
	ada := w.signIn("ada")
	name := url.QueryEscape(evil)
	addresses = append(addresses, "/console/inbox", "/console/board", "/console/board?search="+name, "/console/board?requester="+name,
		"/console/board?"+name+"=x")
	for _, path := range addresses {
		p := ada.get(path)
		p.text = ownScript.ReplaceAllString(p.text, "")
		for _, bad := range []string{"<script", "<img", "<svg", "onerror=alert(1)>", "\u202e", "\u2066", "\u200b", "\U000e0041", `href="javascript:`} {
			if strings.Contains(strings.ReplaceAll(p.text, "&lt;", "‹"), bad) {
				t.Errorf("%s has %q in\n%s", path, bad, p.text)
			}
		}
	}
	inbox := ada.get("/console/inbox")
	inbox.wants(t, "what hides", http.StatusOK, "&lt;U&#43;202E&gt;", "&lt;U&#43;2066&gt;", "&lt;U&#43;200B&gt;", "&lt;U&#43;E0041&gt;", "<mark>")
	for _, part := range []string{"I ", "B ", "T ", "P ", "R ", "Q ", "C ", "S "} {
		if !strings.Contains(inbox.text, part+"&lt;/title&gt;") {
			t.Errorf("%s is not in\n%s", part, inbox.text)
		}
	}
}

// TestConsoleWithoutNATS: while there is no server or no runner, pages say so,
// and what is sent again counts once.
func TestConsoleWithoutNATS(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	path, plan := w.proposed("gone")
	bob := w.signIn("bob")
	action, approve := bob.get("/console/inbox").form(t, path, "approve")
	w.nats.Stop()
	var read, lost page
	var asked sync.WaitGroup // each waits for its time
	asked.Go(func() { read = (&browser{w: w, cookie: bob.cookie}).get("/console/inbox") })
	asked.Go(func() { lost = (&browser{w: w, cookie: bob.cookie}).do(http.MethodPost, action, approve) })
	asked.Wait()
	read.wants(t, "the inbox", http.StatusServiceUnavailable, "It cannot be read now: ask again.")
	lost.wants(t, "approve", http.StatusServiceUnavailable, "Send it again")
	w.nats.Start(t)
	again := url.Values{}
	for _, m := range inputs.FindAllStringSubmatch(lost.text, -1) {
		again.Add(m[1], strings.ReplaceAll(m[2], "&amp;", "&"))
	}
	wait.Until(t, "it is sent again", func() bool {
		p := bob.do(http.MethodPost, action, again)
		return p.status == http.StatusSeeOther || p.status == http.StatusOK && strings.Contains(p.text, "It was done") // a former one counted
	})
	approvals := 0
	for _, d := range w.request("ada", http.MethodGet, path, "").body["decisions"].([]any) {
		if one := d.(map[string]any); one["what"] == "approve" && one["plan"] == plan && one["by"] == "bob" {
			approvals++
		}
	}
	if approvals != 1 {
		t.Errorf("%d approvals", approvals)
	}
}

// TestConsoleWithoutRunner tells of it, and offers nothing.
func TestConsoleWithoutRunner(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{Console: gateway.Console{Key: filepath.Join(t.TempDir(), "k")}})
	w.signIn("ada").get("/console/inbox").wants(t, "the inbox", http.StatusServiceUnavailable, "No runner is up to answer it: ask again.")
	w.decides(quota.Limits{})
	w.signIn("ada").get("/console/inbox").wants(t, "with one", http.StatusOK, "Nothing waits for you")
}
