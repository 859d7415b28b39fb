package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// try runs gateway init, and returns what it prints for programs and for people.
func try(args ...string) (out, said string, err error) {
	var stdout, stderr bytes.Buffer
	cmd := Command(&kit.App{In: strings.NewReader(""), Out: &stdout, Err: &stderr, Getenv: func(string) string { return "" }})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(append([]string{"init"}, args...))
	err = cmd.Execute()
	return stdout.String(), stderr.String(), err
}

// atForge returns a fake with the repository root1/web, which bot may administer and ada write, and the flags for it.
func atForge(t *testing.T) (f *forgetest.Fake, flags []string) {
	t.Helper()
	f = forgetest.NewFake()
	t.Cleanup(f.Close)
	for _, one := range []struct {
		method, path string
		in           map[string]any
	}{
		{http.MethodPost, "/user/repos", map[string]any{"name": "web"}},
		{http.MethodPut, "/repos/root1/web/collaborators/bot", map[string]any{"permission": "admin"}},
		{http.MethodPut, "/repos/root1/web/collaborators/ada", map[string]any{"permission": "write"}},
	} {
		data, err := json.Marshal(one.in)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(wait.Context(t), one.method, f.URL()+"/api/v1"+one.path, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "token root1")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode >= 300 {
			t.Fatalf("%s: %d, %v", one.path, resp.StatusCode, err)
		}
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("bot\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return f, []string{"--gitea", f.URL(), "--repository", "root1/web", "--token-file", token}
}

// TestInit: the files that it writes are settings of a gateway, which say what was asked for; it never writes over one, and the token is in none.
func TestInit(t *testing.T) {
	f, flags := atForge(t)
	dir := filepath.Join(t.TempDir(), "new")
	flags = append(flags, "--out", dir)
	out, said, err := try(append(flags, "--project", "shop", "--person", "ada", "--recipe", "a: [b", "--label", `it's "so"`)...)
	if err != nil || strings.Count(out, dir) != 4 || !strings.Contains(said, "trusted_origins: [gitea]") {
		t.Fatalf("%q, %q, %v", out, said, err)
	}
	if _, err := gateway.ReadSettings(filepath.Join(dir, "gateway.yaml")); err != nil {
		t.Error(err)
	}
	book, err := tokens.Open(filepath.Join(dir, "tokens.yaml"), slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if ada, err := book.ByAccount("gitea", "3"); err != nil || ada.Person != "ada" || !ada.May("shop", tokens.Approve) || ada.May("web", tokens.List) {
		t.Errorf("the person is %+v, %v", ada, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "intake.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if rules, err := intake.Parse("intake.yaml", text); err == nil || !strings.Contains(err.Error(), "recipe") || rules != nil {
		t.Errorf("a recipe that cannot be one is not found: %v", err)
	}
	if _, _, err := try(flags...); err == nil || !strings.Contains(err.Error(), "gateway.yaml is there already") {
		t.Errorf("written again: %v", err)
	}
	if again, err := os.ReadFile(filepath.Join(dir, "intake.yaml")); err != nil || !bytes.Equal(again, text) {
		t.Errorf("it is another file now: %v", err)
	}
	if n := f.Asked(http.MethodPost, "/pulls"); n != 2 {
		t.Errorf("it was tried %d times what the token may", n)
	}
}

// TestInitRefuses: what is missing or wrong is named by flag, or in the words of the forge, and then nothing is written.
func TestInitRefuses(t *testing.T) {
	f, flags := atForge(t)
	for want, args := range map[string][]string{
		"--gitea, the address of the forge":                {"--repository", "a/b", "--token-file", "x"},
		"--repository: has to be owner/name":               {"--gitea", f.URL(), "--repository", "web", "--token-file", "x"},
		"--project: ":                                      append([]string{"--project", "No Id"}, flags...),
		"--person: the forge has no account zoe":           append([]string{"--person", "zoe"}, flags...),
		"--person: eve may not write in root1/web":         append([]string{"--person", "eve"}, flags...),
		"a repository root1/none that the account may see": append(flags[:2:2], "--repository", "root1/none", "--token-file", flags[5]),
		"https": {"--gitea", "http://192.0.2.1", "--repository", "a/b", "--token-file", flags[5]},
		filepath.Join(filepath.Dir(flags[5]), "gone") + ": no": append(flags[:4:4], "--token-file", filepath.Join(filepath.Dir(flags[5]), "gone")),
	} {
		dir := t.TempDir()
		out, _, err := try(append(args, "--out", dir)...)
		if err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%v: %q, %v, want %s", args, out, err, want)
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
			t.Errorf("%v: there are %v, %v", args, list, err)
		}
	}
}
