package proof_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/proof"
)

// certificate returns one, by the key of the account auth.
func certificate(tb testing.TB) proof.Certificate {
	tb.Helper()
	auth, err := proof.Derive([]byte(strings.Repeat("auth", 16)), "auth")
	if err != nil {
		tb.Fatal(err)
	}
	mine, err := proof.Derive([]byte(strings.Repeat("mine", 16)), proof.LoginRole)
	if err != nil {
		tb.Fatal(err)
	}
	c, err := proof.Certify(auth, proof.Certificate{
		Account: "ada", Login: "https://login.example.com/a,b", Connection: "U" + strings.Repeat("A", 55), Key: mine.Public(),
		From: time.Unix(1_700_000_000, 0), Until: time.Unix(1_700_003_600, 0),
	})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// TestCertificates checks that a certificate has one form, and that nothing in it can be altered.
func TestCertificates(t *testing.T) {
	c := certificate(t)
	back, err := proof.ParseCertificate(c.String())
	if err != nil || back.String() != c.String() || !back.Holds() {
		t.Error(back, err)
	}
	for i, f := range strings.Split(c.String(), ",") {
		for _, other := range []string{"", f + "A", strings.ToUpper(f), strings.ToLower(f), "x", "1", "%2C"} {
			parts := strings.Split(c.String(), ",")
			if parts[i] == other {
				continue
			}
			parts[i] = other
			if got, err := proof.ParseCertificate(strings.Join(parts, ",")); err == nil && got.Holds() {
				t.Errorf("field %d as %q: %+v", i, other, got)
			}
		}
	}
	for _, bad := range []string{"", "c1", c.String() + ",", c.String() + "\n", " " + c.String(), strings.Repeat("c1,", 4000)} {
		if got, err := proof.ParseCertificate(bad); err == nil {
			t.Errorf("%.40q: %+v", bad, got)
		}
	}
	if _, err := proof.Certify(mustDerive(t), proof.Certificate{Account: "no such", Connection: c.Connection, Key: c.Key}); err == nil {
		t.Error("a name that no account may have is certified")
	}
}

// mustDerive returns a key that may sign anything.
func mustDerive(t *testing.T) *proof.Key {
	t.Helper()
	k, err := proof.Derive([]byte(strings.Repeat("auth", 16)), "auth")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// FuzzCertificates reads texts that outsiders send as their token: one that is taken has one form.
func FuzzCertificates(f *testing.F) {
	c := certificate(f)
	f.Add(c.String())
	f.Fuzz(func(t *testing.T, text string) {
		c, err := proof.ParseCertificate(text)
		if err == nil && c.String() != text {
			t.Errorf("%q is read as %q", text, c.String())
		}
	})
}
