package auth

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/proof"
)

// TestSignedBySystems signs a message as a system does from a shell: runners that
// know the file of auth init believe it, for its subject and content.
func TestSignedBySystems(t *testing.T) {
	dir := t.TempDir()
	run(t, "", "--out", dir, "--system", "scanner", "--no-tls-certs")
	const subject, wish = "forge.intent.shop.from.scanner.submit", `{"title": "t"}`
	call := func(args ...string) (string, error) {
		var out bytes.Buffer
		a := &kit.App{In: strings.NewReader(wish), Out: &out, Err: &out}
		a.NKey = filepath.Join(dir, "scanner.nk")
		cmd := Command(a)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append([]string{"sign"}, args...))
		err := cmd.Execute()
		return out.String(), err
	}
	said, err := call("--account", "scanner", "--subject", subject)
	if err != nil {
		t.Fatal(err)
	}
	header, text, _ := strings.Cut(strings.TrimSpace(said), ": ")
	list, err := proof.ReadSigners(filepath.Join(dir, "allowed_signers"))
	if err != nil || header != signed.Header {
		t.Fatalf("printed %s, %v", said, err)
	}
	from := signed.AuthorOf(subjects.Sender{Project: "shop", Named: true, Name: "scanner", Verb: "submit"})
	keys := signed.NewKeys(list)
	if _, err := keys.Check(&signed.Message{Subject: subject, Payload: []byte(wish)}, []string{text}, time.Now(), from); err != nil {
		t.Error(err)
	}
	if _, err := keys.Check(&signed.Message{Subject: subject, Payload: []byte("{}")}, []string{text}, time.Now(), from); err == nil {
		t.Error("another content is believed")
	}
	for _, args := range [][]string{
		nil,
		{"--account", "scanner"},
		{"--subject", subject},
		{"--account", "scanner", "--subject", "forge.>"},
		{"--account", "runner", "--subject", subject},
		{"--account", "scanner", "--subject", subject, "--id", strings.Repeat("/", 2000)},
	} {
		if said, err := call(args...); err == nil {
			t.Errorf("%v: printed %s", args, said)
		}
	}
}
