package e2e

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// staff is a scripted model that plays the roles around a change: it finds a pattern and
// makes a skill of it, looks back and proposes something, says that this takes a deeper
// look, and takes it apart.
type staff struct {
	mu   sync.Mutex
	seen map[string]int // sessions by role
	ids  map[string]bool
}

func (s *staff) reply(r agenttest.Request) agenttest.Reply {
	for _, role := range []struct {
		name, system string
		reply        func(agenttest.Request) agenttest.Reply
	}{
		{"observe", "You look for what comes back", observes},
		{"abstract", "You write skills", agenttest.Answer(object{"skills": []object{{
			"name": "greeting-somebody", "description": "How to greet: when a greeting is added.", "body": "# Greeting\n\nOne file for each language.",
		}}})},
		{"reflect", lookingBack, looksBack},
		{"analyze", "You plan changes", plans},
		{"architect", "You are the architect", agenttest.Answer(object{"type": "feature", "risk": "low", "tasks": []object{}, "children": []object{
			{"name": "hello", "title": "Say hallo", "body": "In hello.txt.", "type": "feature", "risk": "low"},
			{"name": "bye", "title": "Say dag", "body": "In bye.txt, after hello.txt.", "type": "feature", "risk": "low", "depends_on": []string{"hello"}},
		}})},
		{"implement", "You carry out one task", implements},
		{"review", "You review one change", agenttest.Reviews()},
	} {
		if strings.Contains(r.System, role.system) {
			s.count(role.name, r.Header.Get("X-Claude-Code-Session-Id"))
			return role.reply(r)
		}
	}
	return agenttest.Reply{Status: 400, Text: "who is that?"}
}

func (s *staff) count(role, session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ids[session] {
		s.ids[session] = true
		s.seen[role]++
	}
}

func observes(r agenttest.Request) agenttest.Reply {
	return agenttest.Answer(object{
		"patterns": []object{{
			"name": "greetings", "description": "A greeting is added.",
			"evidence": []object{{"type": "file", "ref": "en.txt:1"}, {"type": "file", "ref": "fr.txt:1"}},
		}},
		"observations": []object{{"content": "There is no Dutch greeting.", "evidence": []object{{"type": "file", "ref": "en.txt"}}}},
	})(r)
}

func looksBack(r agenttest.Request) agenttest.Reply {
	if !bytes.Contains(r.Body, []byte("There is no Dutch greeting.")) {
		return nothingToPropose(r)
	}
	return agenttest.Answer(object{"proposals": []object{
		{"title": "Greet in Dutch", "body": "See en.txt.", "type": "feature", "risk": "low"},
	}})(r)
}

func plans(r agenttest.Request) agenttest.Reply {
	for title, file := range map[string]string{"Say hallo": "hello.txt", "Say dag": "bye.txt"} {
		if strings.Contains(r.LastUser, "It is titled \""+title) {
			return agenttest.Answer(object{"type": "feature", "risk": "low", "tasks": []object{{
				"name": "write", "title": title, "plan": "Write " + file, "relevant_files": []string{file}, "complexity": "low",
			}}})(r)
		}
	}
	return agenttest.Answer(object{"type": "feature", "risk": "low", "tasks": []object{}, "insufficient": "Which words are Dutch?"})(r)
}

func implements(r agenttest.Request) agenttest.Reply {
	command := "echo hallo > hello.txt"
	if bytes.Contains(r.Body, []byte("Write bye.txt")) {
		command = "sed s/hallo/dag/ hello.txt > bye.txt"
	}
	return agenttest.Steps(
		agenttest.Use("Bash", object{"command": command + " && git add -A && git commit -q -m 'Say it'"}),
		agenttest.Answer(object{"summary": "said it"}),
	)(r)
}

// TestClaudeLearns drives the real CLI through the roles around a change: a skill is made
// of what comes back and waits for a person; a reflection proposes what was noticed on
// the way, which runs by itself, takes an architect, and becomes two intents of which one
// builds on the other. What was proposed once is not proposed again.
func TestClaudeLearns(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	cli := agenttest.ClaudeCLI(t)
	model := agenttest.NewServer(t)
	s := &staff{seen: map[string]int{}, ids: map[string]bool{}}
	env := onPath(cli)
	env.set("ANTHROPIC_BASE_URL", model.Script("claude", s.reply))
	env.set("ANTHROPIC_API_KEY", "no-key")
	r := newRepo(t, map[string]string{"pfl-forge.yaml": "agent: claude\n", "en.txt": "hello\n", "fr.txt": "bonjour\n"}, env...)
	r.draft("learn", "type: skill_extraction")

	r.must(3, "run")
	if inbox := r.must(0, "inbox").stdout; !strings.Contains(inbox, ".claude/skills/greeting-somebody/SKILL.md") {
		t.Errorf("the inbox says\n%s", inbox)
	}
	r.must(0, "approve", "learn")
	r.must(0, "run")

	if got := r.read(".claude/skills/greeting-somebody/SKILL.md"); !strings.Contains(got, "name: greeting-somebody\n") || !strings.Contains(got, "# Greeting") {
		t.Errorf("the skill is %q", got)
	}
	if got := r.read("bye.txt"); got != "dag\n" {
		t.Errorf("bye.txt is %q", got)
	}
	if got := r.subjects(); len(got) != 4 {
		t.Errorf("main has %q", got)
	}
	if got := r.must(0, "history").stdout; strings.Count(got, "success") != 4 {
		t.Errorf("the history is\n%s", got)
	}
	for role, most := range map[string]int{"observe": 1, "abstract": 1, "architect": 1, "analyze": 3, "implement": 2, "review": 3} {
		if s.seen[role] != most {
			t.Errorf("%s was called %d times, want %d", role, s.seen[role], most)
		}
	}
	if s.seen["reflect"] == 0 {
		t.Error("nobody looked back")
	}
	checkCosts(t, r, model.Served("claude"))
	r.tidy()
}
