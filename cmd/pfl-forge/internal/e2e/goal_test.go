package e2e

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// seeker is a scripted model that plays everybody around goals. The one about greetings
// takes a question and two iterations; the other is never reached.
func seeker(r agenttest.Request) agenttest.Reply {
	endless := bytes.Contains(r.Body, []byte("Never enough"))
	answer := func(o object) agenttest.Reply { return agenttest.Answer(o)(r) }
	switch {
	case strings.Contains(r.System, "You take on goals") && endless:
		return answer(taskOf("low", "more.txt has enough lines"))
	case strings.Contains(r.System, "You take on goals") && !bytes.Contains(r.Body, []byte("in Finnish")):
		return answer(object{
			"status": "needs_clarification", "task": "", "criteria": []string{}, "type": "feature", "risk": "low",
			"clarification_questions": []object{
				{"question": "In which language?", "context": "The goal does not say.", "suggested_answers": []string{"in Finnish"}},
			},
		})
	case strings.Contains(r.System, "You take on goals"):
		return answer(taskOf("low", "hello.txt greets", "bye.txt says good-bye"))
	case strings.Contains(r.System, "You work towards a goal") && endless:
		return agenttest.Steps(committing("echo more >> more.txt"), agenttest.Answer(executed("one more")))(r)
	case strings.Contains(r.System, "You work towards a goal") && !bytes.Contains(r.Body, []byte("number 2.")):
		return agenttest.Steps(committing("echo terve > hello.txt"), agenttest.Answer(executed("greeted")))(r)
	case strings.Contains(r.System, "You work towards a goal"):
		return agenttest.Steps(committing("echo hei > bye.txt"), agenttest.Answer(executed("said good-bye")))(r)
	case strings.Contains(r.System, "You sum up one iteration"):
		return answer(object{
			"approach": "wrote a file", "result": "success", "reason": "the file is there", "artifacts": []string{"hello.txt"},
			"next": object{"suggested_action": "write the other one"},
			"knowledge": []object{{
				"type": "pattern", "category": "texts", "content": "Each text is a file of its own.", "confidence": "high",
			}},
		})
	case strings.Contains(r.System, "You judge whether a goal is reached") && endless:
		return answer(judgedAs(nil))
	case strings.Contains(r.System, "You judge whether a goal is reached"):
		return answer(judgedAs(agenttest.Cite(r.LastUser, "terve"), agenttest.Cite(r.LastUser, "hei")))
	}
	return nothingToPropose(r)
}

func taskOf(risk string, criteria ...string) object {
	return object{
		"status": "accepted", "task": "Write the texts.", "criteria": criteria,
		"clarification_questions": []object{}, "validation_notes": "",
		"type": "feature", "risk": risk, "complexity": "low", "relevant_files": []string{"hello.txt"},
	}
}

func committing(command string) agenttest.Step {
	return agenttest.Use("Bash", object{"command": command + " && git add -A && git commit -q -m 'Write it'"})
}

func executed(what string) object {
	return object{
		"status": "success", "output": what, "artifacts": []string{}, "applied_knowledge": []string{},
		"semantic_metadata": object{"approach": "wrote it", "strategy_tags": []string{"direct"}, "discoveries": []string{}},
	}
}

// judgedAs is a judgment with a piece of evidence for each criterion that is met.
func judgedAs(evidence ...object) object {
	var list []object
	for i, e := range evidence {
		list = append(list, agenttest.Claim(i+1, e))
	}
	return object{
		"is_complete": !slices.ContainsFunc(evidence, func(e object) bool { return e == nil }), "criteria": list,
		"overall_reason": "as the diff shows", "suggested_next_action": "say good-bye",
	}
}

// goalStatus is what goal status prints for programs.
type goalStatus struct {
	Status     string `json:"status"`
	Used       int    `json:"iterations_used"`
	Met        int    `json:"criteria_met"`
	Iterations []struct {
		Iteration int `json:"iteration"`
	} `json:"iterations"`
}

// TestClaudeGoal drives the real CLI, on a scripted model, through a goal that takes a
// question and two iterations, and through one that is never reached. What is judged
// complete is merged as one commit; what is not changes nothing.
func TestClaudeGoal(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	cli := agenttest.ClaudeCLI(t)
	model := agenttest.NewServer(t)
	env := onPath(cli)
	env.set("ANTHROPIC_BASE_URL", model.Script("claude", seeker))
	env.set("ANTHROPIC_API_KEY", "no-key")
	r := newRepo(t, map[string]string{
		"pfl-forge.yaml": "agent: claude\nverify: [test ! -e broken]\n",
		"task.yaml":      "task: Greet people\ncriteria: [hello.txt greets, bye.txt says good-bye]\nmax_iterations: 5\nlogging: {raw_log: true}\n",
		"endless.yaml":   "task: Never enough\ncriteria: [more.txt has enough lines]\nmax_iterations: 2\n",
	}, env...)

	r.must(3, "goal", "run", "--id", "greet")
	r.must(0, "answer", "greet", "1", "in Finnish")
	r.must(0, "run")
	r.git("checkout", "-q", "main")
	if r.read("hello.txt") != "terve\n" || r.read("bye.txt") != "hei\n" {
		t.Errorf("hello.txt %q, bye.txt %q", r.read("hello.txt"), r.read("bye.txt"))
	}
	if got := r.subjects(); len(got) != 2 {
		t.Errorf("main has %q; want one commit for the goal", got)
	}
	var s goalStatus
	if r.json(&s, "goal", "status", "greet", "-o", "json"); s.Status != "completed" || s.Used != 2 || s.Met != 2 || len(s.Iterations) != 2 {
		t.Errorf("goal status: %+v", s)
	}
	h := r.lastRun("greet")
	if rules := h.rules(); !slices.Contains(rules, "clarify") || !slices.Contains(rules, "next-iteration") {
		t.Errorf("the history tells of %q", rules)
	}
	if lines := r.lines(".e8/history.jsonl"); len(lines) != 2 || lines[1]["iteration"] != 2.0 || lines[0]["result"] != "success" {
		t.Errorf(".e8/history.jsonl: %v", lines)
	}
	if lines := r.lines(".e8/knowledge.jsonl"); len(lines) != 1 || lines[0]["content"] != "Each text is a file of its own." {
		t.Errorf(".e8/knowledge.jsonl: %v", lines)
	}
	r.lines(".e8/logs/greet/iteration-002.jsonl")

	r.must(2, "goal", "run", "endless.yaml", "--id", "endless")
	if r.json(&s, "goal", "status", "endless", "-o", "json"); s.Status != "max_iterations" || s.Used != 2 || s.Met != 0 {
		t.Errorf("goal status: %+v", s)
	}
	r.must(0, "goal", "resume", "endless", "--with", "try harder")
	r.must(2, "run")
	if r.json(&s, "goal", "status", "endless", "-o", "json"); s.Status != "max_iterations" || s.Used != 2 || len(s.Iterations) != 4 {
		t.Errorf("goal status: %+v", s)
	}
	if got := r.subjects(); len(got) != 2 {
		t.Errorf("main has %q; what is not reached must not be merged", got)
	}
	told := slices.ContainsFunc(model.Requests("claude"), func(q agenttest.Request) bool {
		return strings.Contains(q.System, "You work towards a goal") && bytes.Contains(q.Body, []byte("Never enough")) &&
			bytes.Contains(q.Body, []byte("Each text is a file of its own.")) && bytes.Contains(q.Body, []byte("greet/k1"))
	})
	if !told {
		t.Error("the second goal was not told what the first one found out")
	}
	checkCosts(t, r, model.Served("claude"))
	r.tidy()
}

// lines reads a file of JSON objects, one a line.
func (r *repo) lines(path string) []map[string]any {
	r.t.Helper()
	var list []map[string]any
	for line := range strings.Lines(r.read(path)) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			r.t.Fatalf("%s: %v: %s", path, err, line)
		}
		list = append(list, o)
	}
	if len(list) == 0 {
		r.t.Fatalf("%s is empty", path)
	}
	return list
}
