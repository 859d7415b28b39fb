package forgedir

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/projection"
)

// wholeGoal has a value in every field.
func wholeGoal() *forge.GoalOptions {
	return &forge.GoalOptions{
		MaxIterations: 7, HistoryContext: 3, Model: "opus", Tools: []string{"Read", "Edit"},
		SystemPrompt: "Be brief.", JudgePrompt: "Be strict.",
		HistoryFile: ".e8/login/history.jsonl", KnowledgeFile: ".e8/login/knowledge.jsonl", RawLog: true, LogDir: ".e8/login/logs",
	}
}

const goalFront = `---
criteria: [all forms check]
goal:
  max_iterations: 7
  history_context_size: 3
  model: opus
  allowed_tools: [Read, Edit]
  append_system_prompt: Be brief.
  judgment_prompt: Be strict.
  history: .e8/login/history.jsonl
  knowledge: .e8/login/knowledge.jsonl
  raw_log: true
  raw_log_dir: .e8/login/logs
---
Check the forms
`

// What a draft says of a goal stands in the intent's file, and reads back as the same.
func TestGoalOfADraft(t *testing.T) {
	d := newFixture(t)
	d.put(layout.Drafts+"/fix-login.md", goalFront)
	inputs, problems := d.drafts()
	if len(inputs) != 1 || len(problems) > 0 {
		t.Fatalf("got %v %v", inputs, problems)
	}
	intent := inputs[0].Draft()
	if diff := cmp.Diff(wholeGoal(), intent.Goal); diff != "" {
		t.Errorf("goal (-want +got):\n%s", diff)
	}
	v := forge.View{Intent: *intent, Seq: 1}
	d.write(v)
	front, _, _ := strings.Cut(strings.SplitAfterN(goalFront, "\n", 3)[2], "---\n")
	shown := strings.ReplaceAll(front, "[Read, Edit]", "\n    - Read\n    - Edit")
	if text := d.text(fixLogin); !strings.Contains(text, strings.ReplaceAll(shown, ": \n", ":\n")) {
		t.Errorf("%s\nhas not\n%s", text, shown)
	}
	doc, _, err := projection.DecodeIntent([]byte(d.text(fixLogin)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wholeGoal(), doc.Goal.Options()); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestGoalOfADraftRefused(t *testing.T) {
	const (
		aModel = "it has to be a model's name as the agent takes it, without spaces and commas"
		aTool  = "it has to be a tool such as Edit, or Bash(go test:*)"
	)
	const from = "it has to be a path below .e8/, such as .e8/history.jsonl"
	for _, tt := range []struct{ name, goal, want string }{
		{"unknown key", "max_iteration: 3", `4: goal.max_iteration: unknown key; did you mean "max_iterations"?`},
		{"too many iterations", "max_iterations: 101", "4: goal.max_iterations: is 101; it can be 1 to 100"},
		{"no iteration", "max_iterations: 0", "4: goal.max_iterations: is 0; it can be 1 to 100"},
		{"negative", "max_iterations: -1", "4: goal.max_iterations: is -1; it can be 1 to 100"},
		{"no number", "max_iterations: many", `4: goal.max_iterations: must be a whole number, not "many"`},
		{"too much history", "history_context_size: 21", "4: goal.history_context_size: is 21; it can be 1 to 20"},
		{"no history", "history_context_size: 0", "4: goal.history_context_size: is 0; it can be 1 to 20"},
		{"elsewhere", "history: /etc/passwd", `4: goal.history: is "/etc/passwd"; ` + from},
		{"out", "knowledge: .e8/../x", `4: goal.knowledge: is ".e8/../x"; ` + from},
		{"the folder", "raw_log_dir: .e8", `4: goal.raw_log_dir: is ".e8"; ` + from},
		{"nowhere", "raw_log_dir: ''", "4: goal.raw_log_dir: is empty"},
		{"no model", "model: ' '", "4: goal.model: is empty"},
		{"two lines", `model: "a\nb"`, "4: goal.model: holds the control character U+000A; it must be one line of text"},
		{"an option", "model: --verbose", `4: goal.model: is "--verbose"; ` + aModel},
		{"two models", "model: opus,haiku", `4: goal.model: is "opus,haiku"; ` + aModel},
		{"an option among tools", "allowed_tools: [Bash(go test:*), --x]", `4: goal.allowed_tools[1]: is "--x"; ` + aTool},
		{"two tools in one", "allowed_tools: ['Read,Edit']", `4: goal.allowed_tools[0]: is "Read,Edit"; ` + aTool},
		{"a long model", "model: " + strings.Repeat("x", 257), `4: goal.model: is "` + strings.Repeat("x", 128) + `"; ` + aModel},
		{"a blank tool", "allowed_tools: [Read, '']", `4: goal.allowed_tools[1]: is ""; ` + aTool},
		{"a blank prompt", "judgment_prompt: ''", "4: goal.judgment_prompt: is empty"},
		{"a prompt with NUL", `append_system_prompt: "a\0b"`, "4: goal.append_system_prompt: holds a NUL character"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newFixture(t)
			d.put(layout.Drafts+"/x.md", "---\ncriteria: [it builds]\ngoal:\n  "+tt.goal+"\n---\ntext\n")
			inputs, problems := d.drafts()
			if len(inputs) > 0 || len(problems) != 1 {
				t.Fatalf("got %v %v", inputs, problems)
			}
			if got := strings.TrimPrefix(problems[0].Error(), ".forge/intent-drafts/x.md:"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	d := newFixture(t)
	d.put(layout.Drafts+"/x.md", "---\ngoal: {max_iterations: 3}\n---\ntext\n")
	const want = ".forge/intent-drafts/x.md:2: goal: is about how criteria are reached, and there are none"
	if _, problems := d.drafts(); len(problems) != 1 || problems[0].Error() != want {
		t.Errorf("got %v", problems)
	}
}

// A refusal of the rules names the field as the file has it.
func TestGoalRefusedByTheRules(t *testing.T) {
	d := newFixture(t)
	d.put(layout.Drafts+"/fix-login.md", goalFront)
	inputs, _ := d.drafts()
	problems, err := d.Decided(inputs[0], []forge.Ruling{{
		Decision: forge.Refused, Field: "goal.judge_prompt", Reason: "goal.judge_prompt: can be set by people only",
	}})
	const want = ".forge/intent-drafts/fix-login.md:9: goal.judgment_prompt: can be set by people only"
	if err != nil || len(problems) != 1 || problems[0].Error() != want {
		t.Errorf("got %v %v, want %s", problems, err, want)
	}
}

func TestGoalCannotBeEdited(t *testing.T) {
	const fixed = "cannot be changed: goals are fixed when they are submitted " +
		"(undo it, or remove the file to have it written again; or cancel the intent and write another draft)"
	for _, tt := range []struct {
		name, old, text string
		want            []string
	}{
		{"criteria", "- all forms check", "- some forms check", []string{"criteria: " + fixed}},
		{"more criteria", "- all forms check\n", "- all forms check\n  - it is fast\n", []string{"criteria: " + fixed}},
		{"iterations", "max_iterations: 7", "max_iterations: 70", []string{"goal.max_iterations: " + fixed}},
		{"tools", "    - Read\n", "", []string{"goal.allowed_tools: " + fixed}},
		{"a path", "history: .e8/login", "history: .e8/other", []string{"goal.history: " + fixed}},
		{"a key taken out", "  model: opus\n", "", nil},
		{"a comment", "criteria:", "# mine\ncriteria:", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newFixture(t)
			v := whole()
			d.write(v)
			d.replace(fixLogin, tt.old, tt.text)
			inputs, problems := d.edits(v)
			var got []string
			for _, p := range problems {
				_, text, _ := strings.Cut(strings.TrimPrefix(p.Error(), ".forge/intents/fix-login.yaml:"), ": ")
				got = append(got, text)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || len(inputs) > 0 {
				t.Errorf("inputs %v, problems (-want +got):\n%s", inputs, diff)
			}
		})
	}
	d := newFixture(t)
	v := sample()
	d.write(v)
	d.replace(fixLogin, "labels:", "criteria: [x]\ngoal: {model: opus}\nlabels:")
	if _, problems := d.edits(v); len(problems) != 2 || problems[0].Field != "criteria" || problems[1].Field != "goal.model" {
		t.Errorf("made a goal by hand: %v", problems)
	}
}
