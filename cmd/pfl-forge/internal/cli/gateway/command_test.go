package gateway

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/gateway"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	act "github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/person"
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

// repository is that of the fake, whose labels are asked for by the path.
const repository = "root1/web"

// atForge returns a fake with the repository root1/web, which bot may
// administer and ada write, and the flags for it as a kind of forge.
func atForge(t *testing.T, kind string) (f *forgetest.Fake, flags []string) {
	t.Helper()
	f = forgetest.NewFake()
	t.Cleanup(f.Close)
	root := act.Person{API: f.URL() + act.Gitea, Token: "root1"}
	root.Does(t, http.MethodPost, "/user/repos", map[string]any{"name": "web"}, nil)
	root.Does(t, http.MethodPut, "/repos/root1/web/collaborators/bot", map[string]any{"permission": "admin"}, nil)
	root.Does(t, http.MethodPut, "/repos/root1/web/collaborators/ada", map[string]any{"permission": "write"}, nil)
	return f, []string{"--" + kind, f.URL(), "--repository", repository, "--token-file", secret(t, "token", "bot\n")}
}

// secret returns the path of a file of a text.
func secret(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// key is that of an App, made once: it takes a while.
var key = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

// asApp returns the flags for an App in place of those for a token, and its installation.
func asApp(t *testing.T, f *forgetest.Fake, flags []string) (app []string, installation int64) {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key())})
	return append(flags[:4:4], "--app", "Iv1", "--key-file", secret(t, "app.pem", string(text))), f.Hub.Install("Iv1", &key().PublicKey, repository)
}

// TestInit: the files that it writes are settings that a gateway takes, at each kind of forge,
// and say what was asked for. It makes the label, and the token and the key are in none.
func TestInit(t *testing.T) {
	for _, kind := range []string{kindGitea, kindGitHub, kindGitLab, "app"} {
		t.Run(kind, func(t *testing.T) {
			name := strings.Replace(kind, "app", kindGitHub, 1)
			f, flags := atForge(t, name)
			as := "token_file: "
			if kind == "app" {
				var id int64
				flags, id = asApp(t, f, flags)
				as = fmt.Sprintf(`app: {id: "Iv1", installation: %d, key_file: `, id)
			}
			dir := filepath.Join(t.TempDir(), "new")
			out, said, err := try(append(flags, "--out", dir, "--person", "ada")...)
			if err != nil || strings.Count(out, dir) != 4 || !containsAll(said, []string{"trusted_origins: [" + name + "]", "made the label forge"}) {
				t.Fatalf("%q, %q, %v", out, said, err)
			}
			settings, err := gateway.ReadSettings(filepath.Join(dir, "gateway.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			worker := func(...service.Handler) *service.Worker { return &service.Worker{} }
			if _, err := gateway.New(gateway.Config{Settings: settings, Bus: &bus.Bus{}, Log: slog.New(slog.DiscardHandler), Worker: worker}); err != nil {
				t.Error(err)
			}
			text, err := os.ReadFile(filepath.Join(dir, "forges.yaml"))
			if want := []string{"kind: " + name + "\n", as, `{"web": "root1/web"}`}; err != nil || !containsAll(string(text), want) {
				t.Errorf("it holds %s, %v, want %q", text, err, want)
			}
			book, err := tokens.Open(filepath.Join(dir, "tokens.yaml"), slog.New(slog.DiscardHandler), time.Now)
			if err != nil {
				t.Fatal(err)
			}
			if ada, err := book.ByAccount(name, "3"); err != nil || ada.Person != "ada" || !ada.May("web", tokens.Approve) || ada.May("shop", tokens.List) {
				t.Errorf("the person is %+v, %v", ada, err)
			}
			dir = t.TempDir()
			if _, said, err := try(append(flags, "--out", dir)...); err != nil || strings.Contains(said, "made the label") {
				t.Errorf("once more: %q, %v", said, err)
			}
		})
	}
}

// containsAll reports whether a text has all of some parts.
func containsAll(text string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
}

// TestInitQuotes: nothing that was typed is YAML of its own, and no file is written over.
func TestInitQuotes(t *testing.T) {
	f, flags := atForge(t, kindGitea)
	dir := filepath.Join(t.TempDir(), "new")
	flags = append(flags, "--out", dir)
	if _, _, err := try(append(flags, "--project", "shop", "--recipe", "a: [b", "--label", `it's "so"`)...); err != nil {
		t.Fatal(err)
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

// TestInitRefuses: what is missing or wrong is named by flag, or in the words
// of the forge, and then nothing is written.
func TestInitRefuses(t *testing.T) {
	f, flags := atForge(t, kindGitea)
	token := flags[5]
	at := func(kind string, more ...string) []string {
		return append([]string{"--" + kind, f.URL(), "--repository", repository}, more...)
	}
	app, installation := asApp(t, f, at(kindGitHub))
	gone := filepath.Join(filepath.Dir(token), "gone")
	for want, args := range map[string][]string{
		"one of --gitea, --github and --gitlab":            {"--repository", "a/b", "--token-file", "x"},
		"none of the others can be":                        append([]string{"--github", f.URL()}, flags...),
		"--repository: has to be owner/name":               {"--gitea", f.URL(), "--repository", "web", "--token-file", "x"},
		"--repository: has to be owner/name or":            {"--gitlab", f.URL(), "--repository", "a/../b", "--token-file", "x"},
		"--token-file, with the token":                     at(kindGitHub),
		"--app: only github has Apps":                      at(kindGitLab, "--app", "Iv1", "--key-file", "x"),
		"--app, the id of the App":                         at(kindGitHub, "--key-file", "x"),
		"--key-file, with the private key":                 at(kindGitHub, "--app", "Iv1"),
		"--token-file: there is --app as well":             append([]string{"--token-file", token}, app...),
		"--project: ":                                      append([]string{"--project", "No Id"}, flags...),
		"--person: the forge has no account zoe":           append([]string{"--person", "zoe"}, flags...),
		"--person: eve has no write access to root1/web":   append([]string{"--person", "eve"}, flags...),
		"a repository root1/none that the account may see": append(flags[:2:2], "--repository", "root1/none", "--token-file", token),
		"https":       {"--gitea", "http://192.0.2.1", "--repository", "a/b", "--token-file", token},
		gone + ": no": append(flags[:4:4], "--token-file", gone),
		"app.id and app.key_file have to be of one App":     append(app[:4:4], "--app", "Iv2", "--key-file", app[7]),
		"- the right to write in root1/web for the account": at(kindGitHub, "--token-file", secret(t, "token", "eve")),
		"- the role Developer in root1/web":                 at(kindGitLab, "--token-file", secret(t, "token", "eve")),
	} {
		refused(t, want, args)
	}
	f.Hub.Grant(installation, map[string]string{"metadata": "read", "issues": "read", "contents": "write", "checks": "read", "statuses": "write"})
	refused(t, "- the permission Issues: Read and write, of the App", app)
}

// refused holds that a command is refused with some words, and writes nothing.
func refused(t *testing.T, want string, args []string) {
	t.Helper()
	dir := t.TempDir()
	out, _, err := try(append(slices.Clone(args), "--out", dir)...)
	if err == nil || !strings.Contains(err.Error(), want) || out != "" {
		t.Errorf("%v: %q, %v, want %s", args, out, err, want)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("%v: there are %v, %v", args, list, err)
	}
}
