package gateway

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSettings reads a file, with paths from its folder, and refuses what makes no sense.
func TestSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	read := func(text string) (*Settings, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadSettings(path)
	}
	s, err := read("listen: 0.0.0.0:8443\ntls: {cert: tls.crt, key: /etc/tls.key}\ntokens: tokens.yaml\nper_second: 2.5\nfollowers: 10\n" +
		"console: {key: console.key, projects: [shop]}\n")
	if err != nil {
		t.Fatal(err)
	}
	in := filepath.Dir(path)
	if diff := cmp.Diff(&Settings{
		Listen: "0.0.0.0:8443", TLS: TLS{filepath.Join(in, "tls.crt"), "/etc/tls.key"}, Tokens: filepath.Join(in, "tokens.yaml"), PerSecond: 2.5, Followers: 10,
		Console: Console{Key: filepath.Join(in, "console.key"), Projects: []string{"shop"}},
	}, s); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if s, err := read(""); err != nil || s.Listen != "127.0.0.1:8080" {
		t.Errorf("without settings: %+v, %v", s, err)
	}
	for text, want := range map[string]string{
		"listen: nowhere":   "listen: is no address",
		"tls: {cert: a}":    "tls: give cert and key",
		"console: {key: k}": "console: wants tokens",
		"console: {trace_url: 'javascript:alert({trace_id})'}": "console.trace_url",
		"console: {key: k, projects: [a/b]}\ntokens: t":        "console.projects",
		"console: {projects: [shop]}":                          "has no key",
		"burst: -1":                                            "cannot be negative",
		"token: tokens.yaml":                                   "tokens",
		"per_second: quickly":                                  "per_second",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestSettingsOfTheManifests reads the settings that the components of deploy/k8s give to gateways. Their
// ports name what listens there.
func TestSettingsOfTheManifests(t *testing.T) {
	for component, want := range map[string]func(*Settings) bool{
		"gateway": func(s *Settings) bool { return s.Tokens != "" && s.Hooks == "" && s.Forges == "" },
		"forges":  func(s *Settings) bool { return s.Tokens == "" && s.Hooks != "" && s.Forges != "" },
	} {
		s, err := ReadSettings(filepath.Join("..", "..", "deploy", "k8s", "components", component, "settings.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if s.Listen != ":8081" || !want(s) {
			t.Errorf("%s: %+v", component, s)
		}
	}
}
