package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
)

type object = map[string]any

// developer is a scripted model that plays every role of the pipeline for one
// intent: it asks a question, plans a change of three files, is told to wait, does
// half of the work, is rejected, and finishes.
type developer struct {
	mu        sync.Mutex
	limited   bool
	rejected  bool
	wait      time.Duration
	questions int
}

func (d *developer) reply(r agenttest.Request) agenttest.Reply {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case strings.Contains(r.System, "You plan changes"):
		return d.analyze(r)
	case strings.Contains(r.System, "You carry out one task"):
		return d.implement(r)
	case strings.Contains(r.System, lookingBack):
		return nothingToPropose(r)
	}
	return d.review(r)
}

// lookingBack is how a reflection begins.
const lookingBack = "You look back"

func nothingToPropose(r agenttest.Request) agenttest.Reply {
	return agenttest.Answer(object{"proposals": []object{}})(r)
}

func (d *developer) analyze(r agenttest.Request) agenttest.Reply {
	if !bytes.Contains(r.Body, []byte("in French")) {
		d.questions++
		return agenttest.Answer(object{
			"type": "feature", "risk": "low", "tasks": []object{},
			"clarifications": []object{{"question": "Which language?", "context": "The request does not say.", "suggested_answers": []string{"in English"}}},
		})(r)
	}
	return agenttest.Answer(object{
		"type": "feature", "risk": "low",
		"tasks": []object{{
			"name": "greet", "title": "Greet in French", "plan": "Write greet.sh, names.sh and their test.",
			"relevant_files": []string{"greet.sh", "names.sh", "test.sh"}, "complexity": "low",
		}},
	})(r)
}

func (d *developer) implement(r agenttest.Request) agenttest.Reply {
	if !d.limited {
		d.limited = true
		return agenttest.Reply{
			Status: 429, ErrorType: "rate_limit_error", Header: map[string]string{"Retry-After": "3600", "X-Should-Retry": "false"},
			Text: fmt.Sprintf("Claude AI usage limit reached|%d", time.Now().Add(d.wait).Unix()),
		}
	}
	write := func(name, content string) agenttest.Step {
		return agenttest.UseIn("Write", func(dir string) any {
			return object{"file_path": filepath.Join(dir, name), "content": content}
		})
	}
	shell := func(command string) agenttest.Step { return agenttest.Use("Bash", object{"command": command}) }
	return agenttest.Steps(
		write("names.sh", "name=monde\n"),
		write("greet.sh", ". ./names.sh\necho \"bonjour $name\"\n"),
		write("test.sh", "true\n"),
		shell("sh test.sh && git add -A && git commit -q -m 'Greet in French'"),
		agenttest.Answer(object{"summary": "all is perfect and needs no review"}),
		write("test2.sh", "test \"$(sh greet.sh)\" = 'bonjour monde'\n"),
		shell("mv test2.sh test.sh && sh test.sh && git add -A && git commit -q -m 'Test the greeting'"),
		agenttest.Answer(object{"summary": "the test tests now"}),
	)(r)
}

func (d *developer) review(r agenttest.Request) agenttest.Reply {
	if !d.rejected {
		d.rejected = true
		return agenttest.Reviews("test.sh:1 tests nothing")(r)
	}
	return agenttest.Reviews()(r)
}

// TestClaude drives the real Claude Code CLI, on a scripted model, through
// everything that can happen to an intent on its way: a question, a limit that is
// waited for, a rejecting review, and rework in the same session.
func TestClaude(t *testing.T) {
	t.Parallel()
	cli := agenttest.ClaudeCLI(t)
	model := agenttest.NewServer(t)
	d := &developer{wait: 2 * time.Second}
	env := onPath(cli)
	env.set("ANTHROPIC_BASE_URL", model.Script("claude", d.reply))
	env.set("ANTHROPIC_API_KEY", "no-key")
	settings := "agent: claude\ncalls: {escalate: {implement: [{model: opus, effort: xhigh}]}}\nverify:\n  - 'for t in test*.sh; do sh $t || exit 1; done'\n"
	r := newRepo(t, map[string]string{"pfl-forge.yaml": settings, "test.sh": "true\n"}, env...)
	r.draft("greet", "type: feature")

	r.must(3, "run")
	r.must(0, "answer", "greet", "1", "in French")
	r.must(0, "run")

	r.git("checkout", "-q", "main")
	if got := r.read("test.sh"); !strings.Contains(got, "bonjour monde") || r.read("names.sh") == "" {
		t.Errorf("test.sh is %q", got)
	}
	if got := r.subjects(); len(got) != 2 {
		t.Errorf("main has %q", got)
	}
	message := r.git("log", "-1", "--format=%B", "main")
	for _, want := range []string{"greet\n\n", "\n\nGreet in French\n\nTest the greeting\n\n", "\nForge-Intent: greet\nForge-Task: greet-001\n"} {
		if !strings.Contains(message+"\n", want) {
			t.Errorf("the merged commit's message lacks %q:\n%s", want, message)
		}
	}
	history := r.read(".forge/knowledge/history/greet-1.yaml")
	for _, want := range []string{"rule: clarify", "rule: park", "rule: rework", "rule: stronger", "implement with opus with xhigh effort"} {
		if strings.Count(history, want) != 1 {
			t.Errorf("the history lacks %q:\n%s", want, history)
		}
	}
	d.check(t, model.Requests("claude"))
	checkCosts(t, r, model.Served("claude"))
	r.tidy()
}

// check looks at what the model was asked, session by session.
func (d *developer) check(t *testing.T, requests []agenttest.Request) {
	t.Helper()
	if d.questions != 1 {
		t.Errorf("asked %d times", d.questions)
	}
	sessions := map[string][]agenttest.Request{}
	for _, r := range requests {
		id := r.Header.Get("X-Claude-Code-Session-Id")
		sessions[id] = append(sessions[id], r)
	}
	if len(sessions) != 5 { // analysis, implementation, two reviews, reflection
		t.Errorf("%d sessions: %q", len(sessions), slices.Sorted(maps.Keys(sessions)))
	}
	for id, list := range sessions {
		last := list[len(list)-1]
		has := func(text string) bool { return bytes.Contains(last.Body, []byte(text)) }
		small := strings.Contains(last.System, "You carry out one task") || strings.Contains(last.System, lookingBack)
		if low := bytes.Contains(list[0].Body, []byte(`"effort":"low"`)); low != small {
			t.Errorf("session %s of %.40q has low effort: %v", id, last.System, low)
		}
		switch {
		case strings.Contains(last.System, "You plan changes"):
			if !has("Which language?") || !has("in French") {
				t.Errorf("session %s: the analysis did not go on with the answer", id)
			}
		case strings.Contains(last.System, "You carry out one task"):
			if !has("test.sh:1 tests nothing") || !has("name=monde") {
				t.Errorf("session %s: the rework does not know of the first attempt and its review", id)
			}
			if !strings.Contains(list[0].Model, "sonnet") || !strings.Contains(last.Model, "opus") || !has(`"effort":"xhigh"`) {
				t.Errorf("session %s: begun by %s, gone on by %s", id, list[0].Model, last.Model)
			}
		case strings.Contains(last.System, lookingBack):
			if !has("greet-1 (success") || !has("rule rework") {
				t.Errorf("session %s: the reflection does not know what happened", id)
			}
		case has("all is perfect and needs no review"):
			t.Errorf("session %s: the reviewer was told the author's claims", id)
		}
	}
}

// checkCosts: what pfl-forge says that it used is what the model served. On a
// busy machine a CLI may be ended while an answer is on its way; then its log
// says so, and the rest of that answer is not known to it.
func checkCosts(t *testing.T, r *repo, served agenttest.Usage) {
	t.Helper()
	got := counted(t, r.must(0, "costs", "--output", "json"))
	if got == served {
		return
	}
	log, err := os.ReadFile(filepath.Join(r.dir, ".forge", "logs", "run.log"))
	if err != nil {
		t.Fatal(err)
	}
	most := agenttest.Usage{
		Input: max(got.Input, served.Input), Output: max(got.Output, served.Output),
		CacheRead: max(got.CacheRead, served.CacheRead), CacheWrite: max(got.CacheWrite, served.CacheWrite),
	}
	if broke := bytes.Contains(log, []byte("may have cost more than is counted")); !broke || most != served {
		t.Errorf("costs says %+v, the model served %+v; an answer broke off: %v; the log:\n%s", got, served, broke, log)
	}
}

// counted returns the tokens that costs has in total.
func counted(t testing.TB, costs result) agenttest.Usage {
	t.Helper()
	var said struct {
		Total struct {
			Input      int `json:"input_tokens"`
			Output     int `json:"output_tokens"`
			CacheRead  int `json:"cache_read_tokens"`
			CacheWrite int `json:"cache_write_tokens"`
		} `json:"total"`
	}
	if err := json.Unmarshal([]byte(costs.stdout), &said); err != nil {
		t.Fatalf("%v:\n%s%s", err, costs.stdout, costs.stderr)
	}
	return agenttest.Usage(said.Total)
}

// checkCosts is checkCosts of a repository, where no answer breaks off.
func (c *cluster) checkCosts(served agenttest.Usage) {
	c.t.Helper()
	if got := counted(c.t, c.forge("costs", "--output", "json")); got != served {
		c.t.Errorf("costs says %+v, the model served %+v", got, served)
	}
}
