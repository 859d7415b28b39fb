package service

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/internal/testdir"
	"github.com/pfl-forge/pfl-forge/quota"
)

func env(m map[string]string) func(string) string {
	return func(k string) string { return m[k] }
}

// merged returns an environment with more variables.
func merged(a, b map[string]string) map[string]string {
	c := maps.Clone(a)
	maps.Copy(c, b)
	return c
}

// keyFiles are the files of an account: an nkey's seed, and a certificate with its key.
type keyFiles struct{ seed, cert, key string }

func newKeyFiles(t *testing.T) keyFiles {
	t.Helper()
	dir := t.TempDir()
	f := keyFiles{filepath.Join(dir, "nkey"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	_, seed, err := access.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		os.WriteFile(f.seed, seed, 0o600),
		os.WriteFile(f.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600),
		os.WriteFile(f.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFlagBeatsEnvironmentBeatsDefault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	creds, token := filepath.Join(dir, "creds"), filepath.Join(dir, "token")
	key := newKeyFiles(t)
	if err := errors.Join(os.WriteFile(creds, []byte("x"), 0o600), os.WriteFile(token, []byte(" s3cret\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	home := map[string]string{"HOME": "/home/dev", "FORGE_REPLICA": "a"}
	full := map[string]string{
		"FORGE_SERVER": "nats://n1:4222,nats://n2:4222", "FORGE_CREDS": creds, "FORGE_REPLICA": "impl-0",
		"FORGE_PROJECTS": "shop=https://git.example.com/shop.git,docs=/srv/docs.git", "FORGE_STATE_DIR": "/var/lib/forge",
		"FORGE_LISTEN": ":8080", "FORGE_WORKERS": "8", "FORGE_DRAIN_TIMEOUT": "2m", "FORGE_LOG_LEVEL": "debug", "FORGE_LOG_FORMAT": "text",
	}
	quotas := RunnerConfig{Quotas: quota.Limits{Project: 10_000, System: 5_000}}
	plain := Config{
		Server: "nats://127.0.0.1:4222", Replica: "a", StateDir: "/home/dev/.local/state/pfl-forge/reviewer/a",
		Workers: 4, DrainTimeout: 25 * time.Second, Log: LogConfig{slog.LevelInfo, "json"}, Runner: quotas,
	}
	told := Config{
		Server: "nats://n1:4222,nats://n2:4222", Creds: creds, Replica: "impl-0",
		Projects: []Project{{ID: "shop", URL: "https://git.example.com/shop.git"}, {ID: "docs", URL: "/srv/docs.git"}},
		StateDir: "/var/lib/forge", Listen: ":8080", Workers: 8, DrainTimeout: 2 * time.Minute, Log: LogConfig{slog.LevelDebug, "text"}, Runner: quotas,
	}
	with := func(c Config, change func(*Config)) Config {
		change(&c)
		return c
	}
	tests := map[string]struct {
		args []string
		env  map[string]string
		want Config
	}{
		"defaults":    {nil, home, plain},
		"environment": {nil, full, told},
		"flags": {
			[]string{"--server=tls://other", "--replica", "b", "--workers=1", "--project=one=/srv/one", "--project", "two=git@example.com:two"},
			full, with(told, func(c *Config) {
				c.Server, c.Replica, c.Workers = "tls://other", "b", 1
				c.Projects = []Project{{ID: "one", URL: "/srv/one"}, {ID: "two", URL: "git@example.com:two"}}
			}),
		},
		"clones at first use": {[]string{"--clone=first-use"}, home, with(plain, func(c *Config) { c.CloneAtFirstUse = true })},
		"a cluster":           {[]string{"--stream-replicas=3"}, home, with(plain, func(c *Config) { c.Replicas = 3 })},
		"quotas": {
			[]string{"--quota-project=7", "--quota-system=3", "--quota-calls=12"},
			home,
			with(plain, func(c *Config) { c.Runner.Quotas = quota.Limits{Project: 7, System: 3, Calls: 12} }),
		},
		"bounds of commands": {
			[]string{"--command-disk=20GiB"},
			merged(home, map[string]string{"FORGE_COMMAND_MEMORY": "512MiB", "FORGE_COMMAND_DISK": "1GiB"}),
			with(plain, func(c *Config) { c.Commands.Bounds = demand.Bounds{Memory: 512 << 20, Disk: 20 << 30} }),
		},
		"older rules":          {[]string{"--rules=1"}, home, with(plain, func(c *Config) { c.Runner.Rules = 1 })},
		"the last flag counts": {[]string{"--workers=1", "--workers=2"}, home, with(plain, func(c *Config) { c.Workers = 2 })},
		"an empty flag takes back the environment": {
			[]string{"--creds=", "--token-file", token, "--listen="},
			full,
			with(told, func(c *Config) { c.Creds, c.TokenFile, c.Listen = "", token, "" }),
		},
		"files of credentials": {
			[]string{"--credentials-dir", dir}, home, with(plain, func(c *Config) { c.CredentialsDir = dir }),
		},
		"an nkey and certificates": {
			[]string{"--creds=", "--nkey", key.seed, "--tls-cert", key.cert},
			merged(full, map[string]string{"FORGE_TLS_CA": key.cert, "FORGE_TLS_KEY": key.key}),
			with(told, func(c *Config) {
				c.Creds, c.NKey, c.TLS = "", key.seed, bus.TLS{CA: key.cert, Cert: key.cert, Key: key.key}
			}),
		},
		"an empty variable is none": {nil, map[string]string{"HOME": "/home/dev", "FORGE_REPLICA": "a", "FORGE_WORKERS": ""}, plain},
		"replica names the directory": {
			[]string{"--replica=b"},
			map[string]string{"HOME": "/h", "XDG_STATE_HOME": "/state"},
			with(plain, func(c *Config) { c.Replica, c.StateDir = "b", "/state/pfl-forge/reviewer/b" }),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse("reviewer", tt.args, env(tt.env))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
	c := Config{TokenFile: token}
	if got, err := c.Token(); got != "s3cret" || err != nil {
		t.Errorf("token %q, %v", got, err)
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	two := filepath.Join(dir, "two")
	if err := os.WriteFile(two, []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	key := newKeyFiles(t)
	tests := []struct{ flag, env, value, want string }{
		{"nkey", "FORGE_NKEY", filepath.Join(dir, "none"), "no such file"},
		{"nkey", "FORGE_NKEY", two, "does not hold the seed of an nkey"},
		{"nkey", "FORGE_NKEY", dir, "not a regular file"},
		{"tls-ca", "FORGE_TLS_CA", filepath.Join(dir, "none"), "no such file"},
		{"tls-ca", "FORGE_TLS_CA", key.key, "holds none in PEM"},
		{"tls-cert", "FORGE_TLS_CERT", filepath.Join(dir, "none"), "no such file"},
		{"tls-cert", "FORGE_TLS_CERT", key.cert, "both or none"},
		{"tls-key", "FORGE_TLS_KEY", key.key, "both or none"},
		{"server", "FORGE_SERVER", "http://host", "does not begin with nats://"},
		{"server", "FORGE_SERVER", "nats://", "names no host"},
		{"server", "FORGE_SERVER", "nats://a:pw@b c", "not a URL"},
		{"creds", "FORGE_CREDS", filepath.Join(dir, "none"), "no such file"},
		{"creds", "FORGE_CREDS", dir, "not a regular file"},
		{"token-file", "FORGE_TOKEN_FILE", two, "one line"},
		{"credentials-dir", "FORGE_CREDENTIALS_DIR", filepath.Join(dir, "none"), "no such file"},
		{"credentials-dir", "FORGE_CREDENTIALS_DIR", two, "is no directory"},
		{"replica", "FORGE_REPLICA", "a.b", "replica id"},
		{"replica", "FORGE_REPLICA", "*", "replica id"},
		{"project", "FORGE_PROJECTS", "shop", "NAME=URL"},
		{"project", "FORGE_PROJECTS", "../x=/srv", "project id"},
		{"project", "FORGE_PROJECTS", "shop=", "empty URL"},
		{"project", "FORGE_PROJECTS", "shop=--upload-pack=x", "hyphen"},
		{"project", "FORGE_PROJECTS", "shop=ext::sh", "remote helper"},
		{"project", "FORGE_PROJECTS", "shop=/a b", "white space"},
		{"project", "FORGE_PROJECTS", "shop=/a\x1b[0m", "control"},
		{"project-group", "FORGE_PROJECT_GROUPS", "shop", "NAME=GROUP"},
		{"project-group", "FORGE_PROJECT_GROUPS", "shop=large", "not one of the projects"},
		{"group", "FORGE_GROUP", "a.b", "a-z"},
		{"group", "FORGE_GROUP", strings.Repeat("a", 33), "at most 32"},
		{"state-dir", "FORGE_STATE_DIR", "a\x00b", "needed"},
		{"clone", "FORGE_CLONE", "never", "start or first-use"},
		{"listen", "FORGE_LISTEN", "8080", "HOST:PORT"},
		{"listen", "FORGE_LISTEN", ":99999", "65535"},
		{"workers", "FORGE_WORKERS", "0", "1 to 256"},
		{"workers", "FORGE_WORKERS", "257", "1 to 256"},
		{"workers", "FORGE_WORKERS", "many", "1 to 256"},
		{"stream-replicas", "FORGE_STREAM_REPLICAS", "2", "1, 3 or 5"},
		{"quota-project", "FORGE_QUOTA_PROJECT", "0", "a number from 1"},
		{"quota-system", "FORGE_QUOTA_SYSTEM", "many", "a number from 1"},
		{"drain-timeout", "FORGE_DRAIN_TIMEOUT", "-1s", "duration"},
		{"drain-timeout", "FORGE_DRAIN_TIMEOUT", "10", "duration"},
		{"sandbox", "FORGE_SANDBOX", "off", "project, require or unconfined"},
		{"command-memory", "FORGE_COMMAND_MEMORY", "8G", "512MiB or 8GiB"},
		{"command-memory", "FORGE_COMMAND_MEMORY", "1MiB", "from 16MiB"},
		{"command-disk", "FORGE_COMMAND_DISK", "-1GiB", "is not a size"},
		{"log-level", "FORGE_LOG_LEVEL", "loud", "debug, info"},
		{"log-format", "FORGE_LOG_FORMAT", "xml", "json or text"},
	}
	for _, tt := range tests {
		t.Run(tt.flag+"="+tt.value, func(t *testing.T) {
			base := map[string]string{"HOME": "/h", "FORGE_REPLICA": "a"}
			_, byFlag := Parse("x", []string{"--" + tt.flag, tt.value}, env(base))
			base[tt.env] = tt.value
			_, byEnv := Parse("x", nil, env(base))
			for _, err := range []error{byFlag, byEnv} {
				if err == nil {
					t.Fatal("accepted")
				}
				msg := err.Error()
				if !strings.Contains(msg, "--"+tt.flag) || !strings.Contains(msg, tt.env) || !strings.Contains(msg, tt.want) {
					t.Errorf("got %q, want it to name flag, variable and %q", msg, tt.want)
				}
				if strings.Contains(msg, "pw") {
					t.Errorf("shows a password: %q", msg)
				}
			}
		})
	}
}

func TestBadCommandLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"flag provided but not defined: -sever": {"--sever=x"},
		"unexpected argument":                   {"run"},
		"exclude each other":                    {"--creds", file, "--token-file", file},
		"leave out --command-memory":            {"--pod-template", file, "--command-disk=1GiB"},
		"given twice":                           {"--project=a=/1", "--project=a=/2"},
		"no home directory":                     {},
	} {
		vars := map[string]string{"FORGE_REPLICA": "a"}
		if want != "no home directory" {
			vars["HOME"] = "/h"
		}
		if _, err := Parse("x", args, env(vars)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", args, err, want)
		}
	}
}

func TestSecretsStayOutOfLogs(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	c := &Config{
		Server:   "nats://user:pass1@a,nats://token2@b",
		Projects: []Project{{ID: "shop", URL: "https://me:pass3@git.example.com/shop"}},
		Log:      LogConfig{Format: "json"},
	}
	newLogger(&buf, c).Info("start", "config", c)
	for _, secret := range []string{"pass1", "token2", "pass3"} {
		if strings.Contains(buf.String(), secret) {
			t.Errorf("%s in %s", secret, &buf)
		}
	}
	if !strings.Contains(buf.String(), `"shop"`) {
		t.Errorf("the project is missing: %s", &buf)
	}
}

// TestSecretsOfSettings checks that the seed of the service's nkey is taken out of whatever
// leaves it, and that what excludes each other is refused with both names.
func TestSecretsOfSettings(t *testing.T) {
	t.Parallel()
	key := newKeyFiles(t)
	c, err := Parse("x", []string{"--nkey", key.seed}, env(map[string]string{"HOME": "/h", "FORGE_REPLICA": "a"}))
	if err != nil {
		t.Fatal(err)
	}
	seed, err := os.ReadFile(key.seed)
	if err != nil {
		t.Fatal(err)
	}
	text := "it found " + string(seed[:20]) + " and " + string(seed) + "."
	if got := (&Env{Config: c}).secrets().Text(text); strings.Contains(got, string(seed[2:20])) {
		t.Errorf("got %q", got)
	}
	for _, args := range [][]string{
		{"--nkey", key.seed, "--creds", key.cert}, {"--nkey", key.seed, "--token-file", key.seed}, {"--nkey", key.seed, "--server", "nats://a:pw1@b"},
	} {
		_, err := Parse("x", args, env(map[string]string{"HOME": "/h", "FORGE_REPLICA": "a"}))
		if err == nil || !strings.Contains(err.Error(), "--nkey (FORGE_NKEY)") || !strings.Contains(err.Error(), args[2]) || strings.Contains(err.Error(), "pw1") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestSecretsOfCredentials checks that keys that are replaced while the service runs are taken out
// of what leaves it: the former ones, and the new ones as soon as they are read. Addresses stay.
func TestSecretsOfCredentials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := Parse("x", []string{"--credentials-dir", dir}, env(map[string]string{"HOME": "/h", "FORGE_REPLICA": "a"}))
	if err != nil {
		t.Fatal(err)
	}
	e := &Env{Config: c}
	redactor := e.secrets()
	const old, young, password = "Old-Battery-7-Horse", "Young-Staple-8-Fence", "Pass-Word-9-Gate"
	testdir.Secret(t, dir, map[string]string{"ANTHROPIC_API_KEY": old, "ANTHROPIC_BASE_URL": "https://me:" + password + "@models.example"})
	if err := e.Credentials().Err(); err != nil {
		t.Error(err)
	}
	testdir.Secret(t, dir, map[string]string{"ANTHROPIC_API_KEY": young})
	if got, err := e.Credentials().Lookup("ANTHROPIC_API_KEY"); got != young || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	want := "[redacted], [redacted] and [redacted] for models.example"
	if got := redactor.Text(old + ", " + young + " and " + password + " for models.example"); got != want {
		t.Errorf("got %q", got)
	}
}

// TestGroupsOfProjects shows which projects a replica serves, by its group and theirs, and what is
// refused: a replica that would serve none.
func TestGroupsOfProjects(t *testing.T) {
	t.Parallel()
	all := []string{"--project=shop=/1", "--project=site=/2", "--project=docs=/3", "--project-group=shop=large", "--project-group=site=small"}
	for _, tt := range []struct {
		args []string
		want string
		err  string
	}{
		{all, "docs", ""},
		{append(all, "--group=large"), "shop", ""},
		{append(all, "--group=other"), "", "--group (FORGE_GROUP): no project is in group \"other\""},
		{append(all, "--project-group=docs=large"), "", "--project-group (FORGE_PROJECT_GROUPS): every project is in a group"},
		{append(all, "--project-group=docs=large", "--group=large"), "shop docs", ""},
		{all[:3], "shop site docs", ""},
	} {
		c, err := Parse("x", tt.args, env(map[string]string{"HOME": "/h", "FORGE_REPLICA": "a"}))
		if err != nil {
			t.Fatal(err)
		}
		var served []string
		for _, p := range c.Served() {
			served = append(served, string(p.ID))
		}
		if got := strings.Join(served, " "); got != tt.want {
			t.Errorf("%v serves %q, want %q", tt.args, got, tt.want)
		}
		if err := c.NeedProjects(); (err != nil) != (tt.err != "") || err != nil && !strings.HasPrefix(err.Error(), tt.err) {
			t.Errorf("%v: %v, want %q", tt.args, err, tt.err)
		}
		for _, p := range c.Projects {
			if err := c.Elsewhere(p.ID); (err == nil) != slices.Contains(served, string(p.ID)) {
				t.Errorf("%v: project %s: %v", tt.args, p.ID, err)
			}
		}
	}
	_, err := Parse("x", append(all, "--project-group=shop=small"), env(map[string]string{"HOME": "/h", "FORGE_REPLICA": "a"}))
	if err == nil || !strings.Contains(err.Error(), "two groups") {
		t.Errorf("a project in two groups: %v", err)
	}
}
