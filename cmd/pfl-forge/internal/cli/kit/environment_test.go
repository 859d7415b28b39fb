package kit

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPasted(t *testing.T) {
	w := Where{Dir: ".", Server: "nats://org:4222", Project: "my shop"}
	w.Remember()
	for text, want := range map[string]string{
		"next: pfl-forge run":      "next: pfl-forge --server nats://org:4222 --project 'my shop' run",
		"`pfl-forge answer ask 1`": "`pfl-forge --server nats://org:4222 --project 'my shop' answer ask 1`",
		"pfl-forge works":          "pfl-forge works",
	} {
		if got := w.Pasted(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	w = Where{Dir: "."}
	w.Remember()
	if got := w.Pasted("pfl-forge run"); got != "pfl-forge run" {
		t.Errorf("without flags: %q", got)
	}
}

// What is typed counts more than the environment, and that more than what is remembered.
func TestComplete(t *testing.T) {
	env := map[string]string{"XDG_CONFIG_HOME": t.TempDir(), "FORGE_PROJECT": "shop"}
	getenv := func(name string) string { return env[name] }
	outside, inside := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(inside, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	env["FORGE_TRACE_URL"] = "https://traces/{trace_id}"
	complete := func(w Where) string {
		w.Complete(getenv)
		if w.Remote() != (w.TraceURL != "") { // traces are an organisation's
			t.Errorf("%+v", w)
		}
		return w.Server + "|" + w.Context + "|" + w.Project
	}
	check := func(what string, w Where, want string) {
		t.Helper()
		if got := complete(w); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	check("nothing", Where{Dir: outside}, "||")
	if err := os.MkdirAll(filepath.Join(env["XDG_CONFIG_HOME"], "nats"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(env["XDG_CONFIG_HOME"], "nats", "context.txt"), []byte("org\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("remembered", Where{Dir: outside}, "|org|shop")
	check("a repository", Where{Dir: inside}, "||")
	env["FORGE_SERVER"] = "nats://a"
	check("environment", Where{Dir: inside}, "nats://a||shop")
	check("a context is typed", Where{Dir: inside, Context: "other", Project: "blog"}, "|other|blog")
}
