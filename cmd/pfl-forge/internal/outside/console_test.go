package outside

import (
	"html"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/login"
)

// browser is one that has pages of the console: it keeps a cookie, says where
// its forms come from, and follows no redirect.
type browser struct {
	w      *world
	cookie string
	// login is the cookie of a login under way.
	login string
	// headers are sent with every request, besides those that a browser sends.
	headers map[string]string
}

// page is an answer of the console.
type page struct {
	status int
	header http.Header
	text   string
}

// withConsole starts an installation with a console, and a runner.
func withConsole(t *testing.T) *world {
	t.Helper()
	w := start(t, gateway.Settings{Console: gateway.Console{Key: filepath.Join(t.TempDir(), "console.key"), Projects: []string{"shop"}}})
	w.decides(quota.Limits{})
	return w
}

// get asks for an address.
func (b *browser) get(path string) page {
	b.w.t.Helper()
	return b.do(http.MethodGet, path, nil)
}

// do sends a request.
func (b *browser) do(method, path string, form url.Values) page {
	b.w.t.Helper()
	r, err := http.NewRequestWithContext(wait.Context(b.w.t), method, b.w.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.w.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", b.w.base)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for name, value := range b.headers {
		if r.Header.Set(name, value); value == "" {
			r.Header.Del(name)
		}
	}
	if b.cookie != "" {
		r.AddCookie(&http.Cookie{Name: "__Host-pfl-forge-session", Value: b.cookie})
	}
	if b.login != "" {
		r.AddCookie(&http.Cookie{Name: login.Cookie, Value: b.login})
	}
	resp, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		b.w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		b.w.t.Fatal(err)
	}
	for _, c := range resp.Cookies() {
		if kept := map[string]*string{"__Host-pfl-forge-session": &b.cookie, login.Cookie: &b.login}[c.Name]; kept != nil {
			if *kept = c.Value; !c.Secure || !c.HttpOnly || c.Path != "/" || c.Domain != "" || c.SameSite != http.SameSiteLaxMode {
				b.w.t.Errorf("the cookie is %+v", c)
			}
		}
	}
	return page{resp.StatusCode, resp.Header, string(data)}
}

// signIn begins a session of the holder of a token.
func (w *world) signIn(who string) *browser {
	w.t.Helper()
	b := &browser{w: w}
	p := b.do(http.MethodPost, "/console/sign-in", url.Values{"token": {w.secrets[who]}, "next": {"/console/board?state=done"}})
	if p.status != http.StatusSeeOther || p.header.Get("Location") != "/console/board?state=done" || b.cookie == "" {
		w.t.Fatalf("signing in as %s: %d, to %s\n%s", who, p.status, p.header.Get("Location"), p.text)
	}
	return b
}

// wants checks a page.
func (p page) wants(t *testing.T, about string, status int, texts ...string) {
	t.Helper()
	if p.status != status {
		t.Errorf("%s: %d, want %d\n%s", about, p.status, status, p.text)
	}
	for _, text := range texts {
		if !strings.Contains(p.text, text) {
			t.Errorf("%s: %q is not in\n%s", about, text, p.text)
		}
	}
}

// inputs matches the hidden fields of a form.
var inputs = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// form returns the address and the fields of the form on a page that decides
// something of an intent.
func (p page) form(t *testing.T, intentPath, decision string) (action string, fields url.Values) {
	t.Helper()
	action = strings.Replace(intentPath, "/api/v1/", "/console/", 1) + "/decide"
	for _, text := range strings.Split(p.text, "<form ")[1:] {
		text, _, _ = strings.Cut(text, "</form>")
		if !strings.Contains(text, `action="`+action+`"`) || !strings.Contains(text, `name="decision" value="`+decision+`"`) {
			continue
		}
		fields = url.Values{}
		for _, m := range inputs.FindAllStringSubmatch(text, -1) {
			fields.Add(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
		}
		return action, fields
	}
	t.Fatalf("there is no form to %s %s in\n%s", decision, action, p.text)
	return "", nil
}

// TestConsoleDecides signs in and approves in place; what the page showed is
// what counts, and the journal says who and through what.
func TestConsoleDecides(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	path, plan := w.proposed("risky")
	id := path[strings.LastIndexByte(path, '/')+1:]
	bob := w.signIn("bob")
	inbox := bob.get("/console/inbox")
	inbox.wants(t, "the inbox", http.StatusOK, "Risky", "Do it.", "needs approval", plan, "shop/"+id, "What it would do", "hash <code>"+plan+"</code></span>",
		"Approve this plan, hash <code>"+plan+"</code></button>")
	action, approve := inbox.form(t, path, "approve")
	done := bob.do(http.MethodPost, action, approve)
	if done.status != http.StatusSeeOther || done.header.Get("Location") != "/console/inbox?intent="+id+"&project=shop" {
		t.Fatalf("approved: %d, to %s\n%s", done.status, done.header.Get("Location"), done.text)
	}
	bob.get(done.header.Get("Location")).wants(t, "afterwards", http.StatusOK, "last decision", "bob", "Nothing waits for you")
	bob.do(http.MethodPost, action, approve).wants(t, "the same form again", http.StatusOK, "It was done", "<strong><bdi>bob</bdi></strong>", "approve")
	if shown := w.request("ada", http.MethodGet, path, ""); shown.body["waiting"] == "approval" {
		t.Errorf("it is %s", shown.text)
	}
	board := bob.get("/console/board")
	board.wants(t, "the board", http.StatusOK, "Risky", "shop/"+id, "in progress")
}

// TestConsoleDone: whoever sends a decision once more is told that it was done,
// and not that it was not; another decision of theirs was not.
func TestConsoleDone(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	path, _ := w.proposed("done")
	ada := w.signIn("ada")
	p := ada.get(consolePath(path))
	action, change := p.form(t, path, "change")
	_, reject := p.form(t, path, "reject")
	change.Set("text", "More\r\nof it.")
	ada.do(http.MethodPost, action, change).wants(t, "ask for changes", http.StatusSeeOther)
	wait.Until(t, "it is analyzed anew", func() bool { return w.request("ada", http.MethodGet, path, "").body["waiting"] == "approval" })
	ada.do(http.MethodPost, action, change).wants(t, "the same", http.StatusOK, "It was done", "edit")
	change.Set("text", "Less of it.")
	ada.do(http.MethodPost, action, change).wants(t, "other words", http.StatusConflict, "Not done")
	ada.do(http.MethodPost, action, reject).wants(t, "another decision", http.StatusConflict, "Not done")
	_, reject = ada.get(consolePath(path)).form(t, path, "reject")
	reject.Set("text", "No.")
	ada.do(http.MethodPost, action, reject).wants(t, "reject", http.StatusSeeOther)
	ada.do(http.MethodPost, action, reject).wants(t, "reject again", http.StatusOK, "It was done", "No.")
	w.signIn("bob").do(http.MethodPost, action, reject).wants(t, "another person", http.StatusConflict, "Not done", "<strong><bdi>ada</bdi></strong>")
}

// TestConsoleProjects: a project that cannot be listed does not hide the
// others, and is named where it was asked for.
func TestConsoleProjects(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	w.proposed("projects")
	list := map[string]string{"dee": "person: dee, projects: {attic: [], shop: [approver]}"}
	maps.Copy(list, entries)
	w.writeTokens(list)
	wait.Until(t, "dee is known", func() bool { return w.knows("dee") })
	dee := w.signIn("dee")
	inbox := dee.get("/console/inbox")
	inbox.wants(t, "the inbox", http.StatusOK, "Risky", "Approve this plan")
	if strings.Contains(inbox.text, "attic") {
		t.Error("it is about a project without a role")
	}
	dee.get("/console/board").wants(t, "the board", http.StatusOK, "Risky")
	p := dee.get("/console/board?project=shop&project=bank")
	p.wants(t, "one that they may not read", http.StatusOK, "Risky", "Cannot be read now: <code>bank</code>")
	dee.get("/console/board?project=bank").wants(t, "this one alone", http.StatusForbidden)
}
