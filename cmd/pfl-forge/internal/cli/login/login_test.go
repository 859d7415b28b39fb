package login_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/auth"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/login"
	"github.com/pfl-forge/pfl-forge/internal/identity/issuertest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// screen is what a command prints, for who looks meanwhile.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

// String returns everything so far.
func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// person is a person at a machine.
type person struct {
	t           *testing.T
	home        string
	server, key string
	in          string
	out, said   screen
}

// run runs one command.
func (p *person) run(ctx context.Context, command func(*kit.App) *cobra.Command, args ...string) error {
	p.t.Helper()
	app := &kit.App{In: strings.NewReader(p.in), Out: &p.out, Err: &p.said, Getenv: func(name string) string {
		if name == "XDG_STATE_HOME" {
			return p.home
		}
		return ""
	}}
	app.Server, app.NKey = p.server, p.key
	cmd := command(app)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(args)
	return cmd.ExecuteContext(ctx)
}

// TestLogin is the whole way as an operator and a person go it: auth init
// --logins, a server with that auth.conf, auth serve, login on the page of a
// real issuer and by a token, whoami, a request, and logout.
func TestLogin(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	dir := filepath.Join(t.TempDir(), "nats")
	operator := &person{t: t, home: t.TempDir()}
	if err := operator.run(ctx, auth.Command, "init", "--out", dir, "--no-tls-certs"); err != nil {
		t.Fatal(err)
	}
	if err := operator.run(ctx, auth.Command, "init", "--out", dir, "--logins"); err != nil {
		t.Fatal(err)
	}
	issuer := issuertest.Start(t)
	issuer.Person = map[string]any{"sub": "17", "email": "ada@example.com", "email_verified": true}
	identities := filepath.Join(t.TempDir(), "identities.yaml")
	rules := fmt.Sprintf("issuers:\n  - url: %s\n    audience: pfl-forge\n    claim: email\n    people:\n"+
		"      - {is: ada@example.com, account: ada, projects: [shop]}\n", issuer.URL)
	if err := os.WriteFile(identities, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	url := bustest.StartConf(t, filepath.Join(dir, "auth.conf"))
	serving, stop := context.WithCancel(ctx)
	service := &person{t: t, home: t.TempDir(), server: url, key: filepath.Join(dir, "auth.nk")}
	ended := make(chan error, 1)
	go func() { ended <- service.run(serving, auth.Command, "serve", "--identities", identities) }()
	t.Cleanup(func() {
		stop()
		if err := wait.For(t, ended); err != nil {
			t.Error(err, service.said.String())
		}
	})
	wait.Until(t, "the auth service answers", func() bool { return strings.Contains(service.said.String(), "answering the server") })

	ada := &person{t: t, home: t.TempDir(), server: url}
	if err := ada.run(ctx, login.WhoCommand); !errors.Is(err, bus.ErrNoLogin) {
		t.Error(err)
	}
	page := regexp.MustCompile(`http://\S+/authorize\S+`)
	done := make(chan error, 1)
	go func() { done <- ada.run(ctx, login.Command, "--issuer", issuer.URL, "--client-id", "pfl-forge") }()
	wait.Until(t, "the address of the page is printed", func() bool { return page.MatchString(ada.said.String()) })
	browse(ctx, t, page.FindString(ada.said.String()))
	if err := wait.For(t, done); err != nil {
		t.Fatal(err, service.said.String())
	}
	if err := ada.run(ctx, login.WhoCommand); err != nil || strings.Count(ada.out.String(), "ada, by "+issuer.URL) != 2 {
		t.Error(err, ada.out.String())
	}
	private(t, ada.home)

	// In CI there is no page, and the token of the issuer is bound to no key.
	ci := &person{t: t, home: t.TempDir(), server: url, in: issuer.Sign(issuer.Person)}
	if err := ci.run(ctx, login.Command, "--id-token", "-"); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "garbage", issuer.Sign(map[string]any{"email": "eve@example.com", "email_verified": true})} {
		ci.in = bad
		if err := ci.run(ctx, login.Command, "--id-token", "-"); err == nil {
			t.Errorf("%q logs in", bad)
		}
	}
	if err := ci.run(ctx, login.WhoCommand); err != nil {
		t.Errorf("a login that failed has ended the one before: %v", err)
	}
	if err := ada.run(ctx, login.OutCommand); err != nil {
		t.Error(err)
	}
	if err := ada.run(ctx, login.WhoCommand); !errors.Is(err, bus.ErrNoLogin) {
		t.Error(err)
	}
	if text := service.said.String() + ada.said.String() + ada.out.String(); regexp.MustCompile(`\bSU[A-Z2-7]{56}\b`).MatchString(text) {
		t.Errorf("a secret is shown:\n%s", text)
	}
}

// browse opens the page of the issuer, and what it leads to.
func browse(ctx context.Context, t *testing.T, page string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	// Somebody who guesses the port and not the state does not end the login.
	at, err := req.URL.Parse(req.URL.Query().Get("redirect_uri") + "?code=x&state=guessed")
	if err != nil {
		t.Fatal(err)
	}
	forged := req.Clone(ctx)
	forged.URL, forged.Host = at, at.Host
	for _, c := range []struct {
		req  *http.Request
		want int
	}{{forged, http.StatusBadRequest}, {req, http.StatusOK}} {
		resp, err := client.Do(c.req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s: %s", c.req.URL, resp.Status)
		}
	}
}

// private checks that nobody else can read a file in a folder.
func private(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		info, err := d.Info()
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil || files != 2 {
		t.Errorf("%d files, %v", files, err)
	}
}

// TestNoHome: without a home directory a login would be in the folder at hand,
// which may be a repository. It is refused with what to set, before the issuer
// is asked; and a command with another token works.
func TestNoHome(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	issuer := issuertest.Start(t)
	for _, server := range []string{"https://forge.example.com", "nats://127.0.0.1:1"} {
		for _, home := range []string{"", "relative"} {
			p := &person{t: t, server: server, home: home}
			for about, err := range map[string]error{
				"login":  p.run(wait.Context(t), login.Command, "--issuer", issuer.URL, "--client-id", "pfl-forge"),
				"whoami": p.run(wait.Context(t), login.WhoCommand),
				"logout": p.run(wait.Context(t), login.OutCommand),
			} {
				if err == nil || !strings.Contains(err.Error(), "set HOME, or XDG_STATE_HOME, to an absolute path") {
					t.Errorf("%s at %s with %q: %v", about, server, home, err)
				}
			}
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 || issuer.Asked(issuertest.About) > 0 {
		t.Errorf("left is %v, %v, and the issuer was asked", left, err)
	}
}
