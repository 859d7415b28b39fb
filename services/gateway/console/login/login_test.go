package login

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/identity/issuertest"
)

// TestLoginCookie: a login counts for ten minutes, with the key by which it
// began, and for its own state.
func TestLoginCookie(t *testing.T) {
	i := issuertest.Start(t)
	site, err := identity.NewSite(identity.SiteConfig{Issuer: i.URL, Client: "pfl-forge", Back: "https://forge.example.com/back", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	at := func(d time.Duration, key string) *Issuer {
		mac := func(purpose string, data []byte) string {
			return fmt.Sprintf("%x", sha256.Sum256([]byte(key+purpose+string(data))))
		}
		return New(Config{Site: site}, mac, func() time.Time { return now.Add(d) })
	}
	address, cookie, err := at(0, "k").Begin(t.Context(), "/console/board")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	state := u.Query().Get("state")
	for name, one := range map[string]struct {
		issuer *Issuer
		cookie string
		state  string
	}{
		"after ten minutes": {at(Lasts, "k"), cookie, state},
		"from the future":   {at(-time.Hour, "k"), cookie, state},
		"another key":       {at(0, "l"), cookie, state},
		"another state":     {at(0, "k"), cookie, state + "x"},
		"no state":          {at(0, "k"), cookie, ""},
		"longer":            {at(0, "k"), cookie + "x", state},
		"too long":          {at(0, "k"), strings.Repeat("x", maxCookie+1), state},
		"none":              {at(0, "k"), "", state},
	} {
		if _, _, err := one.issuer.End(t.Context(), one.cookie, url.Values{"state": {one.state}, "code": {"x"}}); !errors.Is(err, ErrOther) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, next, err := at(Lasts-time.Second, "k").End(t.Context(), cookie, url.Values{"state": {state}, "code": {"x"}})
	if errors.Is(err, ErrOther) || next != "/console/board" {
		t.Errorf("in time: %q, %v", next, err)
	}
	if strings.Contains(address, strings.Split(cookie, ".")[3]) || strings.Contains(address, strings.Split(cookie, ".")[4]) {
		t.Error("the address has what proves that the code is ours")
	}
}
