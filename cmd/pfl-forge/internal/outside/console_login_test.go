package outside

import (
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/identity/issuertest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// site is the address of the console for browsers that log in.
const site = "https://forge.example.com"

// withLogin starts an installation whose people have accounts at an issuer,
// besides tokens: carol has no token.
func withLogin(t *testing.T) (*world, *issuertest.Issuer, gateway.Settings) {
	t.Helper()
	i := issuertest.Start(t)
	settings := gateway.Settings{Console: gateway.Console{
		Key: filepath.Join(t.TempDir(), "console.key"), Projects: []string{"shop"},
		Login: &gateway.Login{Name: "Example", Issuer: i.URL, ClientID: "pfl-forge", Address: site},
	}}
	w := start(t, settings)
	settings.Listen, settings.Tokens = "127.0.0.1:0", w.file
	w.writeLogins("carol-1")
	w.decides(quota.Limits{})
	return w, i, settings
}

// writeLogins writes the file of tokens with a login for carol.
func (w *world) writeLogins(login string) {
	w.t.Helper()
	list := maps.Clone(entries)
	list["carol"] = "login: " + login + ", person: carol, projects: {shop: [viewer, requester, approver]}"
	w.writeTokens(list)
}

// leaves begins a login, and returns the address to which the page of the
// issuer leads back whoever has the claims.
func (b *browser) leaves(i *issuertest.Issuer, next string, claims map[string]any) string {
	b.w.t.Helper()
	p := b.get("/console/log-in?next=" + url.QueryEscape(next))
	page, err := url.Parse(p.header.Get("Location"))
	if err != nil || p.status != http.StatusSeeOther || !strings.HasPrefix(page.String(), i.URL+"/authorize?") {
		b.w.t.Fatalf("a login leads to %q, %d\n%s", page, p.status, p.text)
	}
	q := page.Query()
	for name, want := range map[string]string{
		"redirect_uri": site + "/console/logged-in", "client_id": "pfl-forge", "response_type": "code", "code_challenge_method": "S256",
	} {
		if q.Get(name) != want {
			b.w.t.Errorf("%s is %q, want %q", name, q.Get(name), want)
		}
	}
	if q.Get("state") == "" || q.Get("nonce") == "" || strings.Contains(page.RawQuery, "openid") == false {
		b.w.t.Errorf("the issuer is asked by %s", page.RawQuery)
	}
	i.Person = claims
	r, err := http.NewRequestWithContext(wait.Context(b.w.t), http.MethodGet, page.String(), http.NoBody)
	if err != nil {
		b.w.t.Fatal(err)
	}
	resp, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		b.w.t.Fatal(err)
	}
	_ = resp.Body.Close()
	back, ok := strings.CutPrefix(resp.Header.Get("Location"), site)
	if !ok {
		b.w.t.Fatalf("the issuer leads to %q", resp.Header.Get("Location"))
	}
	return back
}

// TestConsoleLogin has a person sign in with their account at an issuer, and decide. What they may
// is what the operator's file says of them, and ends when it says so no more, or of somebody else.
func TestConsoleLogin(t *testing.T) {
	t.Parallel()
	w, i, settings := withLogin(t)
	path, _ := w.proposed("login")
	carol := &browser{w: w}
	carol.get("/console/inbox").wants(t, "signed out", http.StatusUnauthorized, "Sign in with Example", "/console/log-in?next=%2fconsole%2finbox", `name="token"`)
	back := carol.leaves(i, "/console/board?state=done", map[string]any{"sub": "carol-1"})
	_, other := w.gateway(settings) // the login ends at another gateway than it began at
	first := w.base
	w.base = other
	p := carol.get(back)
	if p.status != http.StatusSeeOther || p.header.Get("Location") != "/console/board?state=done" || carol.cookie == "" || carol.login != "" {
		t.Fatalf("logged in: %d to %q\n%s", p.status, p.header.Get("Location"), p.text)
	}
	w.base = first
	inbox := carol.get("/console/inbox")
	inbox.wants(t, "the inbox", http.StatusOK, "Risky", "carol")
	action, approve := inbox.form(t, path, "approve")
	if p := carol.do(http.MethodPost, action, approve); p.status != http.StatusSeeOther {
		t.Errorf("approved: %d\n%s", p.status, p.text)
	}
	wait.Until(t, "it counts as carol's", func() bool {
		return strings.Contains(w.request("ada", http.MethodGet, path, "").text, `"carol"`)
	})
	if p := carol.get("/console/log-in?next=/console/board"); p.status != http.StatusSeeOther || p.header.Get("Location") != "/console/board" {
		t.Errorf("a second login leads to %q", p.header.Get("Location"))
	}
	cookie := carol.cookie
	for about, write := range map[string]func(){
		"the entry is gone":              func() { w.writeTokens(entries) },
		"the entry is another account's": func() { w.writeLogins("carol-2") },
		"the entry has a token in its place": func() {
			list := maps.Clone(entries)
			list["carol"] = "person: carol, projects: {shop: [viewer]}"
			w.writeTokens(list)
		},
	} {
		w.writeLogins("carol-1")
		wait.Until(t, "the session counts", func() bool { carol.cookie = cookie; return carol.get("/console/inbox").status == http.StatusOK })
		write()
		wait.Until(t, about, func() bool {
			carol.cookie = cookie
			return carol.get("/console/inbox").status == http.StatusUnauthorized
		})
	}
	moved := settings
	moved.Console.Login = &gateway.Login{Name: "Example", Issuer: issuertest.Start(t).URL, ClientID: "pfl-forge", Address: site}
	w.writeLogins("carol-1")
	_, w.base = w.gateway(moved)
	carol.cookie = cookie
	carol.get("/console/inbox").wants(t, "by another issuer", http.StatusUnauthorized, "Your session has ended")
}

// TestConsoleLoginAttacks: what does not come from a login of this browser, for
// this console and this person, signs nobody in. A token still does.
func TestConsoleLoginAttacks(t *testing.T) {
	t.Parallel()
	w, i, settings := withLogin(t)
	claims := map[string]any{"sub": "carol-1"}
	refused := func(about string, b *browser, address string, texts ...string) {
		t.Helper()
		p := b.get(address)
		p.wants(t, about, http.StatusUnauthorized, append(texts, `name="token"`)...)
		if b.cookie != "" {
			t.Errorf("%s: signed in", about)
		}
		_, w.base = w.gateway(settings) // each with as many tries as there are at first
	}
	const notThis = "login was not started in this browser"
	carol, eve := &browser{w: w}, &browser{w: w}
	address := carol.leaves(i, "/console/board", claims)
	refused("without a login", &browser{w: w}, address, notThis)
	eves := eve.leaves(i, "/console/board", map[string]any{"sub": "mallory"})
	held := carol.login
	refused("with the code of another login", carol, eves, notThis)
	if carol.login != "" {
		t.Error("the login goes on")
	}
	carol.login = strings.Replace(held, ".", ".x", 1)
	refused("with an altered cookie", carol, address, notThis)
	carol.login = held
	if p := carol.get(address); p.status != http.StatusSeeOther {
		t.Fatalf("%d\n%s", p.status, p.text)
	}
	carol.login, carol.cookie = held, ""
	refused("a second time", carol, address, "does not take the code")
	refused("as a person whom the file does not have", eve, eves, "You are &#34;mallory&#34; at Example.", "No entry of the operator")
	for about, one := range map[string]struct {
		claims map[string]any
		says   string
	}{
		"a token for another program":   {map[string]any{"sub": "carol-1", "aud": "wiki"}, "Example did not let you in"},
		"a token of another login":      {map[string]any{"sub": "carol-1", "nonce": "x"}, "bound to another key"},
		"a token of no login":           {map[string]any{"sub": "carol-1", "nonce": nil}, "bound to no key"},
		"an old token":                  {map[string]any{"sub": "carol-1", "exp": 1}, "expired"},
		"a token of another issuer":     {map[string]any{"sub": "carol-1", "iss": "https://evil.example"}, "Example did not let you in"},
		"a token without a person":      {map[string]any{"sub": nil}, "no claim sub"},
		"a person with a script's name": {map[string]any{"sub": "<script>alert(1)</script>"}, "You are &#34;&lt;script&gt;"},
	} {
		b := &browser{w: w}
		refused(about, b, b.leaves(i, "/console/board", one.claims), one.says)
	}
	b := &browser{w: w}
	back, err := url.Parse(b.leaves(i, "/console/board", claims))
	if err != nil {
		t.Fatal(err)
	}
	refused("the person says no", b, back.Path+"?error=access_denied&state="+back.Query().Get("state"), "access_denied")
	b = &browser{w: w}
	address = b.leaves(i, "https://evil.example/console/board", claims)
	if p := b.get(address); p.header.Get("Location") != "/console/" {
		t.Errorf("it leads to %q", p.header.Get("Location"))
	}
	b = &browser{w: w}
	address = b.leaves(i, "/console/board", claims)
	i.Away(true)
	refused("the issuer is away", b, address, "cannot be asked")
	refused("the issuer is away at first", &browser{w: w}, "/console/log-in", "Example cannot be asked now")
	if status := w.signInAs("bob"); status != http.StatusSeeOther {
		t.Errorf("with a token meanwhile: %d", status)
	}
	i.Away(false)
	var p page
	for range 20 { // of somebody at the same address, without asking the issuer
		p = (&browser{w: w}).get("/console/logged-in?code=x&state=y")
	}
	p.wants(t, "too many failures", http.StatusTooManyRequests, "Signing in failed too often from here")
	carol = &browser{w: w}
	if p := carol.get(carol.leaves(i, "/console/board", claims)); p.status != http.StatusSeeOther || carol.cookie == "" {
		t.Errorf("carol is kept out by the failures of others: %d\n%s", p.status, p.text)
	}
	log := w.log.String()
	if strings.Contains(log, "code=") || strings.Contains(log, held) {
		t.Error("the log has a code, or a cookie")
	}
}

// TestConsoleLoginWaits: whoever has the issuer asked as often as they like
// keeps others out for a moment, and costs them no login.
func TestConsoleLoginWaits(t *testing.T) {
	t.Parallel()
	w, i, _ := withLogin(t)
	carol := &browser{w: w}
	back := carol.leaves(i, "/console/board", map[string]any{"sub": "carol-1"})
	held := carol.login
	at, err := url.Parse(back)
	if err != nil {
		t.Fatal(err)
	}
	made := at.Path + "?code=made-up&state=" + url.QueryEscape(at.Query().Get("state"))
	var p page
	const often = "Example is asked too often now. Load this page again in 1 second."
	for n := 0; n < 200 && !strings.Contains(p.text, often); n++ { // as fast as it goes
		carol.login = held
		p = carol.get(made)
	}
	if p.status != http.StatusTooManyRequests || p.header.Get("Retry-After") != "1" || carol.login != held {
		t.Errorf("%d, %v, with the login %q", p.status, p.header, carol.login)
	}
	wait.Until(t, "carol is let in by the same login", func() bool { return carol.get(back).status == http.StatusSeeOther })
	if carol.cookie == "" || carol.login != "" {
		t.Errorf("the session is %q, the login %q", carol.cookie, carol.login)
	}
}

// TestConsoleLoginAtGitea signs in with an account at a real Gitea, where
// PFL_FORGE_GITEA names the folder with its url and tokens.
func TestConsoleLoginAtGitea(t *testing.T) {
	t.Parallel()
	g := realGitea(t)
	if g == nil {
		return // the other tests of logins have an issuer of their own
	}
	id, text := g.register(true, site+"/console/logged-in")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(text+"\n"), 0o600); err != nil || text == "" {
		t.Fatal(text, err)
	}
	w := start(t, gateway.Settings{Console: gateway.Console{
		Key: filepath.Join(t.TempDir(), "console.key"), Projects: []string{"shop"},
		Login: &gateway.Login{Name: "Gitea", Issuer: g.url, ClientID: id, ClientSecret: secret, Claim: "preferred_username", Address: site},
	}})
	w.writeLogins("eve")
	w.decides(quota.Limits{})
	b := &browser{w: w}
	to := g.agrees(b.get("/console/log-in?next=/console/board").header.Get("Location"))
	back, ok := strings.CutPrefix(to, site)
	if !ok {
		t.Fatalf("Gitea leads to %q", to)
	}
	if p := b.get(back); p.status != http.StatusSeeOther || p.header.Get("Location") != "/console/board" || b.cookie == "" {
		t.Fatalf("logged in: %d to %q\n%s", p.status, p.header.Get("Location"), p.text)
	}
	b.get("/console/board").wants(t, "the board", http.StatusOK, "carol")
}
