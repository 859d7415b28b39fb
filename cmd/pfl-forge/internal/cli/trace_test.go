package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/internal/testoutput"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestLinkToTheTrace: where a person has said where traces are read, show, history and the inbox
// have the link, and otherwise the id; as text and as data. What is no address is refused.
func TestLinkToTheTrace(t *testing.T) {
	t.Parallel()
	o := newOrganisation(t)
	o.runner()
	o.announce("analyzer", "a1", "v1", "shop")
	o.expect(kit.ExitOK, "one\n", "shop", "create", "one", "--title", "One")
	o.fail(forge.Key{Project: "shop", Intent: "one"})
	id := telemetry.Run{Key: forge.Key{Project: "shop", Intent: "one"}, Number: 1}.TraceID()
	link := "https://traces.example.com/t/" + id
	const address = "https://traces.example.com/t/{trace_id}"
	for _, args := range [][]string{{"show", "one"}, {"history", "one"}, {"inbox", "--list"}} {
		if out := o.expect(kit.ExitOK, id, "shop", args...); strings.Contains(out, "https:") {
			t.Errorf("%v says %q", args, out)
		}
		o.expect(kit.ExitOK, link, "shop", append(slices.Clip(args), "--trace-url", address)...)
		o.expect(kit.ExitError, "--trace-url (FORGE_TRACE_URL): ", "shop", append(slices.Clip(args), "--trace-url", "https://example.com/\x1b]0;{trace_id}\a")...)
		var document any
		for given, want := range map[string]string{"": "", address: link} {
			_, out := o.forge("shop", append(slices.Clip(args), "-o", "json", "--trace-url", given)...)
			if err := json.Unmarshal([]byte(out), &document); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
			if list, ok := document.([]any); ok {
				document = list[0]
			}
			fields, _ := document.(map[string]any)
			if got, _ := fields["trace_url"].(string); fields["trace_id"] != id || got != want {
				t.Errorf("%v: trace %v at %q, want %s at %q", args, fields["trace_id"], got, id, want)
			}
		}
	}
	run := func(env map[string]string, args ...string) (code int, said string) {
		var text testoutput.Output
		code = Main(append([]string{"-C", t.TempDir()}, args...), strings.NewReader(""), &text, &text, func(name string) string { return env[name] })
		return code, text.String()
	}
	env := map[string]string{"FORGE_SERVER": o.server.URL(), "FORGE_PROJECT": "shop", "FORGE_TRACE_URL": address}
	if code, said := run(env, "inbox"); code != 0 || !strings.Contains(said, link) {
		t.Errorf("with the variable: exit code %d, said %q", code, said)
	}
	if code, said := run(nil, "--trace-url", address, "inbox"); code != int(kit.ExitError) || !strings.Contains(said, "need --server") {
		t.Errorf("without a server: exit code %d, said %q", code, said)
	}
}

// fail has the first attempt of an intent fail by something that a person has to mend.
func (o *organisation) fail(key forge.Key) {
	o.t.Helper()
	b := o.server.Connect(o.t)
	var open forge.Attempt
	wait.Until(o.t, "an attempt is open", func() bool {
		s, err := b.Journal.Summary(wait.Context(o.t), key)
		if err != nil || len(s.Open) == 0 {
			return false
		}
		open = s.Open[0]
		return true
	})
	result := forge.Result{To: key, Attempt: open, Replica: "a1", Output: &forge.Failure{Reason: forge.FailConfig, Message: "no"}}
	if err := b.Results.Publish(wait.Context(o.t), result); err != nil {
		o.t.Fatal(err)
	}
	wait.Until(o.t, fmt.Sprintf("%s has failed", key), func() bool {
		s, err := b.Journal.Summary(wait.Context(o.t), key)
		return err == nil && s.Waiting != ""
	})
}
