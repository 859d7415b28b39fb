package outside

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/identity/issuertest"
	"github.com/pfl-forge/pfl-forge/internal/testoutput"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// withAPILogin starts an installation whose API takes tokens of an issuer, besides those
// of the file: carol has none in the file. Her console would have the same client.
func withAPILogin(t *testing.T) (*world, *issuertest.Issuer) {
	t.Helper()
	i := issuertest.Start(t)
	w := start(t, gateway.Settings{Login: &gateway.APILogin{Issuer: i.URL, ClientID: "pfl-forge"}})
	w.writeLogins("carol-1")
	w.secrets["carol"] = i.Sign(map[string]any{"sub": "carol-1"})
	return w, i
}

// TestAPILogin has a person ask and decide with a token of the issuer. What
// they may is what the operator's file says of them, and ends when it says so
// no more; the journal has who they are at the issuer.
func TestAPILogin(t *testing.T) {
	t.Parallel()
	w, i := withAPILogin(t)
	policy := policied(t, "policy: {approvals: {not_requester: true}}\n", commit(1))
	policy.Approvals.NotRequester = true
	w.analysis = func(*forge.Command) *forge.Analysis {
		return &forge.Analysis{Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}}, Policy: policy}
	}
	w.decides(quota.Limits{})
	path, plan := w.proposed("login")
	w.request("carol", http.MethodPost, path+"/approve", `{"plan": "`+plan+`"}`).wants(t, "approve", http.StatusOK, "applied")
	w.request("every", http.MethodGet, "/api/v1/projects/shop/audit", "").
		wants(t, "the audit", http.StatusOK, `"token carol by login carol-1 at `+i.URL+`"`, `"carol"`)
	w.request("carol", http.MethodPost, path+"/cancel", `{}`).wants(t, "a role that carol has not", http.StatusForbidden, "operator")
	w.request("carol", http.MethodGet, "/api/v1/projects/bank/intents", "").wants(t, "another project", http.StatusForbidden)
	made := w.request("carol", http.MethodPost, intents, `{"title": "Mine", "body": "Do it."}`)
	made.wants(t, "submit", http.StatusCreated)
	own := made.header.Get("Location")
	wait.Until(t, "it waits for approval", func() bool {
		shown := w.request("carol", http.MethodGet, own, "")
		plan, _ = shown.body["plan"].(string)
		return shown.body["waiting"] == "approval" && plan != ""
	})
	w.request("carol", http.MethodPost, own+"/approve", `{"plan": "`+plan+`"}`).wants(t, "what she asked for", http.StatusConflict)
	for about, write := range map[string]func(){
		"the entry is gone":              func() { w.writeTokens(entries) },
		"the entry is another account's": func() { w.writeLogins("carol-2") },
	} {
		w.writeLogins("carol-1")
		wait.Until(t, "she is let in", func() bool { return w.request("carol", http.MethodGet, path, "").status == http.StatusOK })
		write()
		wait.Until(t, about, func() bool { return w.request("carol", http.MethodGet, path, "").status == http.StatusForbidden })
		w.request("carol", http.MethodGet, path, "").wants(t, about, http.StatusForbidden, `you are \"carol-1\" at the issuer`, "no entry of the operator")
	}
	if strings.Contains(w.log.String(), w.secrets["carol"]) {
		t.Error("the token is in the log")
	}
}

// TestAPILoginAttacks: what the issuer did not sign, for the API, now and of no
// login, lets nobody in. Who is not let in is told what to do.
func TestAPILoginAttacks(t *testing.T) {
	t.Parallel()
	w, i := withAPILogin(t)
	other := issuertest.Start(t)
	carol := func(name string, value any) map[string]any { return map[string]any{"sub": "carol-1", name: value} }
	for about, one := range map[string]struct{ token, says string }{
		"for another program":               {i.Sign(carol("aud", "wiki")), "audience"},
		"of another issuer's carol-1":       {other.Sign(carol("sub", "carol-1")), "no token of the issuer"},
		"in the issuer's name":              {other.Sign(carol("iss", i.URL)), "does not count"},
		"expired":                           {i.Sign(carol("exp", 1)), "expired"},
		"not yet":                           {i.Sign(carol("nbf", 99999999999)), "nbf"},
		"alg none":                          {i.Forge(map[string]any{"alg": "none"}, carol("sub", "carol-1")) + "eA", "signature algorithm"},
		"HS256 with the public key":         {i.Forge(map[string]any{"alg": "HS256"}, carol("sub", "carol-1")), "signature algorithm"},
		"of a login at the console":         {i.Sign(carol("nonce", identity.Nonce("made by the console"))), "bound to another key"},
		"huge":                              {i.Sign(carol("x", strings.Repeat("x", 12<<10))), "not known"},
		"with a script in its issuer":       {i.Sign(carol("iss", "\"><script>\r\nX: y")), "no token of the issuer"},
		"no token of the file, nor another": {"pflt_" + strings.Repeat("A", 43), "not known"},
	} {
		w.secrets["thief"] = one.token
		a := w.request("thief", http.MethodGet, intents, "")
		a.wants(t, about, http.StatusUnauthorized, one.says, "log in with pfl-forge login --issuer "+i.URL+" --client-id pfl-forge")
		if c := a.header.Get("WWW-Authenticate"); !strings.HasPrefix(c, `Bearer error="invalid_token", error_description="log in with pfl-forge login --issuer `) {
			t.Errorf("%s: WWW-Authenticate is %q", about, c)
		}
		if strings.Contains(w.log.String(), one.token) {
			t.Errorf("%s: the token is in the log", about)
		}
	}
	a := w.request("", http.MethodGet, intents, "")
	a.wants(t, "no token", http.StatusUnauthorized)
	if c := a.header.Get("WWW-Authenticate"); strings.Contains(c, "error=") || !strings.Contains(c, "pfl-forge login") {
		t.Errorf("without a token: WWW-Authenticate is %q", c)
	}
	w.secrets["thief"] = i.Sign(carol("sub", "ada")) // who is in the file by a token alone
	w.request("thief", http.MethodGet, intents, "").wants(t, "a name of the file that has no login", http.StatusForbidden, "no entry")
	w.secrets["thief"] = i.Sign(carol("x", strings.Repeat("x", 1<<20)))
	if status := w.rawStatus("thief"); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a token of a MiB: %d", status)
	}
	before := i.Asked(issuertest.Keys)
	for n := range 50 {
		w.secrets["thief"] = i.Forge(map[string]any{"alg": "RS256", "kid": strings.Repeat("k", n+1)}, carol("sub", "carol-1"))
		w.request("thief", http.MethodGet, intents, "").wants(t, "a made-up key id", http.StatusUnauthorized)
	}
	if n := i.Asked(issuertest.Keys) - before; n > 25 { // three, and one in each five seconds (TestBearerWhileTheIssuerIsAway)
		t.Errorf("made-up key ids have the issuer asked %d times", n)
	}
}

// rawStatus returns the status of an answer that need not be one of the API.
func (w *world) rawStatus(who string) int {
	w.t.Helper()
	r, err := http.NewRequestWithContext(wait.Context(w.t), http.MethodGet, w.base+intents, http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.secrets[who])
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// TestAPILoginWithoutItsIssuer: an issuer that hangs, or is away, keeps out
// only whose token cannot be verified, and says so.
func TestAPILoginWithoutItsIssuer(t *testing.T) {
	t.Parallel()
	w, i := withAPILogin(t)
	w.decides(quota.Limits{})
	release := i.Hold()
	status := make(chan int, 1)
	go func() { status <- w.rawStatus("carol") }()
	wait.Until(t, "the issuer is asked", func() bool { return i.Asked(issuertest.About) > 0 })
	w.request("ada", http.MethodGet, intents, "").wants(t, "a token of the file meanwhile", http.StatusOK)
	i.Away(true)
	release()
	if got := wait.For(t, status); got != http.StatusServiceUnavailable {
		t.Errorf("while the issuer is away: %d", got)
	}
	away := w.request("carol", http.MethodGet, intents, "")
	away.wants(t, "away", http.StatusServiceUnavailable, "the issuer of this token cannot be asked now: nothing was done")
	if away.header.Get("Retry-After") != "5" || strings.Contains(w.log.String(), "level=WARN") {
		t.Errorf("%v\n%s", away.header, w.log)
	}
	if !strings.Contains(w.log.String(), "cannot be asked now: 503") {
		t.Errorf("the log does not say why:\n%s", w.log)
	}
	i.Away(false)
	wait.Until(t, "it is asked again, after some seconds", func() bool { return w.rawStatus("carol") == http.StatusOK })
	i.Away(true)
	w.request("carol", http.MethodGet, intents, "").wants(t, "by its keys that are known", http.StatusOK)
}

// TestFollowerWithALogin: the stream of somebody who came by a login ends when
// the file has them no more.
func TestFollowerWithALogin(t *testing.T) {
	t.Parallel()
	w, i := withAPILogin(t)
	log := slog.New(slog.DiscardHandler)
	book, err := tokens.Open(w.file, log, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	logins, err := identity.NewBearer(identity.SiteConfig{Issuer: i.URL, Client: "pfl-forge", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(api.New(api.Config{Bus: w.bus, Account: "gateway", Tokens: book, Logins: logins, Log: log, Heartbeat: 20 * time.Millisecond}))
	defer s.Close()
	w.base = s.URL
	w.decides(quota.Limits{})
	events, status := w.following(wait.Context(t), "carol", "")
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	w.writeTokens(entries)
	for range events { // until it ends
		t.Error("an event")
	}
}

// TestCommandsByLogin takes a person of an organisation from the page of the
// issuer to a decision, with no token of the operator's file: pfl-forge login,
// what the login is used for and after what, its refreshing, and logout.
func TestCommandsByLogin(t *testing.T) {
	t.Parallel()
	w, i := withAPILogin(t)
	w.decides(quota.Limits{})
	path, plan := w.proposed("login")
	id := path[strings.LastIndexByte(path, '/')+1:]
	home := t.TempDir()
	env := map[string]string{"XDG_STATE_HOME": home}
	run := func(args ...string) ran { return w.command(w.base, env, args...) }
	run("status").wants(t, "before", kit.ExitError, "a token is missing: put it into PFL_FORGE_TOKEN", "if your organisation has logins: pfl-forge login")
	run("whoami").wants(t, "before", kit.ExitError, "there is no login")
	run("login").wants(t, "no issuer", kit.ExitError, "--issuer")

	// The first token is about to expire by the clock of its holder, so each
	// command refreshes the login.
	i.Person = map[string]any{"sub": "carol-1", "preferred_username": "carol\x1b[31m"}
	w.logsIn(env, i)
	run("whoami").wants(t, "whoami", kit.ExitOK, "carol, by "+i.URL)
	asked := i.Asked(issuertest.Token)
	run("approve", id, "--plan", plan).wants(t, "approve", kit.ExitOK, "approved")
	if n := i.Asked(issuertest.Token); n != asked {
		t.Errorf("a login that is good was refreshed %d times", n-asked)
	}
	run("history").wants(t, "history", kit.ExitOK)
	i.Person["iat"], i.Person["exp"] = json.Number("32503676400"), json.Number("32503676430") // of 30 seconds, and never now
	w.logsIn(env, i)
	delete(i.Person, "iat")
	delete(i.Person, "exp")
	run("status").wants(t, "with the next token", kit.ExitOK)
	if n := i.Asked(issuertest.Token); n != asked+2 { // the login, and its refreshing
		t.Errorf("the issuer gave %d tokens", n-asked)
	}

	// A token of the environment or of a flag comes first, and goes nowhere
	// else; so does one of the issuer.
	env["PFL_FORGE_TOKEN"] = w.secrets["banker"]
	run("status").wants(t, "the environment", kit.ExitError, "this token has no role in this project")
	env["PFL_FORGE_TOKEN"] = i.Sign(map[string]any{"sub": "carol-1"})
	run("status").wants(t, "a token of the issuer in the environment", kit.ExitOK)
	env["PFL_FORGE_TOKEN"] = i.Sign(map[string]any{"sub": "carol-1", "aud": "wiki"})
	run("status").wants(t, "one for another program", kit.ExitError, "log in with pfl-forge login --issuer "+i.URL)
	delete(env, "PFL_FORGE_TOKEN")
	file := filepath.Join(home, "ada")
	if err := os.WriteFile(file, []byte(w.secrets["ada"]), 0o600); err != nil {
		t.Fatal(err)
	}
	env["FORGE_TOKEN_FILE"] = file
	run("pause", id).wants(t, "the file of the environment", kit.ExitOK, "paused")
	delete(env, "FORGE_TOKEN_FILE")
	run("pause", id).wants(t, "a role that carol has not", kit.ExitError, "operator of the gateway gives roles")

	_, second := w.gateway(gateway.Settings{Listen: "127.0.0.1:0", Tokens: w.file, Login: &gateway.APILogin{Issuer: i.URL, ClientID: "pfl-forge"}})
	w.command(second, env, "status").wants(t, "another gateway", kit.ExitError, "a token is missing")
	w.command(w.base+"/api/v1/", env, "status").wants(t, "the same one", kit.ExitOK)
	run("logout").wants(t, "logout", kit.ExitOK)
	run("status").wants(t, "after", kit.ExitError, "a token is missing")

	// Where there is no page a token is given.
	w.command(w.base, env, "login", "--id-token", file).wants(t, "no token of an issuer", kit.ExitError, "no token in the compact form")
	if err := os.WriteFile(file, []byte(i.Sign(map[string]any{"sub": "carol-1"})), 0o600); err != nil {
		t.Fatal(err)
	}
	run("login", "--id-token", file).wants(t, "a token of the issuer", kit.ExitOK, "carol-1, by "+i.URL)
	run("status").wants(t, "by it", kit.ExitOK)
	list := maps.Clone(entries)
	w.writeTokens(list)
	wait.Until(t, "the file has carol no more", func() bool { return run("status").code == kit.ExitError })
	run("status").wants(t, "out of the file", kit.ExitError, `you are "carol-1" at the issuer`)
}

// logsIn runs pfl-forge login, and opens the page that it prints.
func (w *world) logsIn(env map[string]string, i *issuertest.Issuer, flags ...string) {
	w.t.Helper()
	var out, said testoutput.Output
	ended := make(chan int, 1)
	go func() {
		args := append([]string{"-C", filepath.Dir(w.file), "--server", w.base, "login", "--issuer", i.URL, "--client-id", "pfl-forge"}, flags...)
		ended <- cli.Main(args, strings.NewReader(""), &out, &said, func(name string) string { return env[name] })
	}()
	page := regexp.MustCompile(`https?://\S+/authorize\S+`)
	wait.Until(w.t, "the address of the page is printed", func() bool { return page.MatchString(said.String()) })
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, page.FindString(said.String()), http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Close = true // the server that it leads to ends with the login
	resp, err := i.Client().Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if code := wait.For(w.t, ended); code != int(kit.ExitOK) || strings.Contains(out.String()+said.String(), "\x1b") {
		w.t.Fatalf("%d: %q %q", code, out.String(), said.String())
	}
}
