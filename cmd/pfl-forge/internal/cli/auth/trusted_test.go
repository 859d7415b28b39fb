package auth

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/proof"
)

// TestTrustedKeysComeFirst checks the order in which files are written, and that the
// file of trusted keys is not begun anew beside accounts whose keys it would lack.
func TestTrustedKeysComeFirst(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	run(t, "", "--out", dir)
	var doc document
	if err := json.Unmarshal([]byte(run(t, "", "--out", dir, "--person", "ada", "-o", "json")), &doc); err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "allowed_signers"), filepath.Join(dir, "ada.nk"), filepath.Join(dir, "auth.conf")}
	if diff := cmp.Diff(want, doc.Written); diff != "" {
		t.Error(diff)
	}
	if err := os.Remove(want[0]); err != nil {
		t.Fatal(err)
	}
	before := contents(t, dir)
	for _, args := range [][]string{{"--role", "reviewer"}, {"--person", "bob"}} {
		_, _, err := try("", append(args, "--out", dir)...)
		for _, want := range []string{"no allowed_signers", "implementer", "--force"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v, without %s", args, err, want)
			}
		}
	}
	if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
		t.Errorf("it was refused, and changed\n%s", diff)
	}
	run(t, "", "--out", dir, "--follower", "tracker") // who signs nothing
	run(t, "", "--out", dir, "--role", "server")
	run(t, "", "--out", dir, "--force")
	if list, err := proof.ReadSigners(want[0]); err != nil || len(list) != len(basis())+1 {
		t.Errorf("renewed, the keys are %v, %v", list, err)
	}
}

// TestRestartIsAskedFor: whoever changes a key where people log in is told that
// the server has to be restarted, and no other is.
func TestRestartIsAskedFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, false},
		{[]string{"--role", "reviewer"}, false},
		{[]string{"--logins"}, true},
		{[]string{"--role", "reviewer"}, true},
		{[]string{"--person", "ada"}, true},
		{[]string{"--role", "server"}, false}, // the certificate, and rights of the same keys
	} {
		_, said, err := try("", append(c.args, "--out", dir)...)
		if err != nil || strings.Contains(said, "restart the NATS servers") != c.want {
			t.Errorf("%v: %v, said %q", c.args, err, said)
		}
	}
}
