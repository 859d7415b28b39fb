package identity_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/identity/issuertest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// newSite returns a Site of an issuer, with the secret that it knows.
func newSite(t *testing.T, i *issuertest.Issuer, now func() time.Time) *identity.Site {
	t.Helper()
	cfg := identity.SiteConfig{Issuer: i.URL, Client: "pfl-forge", Back: "https://forge.example.com/back", Now: now}
	if i.Secret != "" {
		cfg.SecretFile = filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(cfg.SecretFile, []byte(i.Secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	site, err := identity.NewSite(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return site
}

// TestSlowIssuer: all who log in at an issuer that does not answer wait for one
// answer, each as long as they want; and what has failed is not asked again at once.
func TestSlowIssuer(t *testing.T) {
	t.Parallel()
	i := issuertest.Start(t)
	clock := time.Now()
	site := newSite(t, i, func() time.Time { return clock })
	release := i.Hold()
	const people = 6
	ctx, leave := context.WithCancel(wait.Context(t))
	left := make(chan error, people)
	begin := func() { _, err := site.Begin(ctx, identity.NewAttempt("")); left <- err }
	go begin()
	wait.Until(t, "the issuer is asked", func() bool { return i.Asked(issuertest.About) == 1 })
	for range people - 1 {
		go begin()
	}
	leave()
	for range people {
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who has left: %v", err)
		}
	}
	i.Away(true)
	release()
	for range people {
		if _, err := site.Begin(wait.Context(t), identity.NewAttempt("")); err == nil {
			t.Error("an issuer that fails leads to its page")
		}
	}
	if n := i.Asked(issuertest.About); n != 1 {
		t.Errorf("it was asked %d times, want once", n)
	}
	i.Away(false)
	clock = clock.Add(10 * time.Second)
	if _, err := site.Begin(wait.Context(t), identity.NewAttempt("")); err != nil {
		t.Errorf("after a while: %v", err)
	}
}

// TestCodeIsSentOnce: a code is sent once, whether it is taken or not, with the
// secret as the issuer wants it.
func TestCodeIsSentOnce(t *testing.T) {
	t.Parallel()
	for about, one := range map[string]struct {
		secret  string
		methods []string
	}{
		"no secret":        {"", nil},
		"none":             {"", []string{"none", "client_secret_basic"}},
		"it does not say":  {"s3cr3t", nil},
		"basic":            {"s3cr3t", []string{"client_secret_basic"}},
		"in the body":      {"s3cr3t", []string{"private_key_jwt", "client_secret_post"}},
		"in both ways":     {"s3cr3t", []string{"client_secret_post", "client_secret_basic"}},
		"with a character": {"s/3+c r:3%t", []string{"client_secret_post"}},
	} {
		i := issuertest.Start(t)
		i.Secret, i.Methods = one.secret, one.methods
		site := newSite(t, i, time.Now)
		a := identity.NewAttempt("")
		page, err := site.Begin(wait.Context(t), a)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := site.End(wait.Context(t), a, url.Values{"code": {"refused"}}); err == nil {
			t.Errorf("%s: any code is taken", about)
		}
		if n := i.Asked(issuertest.Token); n != 1 {
			t.Errorf("%s: a code that is refused was sent %d times", about, n)
		}
		if who, err := site.End(wait.Context(t), a, url.Values{"code": {code(t, page)}}); err != nil || who != "ada" || i.Asked(issuertest.Token) != 2 {
			t.Errorf("%s: %q, %v, after %d codes", about, who, err, i.Asked(issuertest.Token))
		}
	}
}

// code returns the code of a person who logs in on a page.
func code(t *testing.T, page string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(wait.Context(t), http.MethodGet, page, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		t.Fatal(err)
	}
	return back.Query().Get("code")
}
