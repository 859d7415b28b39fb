package auth

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/auth/secrets"
	"github.com/pfl-forge/pfl-forge/proof"
)

// TestTrustedKeys checks that the file of trusted keys has exactly the keys that
// follow from the seeds of the accounts, each for the work and the messages of its
// role, and that a key that was renewed stays good for what it signed before.
func TestTrustedKeys(t *testing.T) {
	first := objects(t, run(t, "", "--kubernetes"))
	trusted := func(list []secrets.Object) proof.Signers {
		t.Helper()
		s, err := proof.ParseSigners(entry(t, list, "forge-nats-signers", "allowed_signers"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	matches := func(s proof.Signer, list []secrets.Object) bool {
		t.Helper()
		key, err := proof.Derive([]byte(entry(t, list, secrets.ObjectOf(s.Principal), "nkey")), s.Principal)
		if err != nil {
			t.Fatal(err)
		}
		role := s.Principal
		if s.Principal == "ada" {
			role = "operator"
		}
		return proof.Signers{key.AccountSigner(role)}.String() == proof.Signers{{Principal: s.Principal, Namespaces: s.Namespaces, Key: s.Key}}.String()
	}
	before := trusted(first)
	if len(before) != len(basis()) {
		t.Errorf("got %s", before)
	}
	for _, s := range before {
		if !matches(s, first) || !s.Until.IsZero() {
			t.Errorf("%s is trusted by another key", s.Principal)
		}
	}
	next := objects(t, run(t, kubectl(t, first), "--kubernetes", "--from", "-", "--role", "reviewer"))
	ended := 0
	for _, s := range trusted(next) {
		switch {
		case s.Principal != "reviewer":
		case !s.Until.IsZero():
			ended++
		case !matches(s, next):
			t.Error("the renewed key is not the one of the new seed")
		}
	}
	if len(trusted(next)) != len(before)+1 || ended != 1 {
		t.Errorf("got %s", trusted(next))
	}
	added := objects(t, run(t, kubectl(t, first), "--kubernetes", "--from", "-", "--person", "ada", "--follower", "tracker"))
	list := trusted(added)
	if last := list[len(list)-1]; len(list) != len(before)+1 || last.Principal != "ada" || !matches(last, added) {
		t.Errorf("with ada and a follower, who signs nothing: %s", list)
	}
}

// TestConsoleKey: with a gateway there is a key of its console, which stays
// when others are renewed, is renewed alone, and is made for a gateway of
// before. As plain files there is none: a gateway makes it itself.
func TestConsoleKey(t *testing.T) {
	const secret = "forge-gateway-console"
	key := func(list []secrets.Object) string { return entry(t, list, secret, "console.key") }
	names := func(list []secrets.Object) (found []string) {
		for _, s := range list {
			found = append(found, s.Metadata.Name)
		}
		return found
	}
	if list := objects(t, run(t, "", "--kubernetes")); key(list) != "" {
		t.Error("there is a key without a gateway")
	}
	first := objects(t, run(t, "", "--kubernetes", "--gateway"))
	if !regexp.MustCompile(`^[0-9a-f]{64}\n$`).MatchString(key(first)) {
		t.Fatalf("its key is no key, of %d bytes", len(key(first)))
	}
	again := func(before []secrets.Object, args ...string) []secrets.Object {
		return objects(t, run(t, kubectl(t, before), append([]string{"--kubernetes", "--from", "-"}, args...)...))
	}
	for _, role := range []string{"gateway", "reviewer", "server"} {
		if list := again(first, "--role", role); slices.Contains(names(list), secret) {
			t.Errorf("with --role %s it is written", role)
		}
	}
	renewed := again(first, "--role", "console")
	if got := names(renewed); !slices.Equal(got, []string{secret, "forge-nats-server"}) || key(renewed) == key(first) || len(key(renewed)) != 65 {
		t.Errorf("written are %v", got)
	}
	if entry(t, renewed, "forge-nats-server", "auth.conf") != entry(t, first, "forge-nats-server", "auth.conf") {
		t.Error("the permissions are others")
	}
	if forced := again(first, "--force"); key(forced) == key(first) || key(forced) == "" {
		t.Error("it is not renewed with everything")
	}
	former := slices.DeleteFunc(slices.Clone(first), func(s secrets.Object) bool { return s.Metadata.Name == secret })
	if list := again(former, "--gateway"); len(key(list)) != 65 || !slices.Equal(names(list), []string{secret, "forge-nats-server"}) {
		t.Errorf("for a gateway of before, written are %v", names(list))
	}
	if _, _, err := try(kubectl(t, first), "--kubernetes", "--from", "-", "--gateway"); err == nil || !strings.Contains(err.Error(), "exist already") {
		t.Errorf("once more: %v", err)
	}
	plain := kubectl(t, objects(t, run(t, "", "--kubernetes")))
	const none = `no account "console"`
	if _, _, err := try(plain, "--kubernetes", "--from", "-", "--role", "console"); err == nil || !strings.Contains(err.Error(), none) {
		t.Errorf("without a gateway: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "keys")
	run(t, "", "--out", dir, "--gateway")
	for name := range contents(t, dir) {
		if strings.Contains(name, "console") {
			t.Errorf("there is %s", name)
		}
	}
	if _, _, err := try("", "--out", dir, "--role", "console"); err == nil || !strings.Contains(err.Error(), none) {
		t.Errorf("as plain files: %v", err)
	}
	dir = filepath.Join(t.TempDir(), "secrets")
	run(t, "", "--kubernetes", "--out", dir, "--gateway")
	before := contents(t, dir)[secret+".yaml"]
	run(t, "", "--kubernetes", "--out", dir, "--role", "reviewer")
	if after := contents(t, dir)[secret+".yaml"]; after != before || before == "" {
		t.Error("in a folder it does not stay")
	}
}
