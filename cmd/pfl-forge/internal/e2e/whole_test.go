package e2e

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// team is a scripted model that plays everybody around two intents: one is asked about,
// taken apart, approved, rejected and reworked; the other has two tasks that conflict,
// and leaves a note of which something new comes.
type team struct {
	mu       sync.Mutex
	rejected bool
	begun    map[string]bool
	both     chan struct{} // is closed when both conflicting tasks have begun
}

func (w *team) reply(r agenttest.Request) agenttest.Reply {
	switch {
	case strings.Contains(r.System, "You plan changes"):
		return w.plan(r)
	case strings.Contains(r.System, "You carry out one task"):
		return w.implement(r)
	case strings.Contains(r.System, lookingBack):
		if !bytes.Contains(r.Body, []byte("There is no readme.")) {
			return nothingToPropose(r)
		}
		return agenttest.Answer(object{"proposals": []object{
			{"title": "Introduce the list", "body": "In README.md.", "type": "feature", "risk": "low"},
		}})(r)
	}
	return w.review(r)
}

func (w *team) plan(r agenttest.Request) agenttest.Reply {
	titled := func(title string) bool { return strings.Contains(r.LastUser, "It is titled \""+title) }
	task := func(risk string, files ...string) agenttest.Reply {
		var tasks []object
		for _, f := range files {
			tasks = append(tasks, object{
				"name": strings.ReplaceAll(f, ".", "-"), "title": "Write " + f, "plan": "Write " + f, "relevant_files": []string{f}, "complexity": "low",
			})
		}
		return agenttest.Answer(object{"type": "feature", "risk": risk, "tasks": tasks})(r)
	}
	switch {
	case titled("Price file"):
		return task("med", "price.txt")
	case titled("Total file"):
		return task("low", "total.txt")
	case titled("Introduce the list"):
		return task("low", "README.md")
	case titled("list"):
		return task("low", "left", "right")
	case bytes.Contains(r.Body, []byte("in euro")):
		return agenttest.Answer(object{"type": "feature", "risk": "low", "tasks": []object{}, "children": []object{
			{"name": "price", "title": "Price file", "body": "What it costs.", "type": "feature", "risk": "low"},
			{"name": "total", "title": "Total file", "body": "All of it.", "type": "feature", "risk": "low", "depends_on": []string{"price"}},
		}})(r)
	}
	return agenttest.Answer(object{"type": "feature", "risk": "low", "tasks": []object{}, "clarifications": []object{
		{"question": "Which currency?", "context": "The request does not say.", "suggested_answers": []string{"in euro"}},
	}})(r)
}

func (w *team) implement(r agenttest.Request) agenttest.Reply {
	// The CLI tells of recent commits too, which have the titles of other tasks.
	about := func(what string) bool { return bytes.Contains(r.Body, []byte(`It is titled \"Write `+what)) }
	change := func(command string) agenttest.Step {
		return agenttest.Use("Bash", object{"command": command + " && git add -A && git commit -q -m 'Write it'"})
	}
	done := agenttest.Answer(object{"summary": "wrote it"})
	switch {
	case about("price.txt"):
		return agenttest.Steps(change("echo 1 > price.txt"), done, change("echo 2 > price.txt"), done)(r)
	case about("total.txt"):
		return agenttest.Steps(change("cp price.txt total.txt"), done)(r)
	case about("README.md"):
		return agenttest.Steps(change("echo list > README.md"), done)(r)
	case about("left"):
		w.meet("left")
		return agenttest.Steps(change("echo left >> list.txt"), agenttest.Answer(object{
			"summary": "wrote it", "observations": []object{{"content": "There is no readme.", "evidence": []object{{"type": "file", "ref": "list.txt"}}}},
		}))(r)
	}
	w.meet("right")
	return agenttest.Steps(change("echo right >> list.txt"), done)(r)
}

// meet returns when both tasks have begun, each on a main that the other has not
// changed.
func (w *team) meet(who string) {
	w.mu.Lock()
	if w.begun[who] = true; len(w.begun) == 2 && w.both != nil {
		close(w.both)
		w.both = nil
	}
	both := w.both
	w.mu.Unlock()
	if both != nil {
		<-both
	}
}

func (w *team) review(r agenttest.Request) agenttest.Reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.rejected && bytes.Contains(r.Body, []byte("Write price.txt")) {
		w.rejected = true
		return agenttest.Reviews("price.txt:1 is too low")(r)
	}
	return agenttest.Reviews()(r)
}

// TestClaudeWhole drives the real CLI, on a scripted model, through what can happen to
// the intents of a project: a question, parts of which one waits for the other, a risk
// that a person approves, a rejected review, a conflict, and a reflection whose proposal
// runs by itself. The history tells it all.
func TestClaudeWhole(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	cli := agenttest.ClaudeCLI(t)
	model := agenttest.NewServer(t)
	w := &team{begun: map[string]bool{}, both: make(chan struct{})}
	env := onPath(cli)
	env.set("ANTHROPIC_BASE_URL", model.Script("claude", w.reply))
	env.set("ANTHROPIC_API_KEY", "no-key")
	r := newRepo(t, map[string]string{"pfl-forge.yaml": "agent: claude\nparallel_workers: 4\n", "list.txt": ""}, env...)
	r.draft("shop", "type: feature")
	r.draft("list", "type: feature")

	r.must(3, "run")
	r.must(0, "answer", "shop", "1", "in euro")
	r.must(3, "run")
	r.must(0, "approve", r.titled("Price file"))
	r.must(0, "run")

	r.git("checkout", "-q", "main")
	if list := strings.Fields(r.read("list.txt")); len(list) != 2 || !slices.Contains(list, "left") || !slices.Contains(list, "right") {
		t.Errorf("list.txt is %q", list)
	}
	if r.read("price.txt") != "2\n" || r.read("total.txt") != "2\n" || r.read("README.md") != "list\n" {
		t.Errorf("price.txt %q, total.txt %q, README.md %q", r.read("price.txt"), r.read("total.txt"), r.read("README.md"))
	}
	if got := r.subjects(); len(got) != 6 {
		t.Errorf("main has %q", got)
	}
	for title, rules := range map[string][]string{
		"shop":               {"clarify", "split"},
		"Price file":         {"await-approval", "approved", "rework"},
		"Total file":         {"await-dependency"},
		"list":               {"reimplement", "proposed"},
		"Introduce the list": nil,
	} {
		h := r.lastRun(r.titled(title))
		if h.Outcome != "success" {
			t.Errorf("%s: %+v", title, h)
		}
		for _, rule := range rules {
			if !slices.Contains(h.rules(), rule) {
				t.Errorf("the history of %q does not tell of %s: %q", title, rule, h.rules())
			}
		}
	}
	checkCosts(t, r, model.Served("claude"))
	r.tidy()
}

// told is a run as the history tells it.
type told struct {
	ID       string `json:"intent"`
	Outcome  string `json:"outcome"`
	Timeline []struct {
		Rule string `json:"rule"`
	} `json:"timeline"`
}

func (h *told) rules() []string {
	var list []string
	for _, e := range h.Timeline {
		list = append(list, e.Rule)
	}
	return list
}

// titled is the id of the intent with this title.
func (r *repo) titled(title string) string {
	r.t.Helper()
	var list struct {
		Intents []struct{ ID, Title string } `json:"intents"`
	}
	r.json(&list, "status", "--output", "json")
	i := slices.IndexFunc(list.Intents, func(in struct{ ID, Title string }) bool { return in.Title == title })
	if i < 0 {
		r.t.Fatalf("no intent is titled %q: %+v", title, list)
	}
	return list.Intents[i].ID
}

// lastRun is the last run of an intent that ended.
func (r *repo) lastRun(id string) told {
	r.t.Helper()
	var h told
	r.json(&h, "history", id, "--output", "json")
	return h
}

// json reads what a command prints.
func (r *repo) json(into any, args ...string) {
	r.t.Helper()
	out := r.must(0, args...).stdout
	if err := json.Unmarshal([]byte(out), into); err != nil {
		r.t.Fatalf("%v: %v:\n%s", args, err, out)
	}
}
