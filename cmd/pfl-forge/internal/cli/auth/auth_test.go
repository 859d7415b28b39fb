package auth

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/auth/secrets"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// try runs auth init, and returns what it prints for programs and for people.
func try(in string, args ...string) (out, said string, err error) {
	var stdout, stderr bytes.Buffer
	cmd := Command(&kit.App{In: strings.NewReader(in), Out: &stdout, Err: &stderr, Getenv: func(string) string { return "" }})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(append([]string{"init"}, args...))
	err = cmd.Execute()
	return stdout.String(), stderr.String(), err
}

// run is try for a call that succeeds.
func run(t *testing.T, in string, args ...string) string {
	t.Helper()
	out, said, err := try(in, args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	noSecret(t, said)
	return out
}

// seeds matches seeds of nkeys.
var seeds = regexp.MustCompile(`\bSU[A-Z2-7]{56}\b`)

// noSecret checks that a text shows no seed and no key.
func noSecret(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, "PRIVATE KEY") || seeds.MatchString(text) {
		t.Errorf("it shows a secret:\n%s", text)
	}
}

// objects reads Secrets as they are printed.
func objects(t *testing.T, text string) []secrets.Object {
	t.Helper()
	var list []secrets.Object
	for one := range strings.SplitSeq(text, "---\n") {
		var s secrets.Object
		if _, err := strictyaml.Decode([]byte(one), &s, strictyaml.Options{MaxBytes: 16 << 20}); err != nil {
			t.Fatalf("%v\n%s", err, one)
		}
		list = append(list, s)
	}
	return list
}

// entry returns an entry of one of several Secrets.
func entry(t *testing.T, list []secrets.Object, secret, key string) string {
	t.Helper()
	for _, s := range list {
		if s.Metadata.Name == secret {
			text, err := base64.StdEncoding.DecodeString(s.Data[key])
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
	return ""
}

// kubectl returns Secrets as kubectl get -o json prints them, with one of somebody
// else.
func kubectl(t *testing.T, list []secrets.Object) string {
	t.Helper()
	other := secrets.Object{Kind: "Secret", Metadata: secrets.Metadata{Name: "other", Namespace: "pfl-forge"}, Data: map[string]string{"x": "?"}}
	text, err := json.Marshal(map[string]any{"kind": "List", "items": append(slices.Clone(list), other)})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSecretsOfKubernetes checks names, labels and entries of the Secrets that
// manifests rely on, that seeds and permissions belong together, and that the
// certificate is good for each name of the server.
func TestSecretsOfKubernetes(t *testing.T) {
	list := objects(t, run(t, "", "--kubernetes"))
	want := map[string]string{
		"forge-nats-server": "auth.conf ca.crt tls.crt tls.key", "forge-nats-ca": "ca.crt ca.key",
		"forge-nats-signers": "allowed_signers",
		"forge-nats-runner":  "ca.crt nkey", "forge-nats-analyzer": "ca.crt nkey", "forge-nats-implementer": "ca.crt nkey",
		"forge-nats-reviewer": "ca.crt nkey", "forge-nats-reflector": "ca.crt nkey", "forge-nats-operator": "ca.crt nkey", "forge-nats-submitter": "ca.crt nkey",
	}
	got := map[string]string{}
	for _, s := range list {
		got[s.Metadata.Name] = strings.Join(slices.Sorted(maps.Keys(s.Data)), " ")
		if s.APIVersion != "v1" || s.Kind != "Secret" || s.Type != "Opaque" || s.Metadata.Namespace != "pfl-forge" ||
			s.Metadata.Labels[secrets.PartOf] != "pfl-forge" {
			t.Errorf("got %+v", s.Metadata)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	users, err := access.ParseConf(entry(t, list, "forge-nats-server", "auth.conf"))
	if err != nil || len(users) != 7 {
		t.Fatalf("%d users, %v", len(users), err)
	}
	for _, u := range users {
		file := filepath.Join(t.TempDir(), "nkey")
		if err := os.WriteFile(file, []byte(entry(t, list, secrets.ObjectOf(u.Name), "nkey")), 0o600); err != nil {
			t.Fatal(err)
		}
		if public, err := bus.PublicKey(file); err != nil || public != u.Public() {
			t.Errorf("%s: the seed is of %s, %v, the server knows %s", u.Name, public, err, u.Public())
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(entry(t, list, "forge-nats-runner", "ca.crt")))
	block, _ := pem.Decode([]byte(entry(t, list, "forge-nats-server", "tls.crt")))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"nats", "nats.pfl-forge", "nats.pfl-forge.svc", "nats.pfl-forge.svc.cluster.local", "nats-0.nats.pfl-forge.svc", "nats-0.nats-headless",
		"nats-2.nats-headless.pfl-forge.svc.cluster.local", "localhost", "127.0.0.1",
	} {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: pool, DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: pool, DNSName: "nats.other.svc"}); err == nil {
		t.Error("the certificate is good for another namespace")
	}
}

// TestSecretsOfBackups: the account of backups has a Secret as pods read it,
// made at the beginning or added to what there is.
func TestSecretsOfBackups(t *testing.T) {
	for name, list := range map[string][]secrets.Object{
		"at the beginning": objects(t, run(t, "", "--kubernetes", "--backups")),
		"later":            objects(t, run(t, kubectl(t, objects(t, run(t, "", "--kubernetes"))), "--kubernetes", "--backups", "--from", "-")),
	} {
		if entry(t, list, "forge-nats-backup", "nkey") == "" || entry(t, list, "forge-nats-backup", "ca.crt") == "" {
			t.Errorf("%s: no key, or no authority", name)
		}
		users, err := access.ParseConf(entry(t, list, "forge-nats-server", "auth.conf"))
		if i := access.Find(users, "backup"); err != nil || i < 0 || users[i].Role != access.Backup {
			t.Errorf("%s: %v, the server knows %v", name, err, users)
		}
	}
}

// TestRenewalKeepsTheOthers checks that renewing an account changes its own Secret
// and the server's permissions, and nothing else; that adding one lets services
// answer it; and that the certificate is renewed by the authority that was kept.
func TestRenewalKeepsTheOthers(t *testing.T) {
	first := objects(t, run(t, "", "--kubernetes"))
	next := objects(t, run(t, kubectl(t, first), "--kubernetes", "--from", "-", "--role", "reviewer"))
	if len(next) != 3 || next[0].Metadata.Name != "forge-nats-signers" || next[1].Metadata.Name != "forge-nats-reviewer" ||
		next[2].Metadata.Name != "forge-nats-server" {
		t.Fatalf("%d Secrets, the first is %s", len(next), next[0].Metadata.Name)
	}
	for secret, keys := range map[string][]string{"forge-nats-server": {"tls.crt", "tls.key", "ca.crt"}, "forge-nats-reviewer": {"ca.crt"}} {
		for _, key := range keys {
			if before, after := entry(t, first, secret, key), entry(t, next, secret, key); before != after || before == "" {
				t.Errorf("%s of %s has changed", key, secret)
			}
		}
	}
	before, after := keys(t, entry(t, first, "forge-nats-server", "auth.conf")), keys(t, entry(t, next, "forge-nats-server", "auth.conf"))
	for name, key := range before {
		if (after[name] != key) != (name == "reviewer") {
			t.Errorf("%s had the key %s, and has %s", name, key, after[name])
		}
	}
	added := objects(t, run(t, kubectl(t, first), "--kubernetes", "--from", "-", "--person", "ada", "--projects", "shop"))
	conf := entry(t, added, "forge-nats-server", "auth.conf")
	if len(added) != 3 || !strings.Contains(conf, `"_INBOX_ada.>"`) || !strings.Contains(conf, `"forge.intent.shop.by.ada.*"`) {
		t.Errorf("%d Secrets:\n%s", len(added), conf)
	}
	renewed := objects(t, run(t, kubectl(t, first), "--kubernetes", "--from", "-", "--role", "server"))
	if entry(t, renewed, "forge-nats-server", "tls.crt") == entry(t, first, "forge-nats-server", "tls.crt") {
		t.Error("the certificate is the same")
	}
	if entry(t, renewed, "forge-nats-server", "ca.crt") != entry(t, first, "forge-nats-server", "ca.crt") {
		t.Error("the authority is another one")
	}
	if entry(t, renewed, "forge-nats-server", "auth.conf") != entry(t, first, "forge-nats-server", "auth.conf") {
		t.Error("the permissions are others")
	}
}

// keys returns the public keys in a server's configuration, by account.
func keys(t *testing.T, conf string) map[string]string {
	t.Helper()
	users, err := access.ParseConf(conf)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for i := range users {
		list[users[i].Name] = users[i].Public()
	}
	return list
}

// contents returns the files of a folder, all of which must be for their owner
// alone.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[e.Name()] = string(text)
	}
	return found
}

// TestNothingIsOverwritten checks, for both forms, that credentials that exist are
// kept until their renewal is asked for, and that --force renews them all.
func TestNothingIsOverwritten(t *testing.T) {
	for name, form := range map[string][]string{"plain files": nil, "Secrets": {"--kubernetes"}} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "new", "keys")
			args := append([]string{"--out", dir}, form...)
			noSecret(t, run(t, "", append(args, "-o", "json")...))
			first := contents(t, dir)
			if _, _, err := try("", args...); err == nil || !strings.Contains(err.Error(), "exist already") {
				t.Errorf("again: %v", err)
			}
			if _, _, err := try("", append(args, "--person", "operator")...); err == nil || !strings.Contains(err.Error(), "exists already") {
				t.Errorf("a person that there is: %v", err)
			}
			if _, _, err := try("", append(args, "--role", "nobody")...); err == nil || !strings.Contains(err.Error(), `no account "nobody"`) {
				t.Errorf("a role that there is not: %v", err)
			}
			if diff := cmp.Diff(first, contents(t, dir)); diff != "" {
				t.Errorf("it was refused, and changed\n%s", diff)
			}
			var doc document
			if err := json.Unmarshal([]byte(run(t, "", append(args, "--role", "reviewer", "-o", "json")...)), &doc); err != nil || len(doc.Written) != 3 {
				t.Errorf("%v, %v", doc.Written, err)
			}
			for _, account := range doc.Accounts {
				if account.Renewed != (account.Name == "reviewer") {
					t.Errorf("got %+v", account)
				}
			}
			second := contents(t, dir)
			for file, text := range first {
				ofReviewer := strings.Contains(file, "reviewer") ||
					slices.Contains([]string{"auth.conf", "allowed_signers", "forge-nats-server.yaml", "forge-nats-signers.yaml"}, file)
				if (second[file] != text) != ofReviewer {
					t.Errorf("%s: changed is %t", file, second[file] != text)
				}
			}
			run(t, "", append(args, "--force")...)
			for file, text := range contents(t, dir) {
				if text == second[file] && file != "nats.conf" {
					t.Errorf("%s is the same after --force", file)
				}
			}
		})
	}
}

// TestGivenAuthority checks that a person's own authority signs, and is not stored,
// and that certificates are left to others.
func TestGivenAuthority(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	run(t, "", "--out", dir)
	authority := []string{"--ca-cert", filepath.Join(dir, "ca.crt"), "--ca-key", filepath.Join(dir, "ca.key")}
	run(t, "", append(authority, "--out", other, "--host", "nats.example.com", "--host", "10.1.2.3")...)
	made := contents(t, other)
	if made["ca.crt"] != contents(t, dir)["ca.crt"] || made["ca.key"] != "" {
		t.Error("the authority is another one, or its key was copied")
	}
	block, _ := pem.Decode([]byte(made["tls.crt"]))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nats.example.com", "10.1.2.3"} {
		if err := cert.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := try("", "--out", other, "--role", "server"); err == nil || !strings.Contains(err.Error(), "give --ca-cert and --ca-key") {
		t.Errorf("without the authority: %v", err)
	}
	none := t.TempDir()
	run(t, "", "--out", none, "--no-tls-certs")
	for file, text := range contents(t, none) {
		if strings.Contains(file, "tls") || strings.Contains(file, "ca.") || strings.Contains(text, "cert_file") {
			t.Errorf("%s is about certificates", file)
		}
	}
}

// TestBadArguments checks that each mistake is named, and that nothing is written.
func TestBadArguments(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "auth.conf"), []byte("authorization { token: x }"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"--out, the folder", nil},
		{"--namespace", []string{"--kubernetes", "--namespace", "a.b"}},
		{"--from needs --kubernetes", []string{"--out", dir, "--from", "-"}},
		{"cannot be given together", []string{"--kubernetes", "--out", dir, "--from", "-"}},
		{"needs --out", []string{"--kubernetes", "-o", "json"}},
		{"no list of Secrets", []string{"--kubernetes", "--from", "-"}},
		{"--from: open", []string{"--kubernetes", "--from", dir}},
		{"nothing exists yet", []string{"--out", dir, "--role", "runner"}},
		{"--person: name of the account", []string{"--out", dir, "--person", "../x"}},
		{"--system: name of the account", []string{"--out", dir, "--system", "a*"}},
		{"--follower: name of the account", []string{"--out", dir, "--follower", "runner"}},
		{"project id", []string{"--out", dir, "--person", "ada", "--projects", "a.b"}},
		{"--ca-cert", []string{"--out", dir, "--ca-cert", dir, "--ca-key", dir}},
		{"not written by pfl-forge", []string{"--out", foreign, "--force"}},
		{"--host", []string{"--out", dir, "--host", "a b"}},
	} {
		if _, _, err := try("{", tt.args...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v", tt.args, err)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("something was written")
	}
	if _, err := fs.Stat(os.DirFS(foreign), "nats.conf"); err == nil {
		t.Error("something was written beside the files of others")
	}
}
