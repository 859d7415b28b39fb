package e2e

import (
	"bytes"
	"crypto/rand"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/testdir"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// keyed is a scripted model that makes one change for each intent, and notes nothing.
type keyed struct {
	// between is called once, between two requests of the implementation of the first intent.
	between func()
	called  atomic.Bool
}

// spying shows what a command of an agent could find, and commits.
const spying = "env; cat /proc/*/environ; echo $RANDOM $$ > \"$(mktemp changed-XXXXXX)\"; git add -A && git commit -q -m change"

func (k *keyed) reply(r agenttest.Request) agenttest.Reply {
	switch {
	case strings.Contains(r.System, "You plan changes"):
		return agenttest.Answer(object{
			"type": "feature", "risk": "low",
			"tasks": []object{{"name": "change", "title": "Change", "plan": "Change it.", "relevant_files": []string{}, "complexity": "low"}},
		})(r)
	case strings.Contains(r.System, "You carry out one task"):
		if r.ToolResults == 0 && k.called.CompareAndSwap(false, true) {
			k.between()
		}
		return agenttest.Steps(agenttest.Use("Bash", object{"command": spying}), agenttest.Answer(object{"summary": "done"}))(r)
	case strings.Contains(r.System, lookingBack):
		return nothingToPropose(r)
	}
	return agenttest.Reviews()(r)
}

// TestRotatedKeys replaces the key for the model while services run and an agent is at work:
// the next request has the new one. A Secret that cannot be used holds work back, and fails none.
// None of the keys is in anything that services keep, or an agent sees.
func TestRotatedKeys(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	cli := agenttest.ClaudeCLI(t)
	secrets := testdir.New(t)
	keys := []string{"first-Key-" + rand.Text(), "second-Key-" + rand.Text(), "third-Key-" + rand.Text()}
	mount := func(key string) { testdir.Secret(t, secrets, map[string]string{"ANTHROPIC_API_KEY": key}) }
	mount(keys[0] + "\n")
	model := agenttest.NewServer(t)
	k := &keyed{between: func() { mount(keys[1]) }}
	env := onPath(cli)
	env.set("ANTHROPIC_BASE_URL", model.Script("keyed", k.reply))
	env.set("ANTHROPIC_API_KEY", "")
	// With the network of the model alone, so that the gateway looks at all that this CLI sends.
	c := newCluster(t, map[string]string{"pfl-forge.yaml": "agent: claude\npolicy: {network: model}\n"}, append(env, "FORGE_CREDENTIALS_DIR="+secrets)...)

	ask := func(id string) {
		t.Helper()
		c.says(c.forge("create", id, "--title", "Change "+id, "--body", "Please."), 0)
	}
	ask("one")
	c.says(c.forge("run"), 0)
	used := keysOf(model.Requests("keyed"))
	if len(used) < 4 || used[0] != keys[0] || used[len(used)-1] != keys[1] {
		t.Fatalf("the model was asked with %q", used)
	}
	begun := false
	for _, key := range used {
		begun = begun || key == keys[1]
		if begun && key != keys[1] {
			t.Errorf("the former key was used again: %q", used)
		}
	}

	mount("")
	ask("two")
	wait.Until(t, "the analyzer says why it waits", func() bool {
		log, err := os.ReadFile(c.procs[2].log.Name())
		return err == nil && bytes.Contains(log, []byte("ANTHROPIC_API_KEY is empty"))
	})
	mount(keys[2])
	c.says(c.forge("run"), 0)
	after := keysOf(model.Requests("keyed"))[len(used):]
	if len(after) < 4 || strings.Join(after, "") != strings.Repeat(keys[2], len(after)) {
		t.Errorf("then the model was asked with %q", after)
	}
	if got := c.forge("history", "two"); got.code != 0 || strings.Contains(got.stdout, "overloaded") {
		t.Errorf("work failed by the Secret: %+v", got)
	}

	c.checkCosts(model.Served("keyed"))

	seen := c.forge("logs", "one").stdout + c.forge("logs", "two").stdout
	for _, r := range model.Requests("keyed") {
		seen += string(r.Body)
	}
	if !strings.Contains(seen, "ANTHROPIC_BASE_URL=") {
		t.Error("the agent's commands do not show their environment")
	}
	for _, key := range keys {
		if strings.Contains(seen, key) {
			t.Error("an agent or a transcript has a key")
		}
		if files := containing(t, c.dir, key); len(files) > 0 {
			t.Errorf("a key is in %q", files)
		}
	}
}

// keysOf returns the keys of requests.
func keysOf(requests []agenttest.Request) []string {
	var out []string
	for _, r := range requests {
		out = append(out, r.Header.Get("X-Api-Key"))
	}
	return out
}

// containing returns the files below a directory that hold a text.
func containing(t *testing.T, dir, text string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // services are at work: what is gone holds nothing
		}
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(text)) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return found
}
