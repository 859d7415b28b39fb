package notify_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/notify"
)

func TestConfigErrors(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"notifications: {a: {}}":                                                 "notifications.a: needs one of command, webhook and webhook_file",
		"notifications: {a: {webhook: 'https://x', command: [b]}}":               "needs one of",
		"notifications: {a: {webhook: 'ftp://secret'}}":                          "is not a URL that begins with",
		"notifications: {a: {webhok: x}}":                                        "webhook",
		"notifications: {A: {webhook: 'https://x'}}":                             "is not a valid name",
		"notifications: {a: {webhook: 'https://x', on: [boom]}}":                 `is "boom"; it can be`,
		"notifications: {a: {webhook: 'https://x', projects: [A]}}":              "only a-z",
		"notifications: {a: {webhook: 'https://x', most: -1}}":                   "it can be 1 to 1000",
		"notifications: {a: {webhook: 'https://x', window: 1ms}}":                "it can be 1s to",
		"notifications: {a: {command: [./x]}}":                                   "an absolute path",
		"notifications: {a: {command: [x], secret_file: " + empty + "}}":         "is empty",
		"notifications: {a: {webhook_file: /nonexistent/secret}}":                "no such file",
		"notifications: {a: {webhook: 'https://x', secret_file: relative/path}}": "is not an absolute path",
	} {
		if _, err := notify.Parse([]byte(text), "n.yaml"); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "n.yaml:1") {
			t.Errorf("%s: %v, want %q", text, err, want)
		} else if strings.Contains(err.Error(), "ftp://secret") {
			t.Errorf("%v shows the URL", err)
		}
	}
	path := filepath.Join(t.TempDir(), "n.yaml")
	if err := os.WriteFile(path, []byte("notifications: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := notify.Load(path); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Errorf("a file that others can write to: %v", err)
	}
	if _, err := notify.Load(t.TempDir()); err == nil {
		t.Error("a directory is a file")
	}
}

// A file is a person's own, never the repository's.
func TestUserFile(t *testing.T) {
	home := t.TempDir()
	env := map[string]string{"HOME": home}
	getenv := func(k string) string { return env[k] }
	if got := notify.UserFile(getenv); got != "" {
		t.Errorf("without a file: %q", got)
	}
	path := filepath.Join(home, ".config/pfl-forge/notifications.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := notify.UserFile(getenv); got != path {
		t.Errorf("got %q", got)
	}
	env["XDG_CONFIG_HOME"] = "relative"
	if got := notify.UserFile(getenv); got != path {
		t.Errorf("with a relative directory: %q", got)
	}
	env["FORGE_NOTIFICATIONS"] = "/elsewhere"
	if got := notify.UserFile(getenv); got != "/elsewhere" {
		t.Errorf("named: %q", got)
	}
}

// TestKindOfWait: people are told of a wait that no person began. Whoever paused something knows.
func TestKindOfWait(t *testing.T) {
	for _, c := range []struct {
		wait   forge.Waiting
		reason string
		want   notify.Kind
	}{
		{"", "", ""},
		{forge.WaitingApproval, "", notify.KindWaiting},
		{forge.WaitingBudget, "", notify.KindBudget},
		{forge.WaitingPaused, "I want to look at it first", ""},
		{forge.WaitingPaused, forge.ProjectPaused, ""},
		{forge.WaitingPaused, forge.AccountClosed + "claude refuses calls", notify.KindWaiting},
		{forge.WaitingPaused, forge.ReplicasEnded + "3 times in a row, the last time r1: no space left", notify.KindWaiting},
	} {
		if got := notify.KindOfWait(c.wait, c.reason); got != c.want {
			t.Errorf("of %q because of %q: %q, want %q", c.wait, c.reason, got, c.want)
		}
	}
}
