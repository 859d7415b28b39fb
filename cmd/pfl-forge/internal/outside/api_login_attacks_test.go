package outside

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/identity/issuertest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// TestAPILoginNamesAreWhole: two people whose names at the issuer are as long
// as there can be, and differ in their last letter, are two: for the file of
// tokens, and in the journal, which has all of it.
func TestAPILoginNamesAreWhole(t *testing.T) {
	t.Parallel()
	w, i := withAPILogin(t)
	w.decides(quota.Limits{})
	long := strings.Repeat("x", 254)
	w.secrets["second"] = i.Sign(map[string]any{"sub": long + "2"})
	for _, sub := range []string{long + "1", long + "3"} {
		w.writeLogins(sub)
		w.secrets["carol"] = i.Sign(map[string]any{"sub": sub})
		wait.Until(t, "she is let in", func() bool { return w.request("carol", http.MethodGet, intents, "").status == http.StatusOK })
		w.request("carol", http.MethodPost, intents, `{"title": "Mine", "body": "Do it."}`).wants(t, "submit", http.StatusCreated)
		w.request("every", http.MethodGet, "/api/v1/projects/shop/audit", "").
			wants(t, "the audit", http.StatusOK, `"token carol by login `+sub+` at `+i.URL+`"`)
		w.request("second", http.MethodGet, intents, "").wants(t, "another one", http.StatusForbidden, `you are \"`+long+`2\" at the issuer`)
	}
	w.secrets["longer"] = i.Sign(map[string]any{"sub": long + "12"})
	w.request("longer", http.MethodGet, intents, "").wants(t, "a longer one", http.StatusUnauthorized, "at most 255")
}

// TestStrangersAskTooOften: who has an account at the issuer and no entry of
// the file is limited as a token is, each by themselves.
func TestStrangersAskTooOften(t *testing.T) {
	t.Parallel()
	i := issuertest.Start(t)
	w := start(t, gateway.Settings{Login: &gateway.APILogin{Issuer: i.URL, ClientID: "pfl-forge"}, PerSecond: 0.001, Burst: 2})
	w.writeLogins("carol-1")
	w.decides(quota.Limits{})
	for _, who := range []string{"stranger-1", "stranger-2"} {
		for n := range 4 {
			w.secrets[who] = i.Sign(map[string]any{"sub": who, "jti": n}) // each token is another one
			a := w.request(who, http.MethodGet, intents, "")
			if n < 2 {
				a.wants(t, who, http.StatusForbidden, "no entry")
				continue
			}
			if a.wants(t, who, http.StatusTooManyRequests, "ask too often"); a.header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
			}
		}
	}
	w.secrets["carol"] = i.Sign(map[string]any{"sub": "carol-1"})
	wait.Until(t, "the file is read", func() bool { return w.rawStatus("carol") == http.StatusOK })
}

// TestCommandsByLoginWithAuthorities: a gateway and an issuer whose
// certificates are of an organisation's own authorities are known by files,
// which a login remembers, for its refreshing as well.
func TestCommandsByLoginWithAuthorities(t *testing.T) {
	t.Parallel()
	i, issuerCA := issuertest.StartTLS(t)
	w := start(t, gateway.Settings{Login: &gateway.APILogin{Issuer: i.URL, ClientID: "pfl-forge", CA: issuerCA}})
	w.writeLogins("carol-1")
	w.decides(quota.Limits{})
	ca := w.behindTLS()
	i.Person = map[string]any{"sub": "carol-1", "iat": json.Number("32503676400"), "exp": json.Number("32503676430")} // 30 seconds, and never now
	dir := t.TempDir()
	env := map[string]string{"XDG_STATE_HOME": dir}
	login := []string{"login", "--issuer", i.URL, "--client-id", "pfl-forge", "--wait", "20s"}
	w.command(w.base, env, login...).wants(t, "an issuer that is not known", kit.ExitError, "--issuer-ca names a file with the authorities")
	for flag, name := range map[string]string{"--issuer-ca": "none.pem", "--tls-ca": "none.pem"} {
		w.command(w.base, env, append(login, flag, filepath.Join(dir, name))...).wants(t, "no file", kit.ExitError, flag+": ")
	}
	w.logsIn(env, i, "--issuer-ca", issuerCA, "--tls-ca", ca)
	delete(i.Person, "iat")
	delete(i.Person, "exp")
	asked := i.Asked(issuertest.Token)
	w.command(w.base, env, "status").wants(t, "what the login remembers", kit.ExitOK)
	if n := i.Asked(issuertest.Token); n != asked+1 {
		t.Errorf("it was refreshed %d times", n-asked)
	}
	env["FORGE_OIDC_CA"], env["FORGE_TLS_CA"] = issuerCA, ca
	w.command(w.base, env, "logout").wants(t, "logout", kit.ExitOK)
	w.logsIn(env, i)
	delete(env, "FORGE_TLS_CA")
	w.command(w.base, env, "status").wants(t, "by the environment", kit.ExitOK)
}

// behindTLS puts a proxy with a certificate of an authority of its own before
// the gateway, and returns the file of that.
func (w *world) behindTLS() (ca string) {
	w.t.Helper()
	to, err := url.Parse(w.base)
	if err != nil {
		w.t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(to))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	w.t.Cleanup(s.Close)
	w.base = s.URL
	ca = filepath.Join(w.t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return ca
}
