package identity_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/identity/issuertest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// newBearer returns a Bearer of an issuer.
func newBearer(t *testing.T, i *issuertest.Issuer, claim string, now func() time.Time) *identity.Bearer {
	t.Helper()
	b, err := identity.NewBearer(identity.SiteConfig{Issuer: i.URL, Client: "pfl-forge", Claim: claim, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBearer: a token of the issuer counts if it is for us, now, by a key of
// its own, and of no login; and no other one does.
func TestBearer(t *testing.T) {
	t.Parallel()
	i, other := issuertest.Start(t), issuertest.Start(t)
	now := time.Now()
	b := newBearer(t, i, "email", func() time.Time { return now })
	ada := map[string]any{"email": "ada@example.com", "email_verified": true, "sub": "17"}
	with := func(name string, value any) map[string]any {
		return map[string]any{"email": "ada@example.com", "email_verified": true, "sub": "17", name: value}
	}
	if got, err := b.Verify(wait.Context(t), i.Sign(ada)); err != nil || got.Name != "ada@example.com" || got.Subject != "17" || !got.Until.After(now) {
		t.Errorf("ada: %+v, %v", got, err)
	}
	for name, token := range map[string]string{
		"a clock ahead":      i.Sign(with("nbf", now.Add(30*time.Second).Unix())),
		"two audiences":      i.Sign(with("azp", "pfl-forge")),
		"no id of its key":   i.SignWithout("kid", ada),
		"an ID token of one": i.Sign(with("aud", []string{"pfl-forge"})),
	} {
		if _, err := b.Verify(wait.Context(t), token); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct{ token, reason string }{
		"for another program":    {i.Sign(with("aud", "wiki")), "audience"},
		"for no program":         {i.Sign(with("aud", nil)), "audience"},
		"asked for by another":   {i.Sign(with("azp", "wiki")), "issued to another"},
		"of another issuer":      {other.Sign(ada), "no token of the issuer"},
		"in the issuer's name":   {other.Sign(with("iss", i.URL)), "failed to verify"},
		"expired":                {i.Sign(with("exp", now.Add(-time.Second).Unix())), "expired"},
		"without an end":         {i.Sign(with("exp", nil)), "expired"},
		"not yet":                {i.Sign(with("nbf", now.Add(2*time.Minute).Unix())), "does not count yet"},
		"from the future":        {i.Sign(with("iat", now.Add(2*time.Minute).Unix())), "from the future"},
		"for years":              {i.Sign(with("iat", now.Add(-48*time.Hour).Unix())), "older than"},
		"unsigned":               {i.Forge(map[string]any{"alg": "none"}, ada), "compact form"},
		"unsigned, with a tail":  {i.Forge(map[string]any{"alg": "none"}, ada) + "eA", "signature algorithm"},
		"by the public key":      {i.Forge(map[string]any{"alg": "HS256"}, ada), "signature algorithm"},
		"by a key of its own":    {other.Forge(map[string]any{"alg": "RS256", "jku": other.URL + "/keys"}, with("iss", i.URL)), "failed to verify"},
		"of a login":             {i.Sign(with("nonce", identity.Nonce("UKEY"))), "bound to another key"},
		"of a login, half":       {i.Sign(with("nonce", "")), "bound to another key"},
		"of a logout":            {i.Sign(with("events", map[string]any{"backchannel-logout": map[string]any{}})), "no ID token"},
		"an access token":        {i.Forge(i.Header("typ", "at+jwt"), ada), "no ID token"},
		"an unverified email":    {i.Sign(map[string]any{"email": "ada@example.com"}), "not verified"},
		"a subject as the email": {i.Sign(map[string]any{"sub": "ada@example.com"}), "no claim email"},
		"huge":                   {i.Sign(with("x", strings.Repeat("x", 1<<16))), "at most"},
		"empty":                  {"", "at most"},
	} {
		if got, err := b.Verify(wait.Context(t), c.token); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %+v, %v; want %q", name, got, err, c.reason)
		}
	}
}

// TestBearerWhileTheIssuerIsAway: keys that are known count without a question,
// and key ids that are made up have the issuer asked a few times and not more,
// however many there are. A key that it has made since counts nevertheless.
func TestBearerWhileTheIssuerIsAway(t *testing.T) {
	t.Parallel()
	i := issuertest.Start(t)
	clock := time.Now()
	b := newBearer(t, i, "", func() time.Time { return clock })
	good := i.Sign(nil)
	verify := func(token string) error { _, err := b.Verify(wait.Context(t), token); return err }
	i.Away(true)
	if err := verify(good); !errors.Is(err, identity.ErrAway) {
		t.Errorf("an issuer of which nothing is known: %v", err)
	}
	i.Away(false)
	clock = clock.Add(10 * time.Second)
	if err := verify(good); err != nil {
		t.Fatal(err)
	}
	release := i.Hold()
	leaving, leave := context.WithCancel(wait.Context(t))
	left := make(chan error, 1)
	before := i.Asked(issuertest.Keys)
	go func() {
		_, err := b.Verify(leaving, i.Forge(map[string]any{"alg": "RS256", "kid": "unknown"}, nil))
		left <- err
	}()
	wait.Until(t, "the issuer is asked for a key that is not known", func() bool { return i.Asked(issuertest.Keys) > before })
	if err := verify(good); err != nil {
		t.Errorf("while the issuer hangs: %v", err)
	}
	leave()
	if err := wait.For(t, left); !errors.Is(err, identity.ErrAway) {
		t.Errorf("who waits for an issuer that hangs: %v", err)
	}
	release()
	clock = clock.Add(time.Minute)
	before = i.Asked(issuertest.Keys)
	for n := range 200 {
		if err := verify(i.Forge(map[string]any{"alg": "RS256", "kid": fmt.Sprint(n)}, nil)); err == nil || errors.Is(err, identity.ErrAway) {
			t.Fatalf("a made-up key id: %v", err)
		}
		if err := verify(good); err != nil {
			t.Fatal(err)
		}
	}
	if n := i.Asked(issuertest.Keys) - before; n > 3 {
		t.Errorf("the issuer was asked %d times for its keys", n)
	}
	i.Rotate()
	clock = clock.Add(5 * time.Second)
	if err := verify(i.Sign(nil)); err != nil {
		t.Errorf("a new key, five seconds after the flood: %v", err)
	}
	if err := verify(good); err == nil {
		t.Error("a token by a key that the issuer does not show any more counts")
	}
}

// TestBearerKeepsItsKeys: an issuer that answers about itself, and not for its
// keys, does not make those unknown that are known.
func TestBearerKeepsItsKeys(t *testing.T) {
	t.Parallel()
	i := issuertest.Start(t)
	clock := time.Now()
	b := newBearer(t, i, "", func() time.Time { return clock })
	good := i.Sign(nil)
	for _, state := range []bool{false, true} {
		i.HideKeys(state)
		if _, err := b.Verify(wait.Context(t), good); err != nil {
			t.Errorf("keys hidden %t: %v", state, err)
		}
		clock = clock.Add(11 * time.Minute)
	}
}

// TestRefresh: a login that stays is refreshed by what the issuer gave, which
// counts once; and the token of a login by HTTP is bound to nothing.
func TestRefresh(t *testing.T) {
	t.Parallel()
	i := issuertest.Start(t)
	i.Person = map[string]any{"sub": "17"}
	site, err := identity.NewSite(identity.SiteConfig{Issuer: i.URL, Client: "pfl-forge", Back: "http://127.0.0.1/back", Stays: true, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	a := identity.NewBearerAttempt()
	page, err := site.Begin(wait.Context(t), a)
	if err != nil || strings.Contains(page, "nonce") || strings.Contains(page, "offline_access") {
		t.Fatalf("%s, %v", page, err)
	}
	first, err := site.Token(wait.Context(t), a, url.Values{"code": {code(t, page)}})
	if err != nil || first.Refresh == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	b := newBearer(t, i, "", time.Now)
	next, err := site.Refresh(wait.Context(t), first)
	if err != nil || next.Refresh == first.Refresh {
		t.Fatalf("%+v, %v", next, err)
	}
	for _, token := range []string{first.Token, next.Token} {
		if _, err := b.Verify(wait.Context(t), token); err != nil {
			t.Error(err)
		}
	}
	for name, g := range map[string]identity.Grant{"a second time": first, "with nothing": {}} {
		if _, err := site.Refresh(wait.Context(t), g); !errors.Is(err, identity.ErrGrant) {
			t.Errorf("%s: %v", name, err)
		}
	}
	i.Away(true)
	if _, err := site.Refresh(wait.Context(t), next); err == nil || errors.Is(err, identity.ErrGrant) {
		t.Errorf("while the issuer is away: %v", err)
	}
}

// TestBearerTakesNoKeysInTheClear: an issuer that shows its keys at an address
// without TLS shows those of whoever is on the way.
func TestBearerTakesNoKeysInTheClear(t *testing.T) {
	t.Parallel()
	i := issuertest.Start(t)
	for _, field := range []string{"jwks_uri", "token_endpoint", "authorization_endpoint"} {
		i.Tell(map[string]any{field: "http://192.0.2.1/" + field})
		b := newBearer(t, i, "", time.Now)
		if _, err := b.Verify(wait.Context(t), i.Sign(nil)); err == nil || !strings.Contains(err.Error(), "its "+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
