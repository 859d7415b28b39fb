package callout

import (
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/proof"
)

// newFuzzed returns a service whose issuer cannot be asked, with the
// certificate of a login of ada and the key of its connection.
func newFuzzed(t testing.TB) (s *service, certificate string, connection nkeys.KeyPair) {
	t.Helper()
	const issuer = "https://127.0.0.1:1"
	path := filepath.Join(t.TempDir(), "identities.yaml")
	rules := "issuers:\n  - url: " + issuer + "\n    audience: pfl-forge\n    people: [{is: ada, account: ada, projects: [shop]}]\n"
	if err := os.WriteFile(path, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	book, err := identity.Open(path, log, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	s = &service{Config: Config{
		Book: book, Accounts: func() ([]access.Account, error) { return nil, nil }, Lifetime: DefaultLifetime, Now: time.Now, Log: log,
	}}
	if s.key, err = proof.Derive([]byte(strings.Repeat("auth", 16)), string(access.Auth)); err != nil {
		t.Fatal(err)
	}
	words, err := proof.Derive([]byte(strings.Repeat("ada", 16)), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if connection, err = nkeys.FromRawSeed(nkeys.PrefixByteUser, []byte(strings.Repeat("x", 32))); err != nil {
		t.Fatal(err)
	}
	public, err := connection.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	c, err := proof.Certify(s.key, proof.Certificate{
		Account: "ada", Login: issuer, Connection: public, Key: words.Public(),
		From: time.Unix(1_700_000_000, 0), Until: time.Now().AddDate(10, 0, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, c.String(), connection
}

// FuzzAdmit: of all that a connection may show, the one certificate with the server's
// challenge signed by the key that it is for is let in, and as nobody but its owner.
func FuzzAdmit(f *testing.F) {
	const nonce = "challenge"
	_, certificate, connection := newFuzzed(f)
	public, err := connection.PublicKey()
	if err != nil {
		f.Fatal(err)
	}
	signature, err := connection.Sign([]byte(nonce))
	if err != nil {
		f.Fatal(err)
	}
	signed := base64.RawURLEncoding.EncodeToString(signature)
	f.Add(certificate, public, signed, nonce)
	f.Add(certificate, public, signed, "")
	f.Add(certificate, "", "", nonce)
	f.Add("e30.eyJpc3MiOiJodHRwczovLzEyNy4wLjAuMToxIn0.eA", public, signed, nonce)
	f.Add("", "SUAA", "!", nonce)
	f.Fuzz(func(t *testing.T, token, key, signature, nonce string) {
		s, _, connection := newFuzzed(t)
		req := jwt.NewAuthorizationRequestClaims(public)
		req.ConnectOptions.Token, req.ConnectOptions.Nkey, req.ConnectOptions.SignedNonce = token, key, signature
		req.ClientInformation.Nonce = nonce
		a, err := s.admit(t.Context(), req)
		if (a == nil) == (err == nil) {
			t.Fatalf("%+v, %v", a, err)
		}
		if err != nil {
			return
		}
		raw, bad := base64.RawURLEncoding.DecodeString(signature)
		signed := bad == nil && nonce != "" && connection.Verify([]byte(nonce), raw) == nil
		if a.name != "ada" || key != public || !signed || !strings.HasPrefix(token, certificate[:20]) {
			t.Errorf("%q with the key %q is let in as %s", token, key, a.name)
		}
	})
}

// FuzzCertify: without a token of an issuer nothing is certified, whatever is asked.
func FuzzCertify(f *testing.F) {
	data, err := json.Marshal(request{Token: "a.b.c", Key: []byte("key")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"token": null, "key": "!"}`))
	s, _, connection := newFuzzed(f)
	public, err := connection.PublicKey()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := s.certify(t.Context(), public, data); err == nil {
			t.Errorf("%q certifies %+v", data, c)
		}
	})
}
