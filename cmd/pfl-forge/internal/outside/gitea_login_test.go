package outside

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/testoutput"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// giteaIssuer is a real Gitea, as an issuer, and a browser in which eve is signed in there.
type giteaIssuer struct {
	t   *testing.T
	dir string
	// url is its address, as its tokens have it.
	url    string
	client *http.Client
}

// realGitea returns the Gitea whose folder PFL_FORGE_GITEA names; nil where it names none.
func realGitea(t *testing.T) *giteaIssuer {
	t.Helper()
	g := &giteaIssuer{t: t, dir: os.Getenv("PFL_FORGE_GITEA")}
	if g.dir == "" {
		return nil
	}
	g.url = g.read("url")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	g.client = &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return g
}

// read returns the text of a file of its folder.
func (g *giteaIssuer) read(name string) string {
	g.t.Helper()
	text, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		g.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// send sends a request of the browser; headers are pairs of name and value.
func (g *giteaIssuer) send(method, address string, body io.Reader, headers ...string) (status int, location, text string) {
	g.t.Helper()
	r, err := http.NewRequestWithContext(wait.Context(g.t), method, address, body)
	if err != nil {
		g.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := g.client.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Location"), string(answer)
}

// register registers an application with an address to lead back to, and
// returns its id, and its secret if it is to have one.
func (g *giteaIssuer) register(confidential bool, back string) (id, secret string) {
	g.t.Helper()
	status, _, text := g.send(http.MethodPost, g.url+"/api/v1/user/applications/oauth2", strings.NewReader(
		fmt.Sprintf(`{"name": "pfl-forge", "confidential_client": %t, "redirect_uris": [%q]}`, confidential, back),
	), "Content-Type", "application/json", "Authorization", "token "+g.read("ada.token"))
	var app struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal([]byte(text), &app); err != nil || app.ID == "" {
		g.t.Fatalf("the application: %d %s, %v", status, text, err)
	}
	return app.ID, app.Secret
}

// agrees has eve sign in and agree on a page, and returns the address to which Gitea leads back.
func (g *giteaIssuer) agrees(page string) string {
	g.t.Helper()
	const form = "application/x-www-form-urlencoded"
	status, _, text := g.send(http.MethodPost, g.url+"/user/login", strings.NewReader("user_name=eve&password=evepass"), "Content-Type", form)
	if status != http.StatusSeeOther {
		g.t.Fatalf("eve at Gitea: %d %s", status, text)
	}
	status, to, text := g.send(http.MethodGet, page, http.NoBody)
	if to == "" { // Gitea asks once whether eve agrees
		fields := url.Values{"granted": {"true"}}
		for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`).FindAllStringSubmatch(text, -1) {
			fields.Set(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
		}
		status, to, text = g.send(http.MethodPost, g.url+"/login/oauth/grant", strings.NewReader(fields.Encode()), "Content-Type", form)
	}
	if to == "" {
		g.t.Fatalf("Gitea leads nowhere: %d\n%s", status, text)
	}
	return to
}

// TestCommandsByLoginAtGitea logs the command line in at a real Gitea, for a
// gateway that takes its tokens, and has the login refreshed there.
func TestCommandsByLoginAtGitea(t *testing.T) {
	t.Parallel()
	g := realGitea(t)
	if g == nil {
		return // TestCommandsByLogin has an issuer of its own
	}
	id, _ := g.register(false, "http://127.0.0.1/callback")
	w := start(t, gateway.Settings{Login: &gateway.APILogin{Issuer: g.url, ClientID: id, Claim: "preferred_username"}})
	w.writeLogins("eve")
	w.decides(quota.Limits{})
	env := map[string]string{"XDG_STATE_HOME": t.TempDir()}
	var out, said testoutput.Output
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Main([]string{"-C", filepath.Dir(w.file), "--server", w.base, "login", "--issuer", g.url, "--client-id", id},
			strings.NewReader(""), &out, &said, func(name string) string { return env[name] })
	}()
	page := regexp.MustCompile(`http://\S+/authorize\S+`)
	wait.Until(t, "the address of the page is printed", func() bool { return page.MatchString(said.String()) })
	if status, _, text := g.send(http.MethodGet, g.agrees(page.FindString(said.String())), http.NoBody); status != http.StatusOK {
		t.Fatalf("back at the command line: %d %s", status, text)
	}
	if code := wait.For(t, ended); code != int(kit.ExitOK) {
		t.Fatalf("%d: %s", code, said.String())
	}
	w.command(w.base, env, "whoami").wants(t, "whoami", kit.ExitOK, "eve, by "+g.url)
	w.command(w.base, env, "status").wants(t, "status", kit.ExitOK)
	first := expired(t, env["XDG_STATE_HOME"])
	w.command(w.base, env, "status").wants(t, "with the next token", kit.ExitOK)
	// The refresh token says nothing: Gitea signs the same one twice within a second.
	if next := expired(t, env["XDG_STATE_HOME"]); next["until"] == longAgo || next["sub"] != first["sub"] {
		t.Errorf("it was not refreshed: %v at %v", next["name"], next["issuer"])
	}
}

// longAgo is when a token ended that has to be refreshed.
const longAgo = "2020-01-01T00:00:00Z"

// expired has the token of the one login in a home expire, and returns the login as it was.
func expired(t *testing.T, home string) (login map[string]any) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(home, "pfl-forge", "logins", "*", "login.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &login); err != nil {
		t.Fatal(err)
	}
	next := maps.Clone(login)
	next["until"] = longAgo
	if text, err = json.Marshal(next); err == nil {
		err = os.WriteFile(files[0], text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return login
}
