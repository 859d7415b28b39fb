package proof_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/proof"
)

func TestSigners(t *testing.T) {
	p := newParty(t, "a")
	line := strings.Split(strings.TrimSpace(p.signers.String()), "\n")[1]
	for name, bad := range map[string]string{
		"nothing":          "# a comment\n\n",
		"a wildcard":       strings.Replace(line, "implementer", "*", 1),
		"two principals":   strings.Replace(line, "implementer", "implementer,reviewer", 1),
		"any namespace":    strings.Replace(line, "git,verify@pfl-forge", "*", 1),
		"not this one":     strings.Replace(line, "git,", "!git,", 1),
		"no namespaces":    strings.Replace(line, ` namespaces="git,verify@pfl-forge"`, "", 1),
		"an authority":     strings.Replace(line, `namespaces=`, `cert-authority,namespaces=`, 1),
		"namespaces twice": strings.Replace(line, `pfl-forge" `, `pfl-forge",namespaces="review@pfl-forge" `, 1),
		"another type":     strings.Replace(line, "ssh-ed25519", "ssh-rsa", 1),
		"half a key":       line[:len(line)-10],
		"a date":           strings.Replace(line, `pfl-forge" `, `pfl-forge",valid-before="tomorrow" `, 1),
	} {
		if got, err := proof.ParseSigners(bad); err == nil {
			t.Errorf("%s: %q was read as %v", name, bad, got)
		}
	}
	next := newParty(t, "b").keys["reviewer"].Signer()
	renewed := p.signers.Renew(next, made).Renew(next, made.Add(time.Hour))
	again, err := proof.ParseSigners(renewed.String())
	if err != nil || len(renewed) != 4 || !renewed[1].Until.Equal(made) || again.String() != renewed.String() || !p.signers[1].Until.IsZero() {
		t.Errorf("renewed: %s %v", renewed, err)
	}
}

// The key of a machine is made once, for its owner alone, and trusted for each
// role apart.
func TestFolder(t *testing.T) {
	f := proof.Folder(filepath.Join(t.TempDir(), "keys"))
	if err := f.Prepare(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(f.SignersPath())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Prepare(); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(f.SignersPath()); string(after) != string(before) {
		t.Errorf("%s became %s", before, after)
	}
	if info, err := os.Stat(filepath.Join(string(f), "seed")); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	signers, err := proof.ReadSigners(f.SignersPath())
	if err != nil || len(signers) != 3 {
		t.Fatal(signers, err)
	}
	ids := map[string]bool{}
	for _, role := range proof.Roles() {
		k, err := f.Source(role).Key()
		if err != nil {
			t.Fatal(err)
		}
		ids[k.ID()] = true
	}
	if len(ids) != 3 {
		t.Errorf("roles share keys: %v", ids)
	}
	if k, err := proof.Folder("").Source("runner").Key(); k != nil || err != nil {
		t.Error(k, err)
	}
}

// A seed gives the same key each time, and another one for each role.
func TestKeysAreDerived(t *testing.T) {
	seed := []byte(strings.Repeat("a", 32))
	one, err := proof.Derive(seed, "runner")
	if err != nil {
		t.Fatal(err)
	}
	same, _ := proof.Derive(seed, "runner")
	another, _ := proof.Derive(seed, "reviewer")
	if one.ID() != same.ID() || one.ID() == another.ID() {
		t.Error(one.ID(), same.ID(), another.ID())
	}
	for _, bad := range []string{"", "short"} {
		if _, err := proof.Derive([]byte(bad), "runner"); err == nil {
			t.Errorf("%q is a seed", bad)
		}
	}
}

// Statements are what in-toto and DSSE say they are, so other tools can read
// them.
func TestStatementsAreInToto(t *testing.T) {
	var e struct {
		PayloadType, Payload string
		Signatures           []struct{ KeyID, Sig string }
	}
	if err := json.Unmarshal([]byte(newParty(t, "a").whole()[1]), &e); err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(e.Payload)
	if err != nil || e.PayloadType != "application/vnd.in-toto+json" || len(e.Signatures) != 1 {
		t.Fatalf("%+v %v", e, err)
	}
	var s map[string]any
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	if s["_type"] != "https://in-toto.io/Statement/v1" || s["predicateType"] != "https://github.com/pfl-forge/pfl-forge/attestation/review/v1" {
		t.Errorf("got %s", raw)
	}
}

// No secret is told in a statement: who takes them out of results cannot look
// into an envelope.
func TestStatementsHaveNoSecrets(t *testing.T) {
	const secret = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOpQrStUvWxYz01234567-AbCdEfGAA"
	list := proof.Passed([]string{"curl -H 'x-api-key: " + secret + "' https://example.org"})
	if len(list) != 1 || strings.Contains(list[0].Command, "AbCdEfGh") || strings.Contains(proof.Model(secret), "AbCdEfGh") {
		t.Errorf("got %v, %s", list, proof.Model(secret))
	}
}

// FuzzStatements looks for a payload that is taken for a statement and is not
// what would be written.
func FuzzStatements(f *testing.F) {
	k, err := proof.Derive([]byte(strings.Repeat("a", 32)), "runner")
	if err != nil {
		f.Fatal(err)
	}
	for _, p := range []proof.Predicate{verified(), reviewed(proof.VerdictApproved), planned(proof.OfPlan), approved(proof.OfPlan, "x")} {
		e, err := k.State(change, p)
		if err != nil {
			f.Fatal(err)
		}
		s, err := proof.Unseal(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(s.Payload))
	}
	f.Add(`{"_type":"https://in-toto.io/Statement/v1","subject":[],"subject":[],"predicateType":"","predicate":null}`)
	f.Fuzz(func(t *testing.T, payload string) {
		e, err := k.Seal(proof.PayloadStatement, []byte(payload))
		if err != nil {
			return
		}
		s, err := proof.Unseal(e)
		if err != nil {
			t.Fatal(err)
		}
		about, p, err := s.Statement()
		if err != nil {
			return
		}
		again, err := k.State(about, p)
		if err != nil || again != e {
			t.Errorf("%q is read, and written as %q, %v", payload, again, err)
		}
	})
}
