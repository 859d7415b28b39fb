package goalfile_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/goalfile"
)

const whole = `# everything that there is
task: |
  Add a reset link

  Below the login form.
criteria:
  - go test ./... passes
  - "a mail is sent: no more than one"
max_iterations: 100
persist: ./.e8/reset/history.jsonl
knowledge: .e8/knowledge.jsonl
history_context_size: 20
logging: {raw_log: true, raw_log_dir: .e8/logs/}
claude_options:
  allowed_tools: [Read, Edit, "Bash(go test:*)"]
  model: opus
  output_format: stream-json
  verbose: true
prompts:
  judgment: Be strict.
  append_system_prompt: Write tests first.
`

func TestGood(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want goalfile.Goal
	}{
		"whole": {whole, goalfile.Goal{
			Task:     "Add a reset link\n\nBelow the login form.\n",
			Criteria: []string{"go test ./... passes", "a mail is sent: no more than one"},
			Options: forge.GoalOptions{
				MaxIterations: 100, HistoryContext: 20, Model: "opus", Tools: []string{"Read", "Edit", "Bash(go test:*)"},
				SystemPrompt: "Write tests first.", JudgePrompt: "Be strict.",
				HistoryFile: ".e8/reset/history.jsonl", KnowledgeFile: ".e8/knowledge.jsonl", RawLog: true, LogDir: ".e8/logs",
			},
		}},
		"commands": {
			"task: a\ncriteria:\n  - b\n  - check: tests\n  - {type: command, command: go test, expect: {exit_code: 1, output: '^ok'}, timeout: 2m}\n",
			goalfile.Goal{
				Task: "a", Criteria: []string{"b", "check tests passes", "`go test` exits with 1, and its output matches `^ok`"},
				Checks: []forge.Check{
					{Criterion: 2, Name: "tests"},
					{Criterion: 3, Command: "go test", ExitCode: 1, Output: "^ok", Timeout: 2 * time.Minute},
				},
			},
		},
		"least": {"task: a\ncriteria: [b]\n", goalfile.Goal{Task: "a", Criteria: []string{"b"}}},
		"what the seed may leave empty": {
			"task: a\ncriteria: [b]\npersist: null\nlogging:\nclaude_options: {}\nprompts: {judgment: null, append_system_prompt: null}\n",
			goalfile.Goal{Task: "a", Criteria: []string{"b"}},
		},
		"what the runner decides itself": {
			"task: a\ncriteria: [b]\nclaude_options: {output_format: json, verbose: false}\n",
			goalfile.Goal{Task: "a", Criteria: []string{"b"}, Notices: []string{
				"claude_options.output_format: json has no effect: pfl-forge reads the agent's event stream",
				"claude_options.verbose: false has no effect: pfl-forge reads the agent's event stream",
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := goalfile.Parse("task.yaml", []byte(c.text))
			if err != nil || !reflect.DeepEqual(*got, c.want) {
				t.Errorf("Parse = %+v, %v\nwant %+v", got, err, c.want)
			}
		})
	}
}

func TestBad(t *testing.T) {
	const (
		ok         = "task: a\ncriteria: [b]\n"
		noTask     = "task: is missing; describe the task"
		noCriteria = "criteria: is missing; give at least one condition that must hold in the end"
	)
	long := strings.Repeat("x", forge.MaxBody+1)
	for text, want := range map[string]string{
		"":                                                "task.yaml: " + noTask + "\ntask.yaml: " + noCriteria,
		"task: a\n":                                       "task.yaml:1: " + noCriteria,
		"criteria: [a]\n":                                 "task.yaml:1: " + noTask,
		"task: ' '\ncriteria: [a]\n":                      "task.yaml:1: task: is empty; describe the task",
		"task: a\ncriteria: []\n":                         "task.yaml:2: criteria: is empty; give at least one condition that must hold in the end",
		"task: a\ncriteria: b\n":                          `task.yaml:2: criteria: must be a list, not "b"`,
		"task: a\ncriteria: [b, '']\n":                    "task.yaml:2: criteria[1]: is empty",
		"task:\n  - a\ncriteria: [b]\n":                   "task.yaml:2: task: must be a single value, not a list",
		ok + "max_iteration: 3\n":                         `task.yaml:3: max_iteration: unknown key; did you mean "max_iterations"?`,
		ok + "claude_options:\n  modell: x\n":             `task.yaml:4: claude_options.modell: unknown key; did you mean "model"?`,
		ok + "max_iterations: 0\n":                        "task.yaml:3: max_iterations: is 0; it can be 1 to 100",
		ok + "max_iterations: 101\n":                      "task.yaml:3: max_iterations: is 101; it can be 1 to 100",
		ok + "max_iterations: many\n":                     `task.yaml:3: max_iterations: must be a whole number`,
		ok + "history_context_size: 21\n":                 "task.yaml:3: history_context_size: is 21; it can be 1 to 20",
		ok + "history_context_size: 0\n":                  "task.yaml:3: history_context_size: is 0; it can be 1 to 20",
		ok + "persist: history.jsonl\n":                   `task.yaml:3: persist: is "history.jsonl"; it has to be a path below .e8/, such as .e8/history.jsonl`,
		ok + "persist: .e8/../main.go\n":                  `task.yaml:3: persist: is "main.go"; it has to be a path below .e8/`,
		ok + "knowledge: /etc/passwd\n":                   `task.yaml:3: knowledge: is "/etc/passwd"; it has to be a path below .e8/`,
		ok + "logging:\n  raw_log_dir: ../logs\n":         `task.yaml:4: logging.raw_log_dir: is "../logs"; it has to be a path below .e8/`,
		ok + "logging: {raw_log: maybe}\n":                "task.yaml:3: logging.raw_log: must be true or false",
		ok + "claude_options: {output_format: xml}\n":     `task.yaml:3: claude_options.output_format: is "xml"; it can be text, json or stream-json`,
		ok + "claude_options: {model: --help}\n":          `task.yaml:3: claude_options.model: is "--help"; it has to be a model's name`,
		ok + "claude_options: {model: a b}\n":             `task.yaml:3: claude_options.model: is "a b"; it has to be a model's name`,
		ok + "claude_options: {allowed_tools: ['-p']}\n":  `task.yaml:3: claude_options.allowed_tools[0]: is "-p"; it has to be a tool such as Edit`,
		ok + "task: b\n":                                  "task.yaml:3: task: duplicate key, first given on line 1",
		ok + "---\ntask: b\n":                             "task.yaml:3: holds a second document; only one is allowed",
		"task: &a b\ncriteria: [*a]\n":                    "task.yaml:1: task: has an anchor (&a); anchors are not allowed",
		"task: [\n":                                       "task.yaml:",
		"just text\n":                                     `task.yaml:1: must be a mapping of keys to values, not "just text"`,
		"task: \xff\n":                                    "task.yaml:1: is not UTF-8",
		"criteria: [b]\ntask: " + long:                    fmt.Sprintf("task.yaml:2: task: has %d bytes; at most %d are allowed", len(long), forge.MaxBody),
		ok + "#" + strings.Repeat("x", goalfile.MaxBytes): "task.yaml: is 524311 bytes long; at most 524288 are allowed",
	} {
		if got, err := goalfile.Parse("task.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Parse(%.60q) = %+v, %v\nwant %s", text, got, err, want)
		}
	}
}
