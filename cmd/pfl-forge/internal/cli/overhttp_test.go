package cli

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

// nowhere is an address at which nothing is asked in these tests.
const nowhere = "https://192.0.2.1"

// TestEveryCommandByHTTP: the table says of every command what it does by HTTP, and has no
// other. What does not work says so before it asks for anything, with what to do instead.
func TestEveryCommandByHTTP(t *testing.T) {
	t.Parallel()
	left := maps.Clone(byHTTP)
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		_, path, _ := strings.Cut(c.CommandPath(), " ")
		said, known := byHTTP[path]
		delete(left, path)
		if path != "" && !known {
			t.Errorf("the table does not say what becomes of %s", path)
		}
		if path == "" || known && said == works {
			for _, below := range c.Commands() {
				visit(below)
			}
		}
		if !known || said == works || said == local || !c.Runnable() {
			return
		}
		var text bytes.Buffer
		args := append(strings.Fields(path), "--server", nowhere, "-C", t.TempDir())
		for range len(strings.Fields(c.Use)) - 1 { // as many arguments as it has
			args = append(args, "1")
		}
		code := Main(args, strings.NewReader(""), &text, &text, func(string) string { return "" })
		if code != int(kit.ExitError) || !strings.Contains(text.String(), path+" does not work by HTTP: ") && !strings.Contains(text.String(), "--help") {
			t.Errorf("%v: exit code %d, said %q", args, code, text.String())
		}
	}
	visit(newRoot(&kit.App{Getenv: func(string) string { return "" }}))
	if len(left) > 0 {
		t.Errorf("the table has what there is not: %v", slices.Sorted(maps.Keys(left)))
	}
}

// TestGuideSaysWhatIsRefused: the guide names every command that does not work by HTTP.
func TestGuideSaysWhatIsRefused(t *testing.T) {
	t.Parallel()
	guide := readDoc(t, "docs/guide-api.md")
	for path, said := range byHTTP {
		if said != works && said != local && !strings.Contains(guide, "`"+path+"`") {
			t.Errorf("the guide does not name %s", path)
		}
	}
}

// TestTokenByHTTP: the token comes from a file or the environment, nothing that is said repeats it,
// and what is for NATS is refused if it was typed, and passed over where the environment has it.
func TestTokenByHTTP(t *testing.T) {
	t.Parallel()
	const secret = "s3cret-token"
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	two, empty := file("two", secret+"\n"+secret), file("empty", "\n")
	for _, one := range []struct {
		args []string
		env  map[string]string
		want string
	}{
		{nil, nil, "a token is missing: put it into PFL_FORGE_TOKEN, or into the file of --token-file"},
		{nil, map[string]string{"PFL_FORGE_TOKEN": secret + " " + secret}, "PFL_FORGE_TOKEN holds more than one line or word"},
		{nil, map[string]string{"FORGE_TOKEN_FILE": empty}, empty + " is empty"},
		{nil, map[string]string{"FORGE_TOKEN_FILE": empty, "PFL_FORGE_TOKEN": strings.Repeat(secret, 30)}, "PFL_FORGE_TOKEN has 360 bytes"},
		{[]string{"--token-file", two}, map[string]string{"PFL_FORGE_TOKEN": secret}, "--token-file: " + two + " holds more than one line"},
		{[]string{"--token-file", dir + "/none"}, nil, "--token-file: open "},
		{[]string{"--nkey", two}, map[string]string{"PFL_FORGE_TOKEN": secret}, "--nkey: is for a NATS server"},
		{[]string{"--person", "ada"}, map[string]string{"PFL_FORGE_TOKEN": secret}, "--person: is for a NATS server"},
		{
			[]string{"--tls-ca", dir + "/none"},
			map[string]string{"PFL_FORGE_TOKEN": secret, "FORGE_NKEY": two, "FORGE_PERSON": "ada", "FORGE_TLS_CERT": two, "FORGE_CREDS": two},
			"--tls-ca: open ",
		},
		{[]string{"--server", "http://192.0.2.1"}, map[string]string{"PFL_FORGE_TOKEN": secret}, "without TLS everybody on the way can read the token"},
	} {
		var text bytes.Buffer
		args := append([]string{"status", "-C", dir, "--server", nowhere, "--project", "shop", "-v"}, one.args...)
		code := Main(args, strings.NewReader(""), &text, &text, func(name string) string { return one.env[name] })
		if code != int(kit.ExitError) || !strings.Contains(text.String(), one.want) || strings.Contains(text.String(), secret) {
			t.Errorf("%v, %v: exit code %d, said %q, want %q", one.args, one.env, code, text.String(), one.want)
		}
	}
}
