// Package goalfile reads task.yaml: a goal, and how it is worked on.
//
// The command goal run calls Parse and submits the result as an intent with
// criteria. It checks the file alone; the command compares claude_options with
// worker_tools of the project's configuration. A mistake submits nothing.
package goalfile

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// Name is the file that is read if none is named.
const Name = "task.yaml"

// MaxBytes is the largest size of a file: its text has to fit into an intent.
const MaxBytes = 512 << 10

// Goal is the content of a file.
type Goal struct {
	Task     string
	Criteria []string
	Checks   []forge.Check // those of the criteria that a command decides
	Options  forge.GoalOptions
	Notices  []string // what it says that has no effect here, a sentence each
}

// file has the keys of a task.yaml.
type file struct {
	Task           string               `yaml:"task"`
	Criteria       []document.Criterion `yaml:"criteria"`
	MaxIterations  *int                 `yaml:"max_iterations"`
	Persist        *string              `yaml:"persist"`
	Knowledge      *string              `yaml:"knowledge"`
	HistoryContext *int                 `yaml:"history_context_size"`
	Logging        logging              `yaml:"logging"`
	Claude         claude               `yaml:"claude_options"`
	Prompts        prompts              `yaml:"prompts"`
}

// logging has the keys about the raw output of agents.
type logging struct {
	RawLog    bool    `yaml:"raw_log"`
	RawLogDir *string `yaml:"raw_log_dir"`
}

// claude has the options for Claude Code.
type claude struct {
	AllowedTools []string `yaml:"allowed_tools"`
	Model        *string  `yaml:"model"`
	OutputFormat string   `yaml:"output_format"`
	Verbose      bool     `yaml:"verbose"`
}

// prompts has texts that are added to the prompts.
type prompts struct {
	Judgment     *string `yaml:"judgment"`
	AppendSystem *string `yaml:"append_system_prompt"`
}

// The values of output_format that the program of the same options knows.
const (
	streamJSON = "stream-json"
	formats    = "text, json or stream-json"
)

// Parse reads a file that is called name in errors. What is wrong with it is a list of
// errors that print as "name:line: field: reason", one per line.
func Parse(name string, data []byte) (*Goal, error) {
	f := file{Claude: claude{OutputFormat: streamJSON, Verbose: true}}
	pos, err := strictyaml.Decode(data, &f, strictyaml.Options{File: name, MaxBytes: MaxBytes})
	if err != nil {
		return nil, err
	}
	if errs := f.check(pos); len(errs) > 0 {
		errs.Sort()
		return nil, errs
	}
	g := f.goal()
	if e := validate(g); e != nil {
		return nil, strictyaml.Errors{pos.Errorf(keyOf(e.Field), "%s", e.Reason)}
	}
	return g, nil
}

// check returns an error for each value that the file's own rules refuse, in no
// order. Rules that hold for every intent are left to validate.
func (f *file) check(pos *strictyaml.Positions) strictyaml.Errors {
	var errs strictyaml.Errors
	fail := func(field, format string, args ...any) { errs = append(errs, pos.Errorf(field, format, args...)) }
	switch {
	case !pos.Has("task"):
		fail("task", "is missing; describe the task")
	case strings.TrimSpace(f.Task) == "":
		fail("task", "is empty; describe the task")
	}
	switch {
	case !pos.Has("criteria"):
		fail("criteria", "is missing; give at least one condition that must hold in the end")
	case len(f.Criteria) == 0:
		fail("criteria", "is empty; give at least one condition that must hold in the end")
	}
	if e := document.CheckCriteria(f.Criteria); e != nil {
		fail(e.Field, "%s", e.Reason)
	}
	for _, n := range []struct {
		field string
		value *int
		most  int
	}{{"max_iterations", f.MaxIterations, forge.MaxIterations}, {"history_context_size", f.HistoryContext, forge.MaxHistoryContext}} {
		if n.value != nil && (*n.value < 1 || *n.value > n.most) {
			fail(n.field, "is %d; it can be 1 to %d", *n.value, n.most)
		}
	}
	if m := f.Claude.Model; m != nil && *m == "" {
		fail("claude_options.model", "is empty; omit it to use the project's")
	}
	if !slices.Contains([]string{"text", "json", streamJSON}, f.Claude.OutputFormat) {
		fail("claude_options.output_format", "is %q; it can be %s", f.Claude.OutputFormat, formats)
	}
	return errs
}

// goal returns the file's content as a goal. Values that are left out stay
// zero, so that the project's defaults hold for them.
func (f *file) goal() *Goal {
	g := &Goal{Task: f.Task, Options: forge.GoalOptions{
		MaxIterations: value(f.MaxIterations), HistoryContext: value(f.HistoryContext),
		Model: value(f.Claude.Model), Tools: f.Claude.AllowedTools,
		SystemPrompt: value(f.Prompts.AppendSystem), JudgePrompt: value(f.Prompts.Judgment),
		HistoryFile: clean(f.Persist), KnowledgeFile: clean(f.Knowledge),
		RawLog: f.Logging.RawLog, LogDir: clean(f.Logging.RawLogDir),
	}}
	g.Criteria, g.Checks = document.Criteria(f.Criteria)
	if f.Claude.OutputFormat != streamJSON {
		g.Notices = append(g.Notices, fmt.Sprintf("claude_options.output_format: %s has no effect: pfl-forge reads the agent's event stream",
			f.Claude.OutputFormat))
	}
	if !f.Claude.Verbose {
		g.Notices = append(g.Notices, "claude_options.verbose: false has no effect: pfl-forge reads the agent's event stream")
	}
	return g
}

// value returns the value of a key; the zero value if it is left out.
func value[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}

// clean returns a path in its shortest form, and an empty one as it is:
// .e8/history.jsonl for ./.e8//history.jsonl.
func clean(p *string) string {
	if p == nil || *p == "" {
		return ""
	}
	return path.Clean(*p)
}

// validate returns the first error that an intent with this goal has, or nil.
// The other fields of that intent are made up. The error's field is one of the
// intent: keyOf turns it into a key of the file.
func validate(g *Goal) *forge.FieldError {
	i := forge.Intent{
		Project: "p", ID: "i", Settings: forge.Settings{
			Title:    "t",
			Body:     g.Task,
			Criteria: g.Criteria,
			Checks:   g.Checks,
			Goal:     &g.Options,
		}, Source: forge.SourceHuman,
	}
	return i.Validate()
}

// keys are the names that a file has for fields of an intent.
var keys = map[string]string{
	"body": "task", "goal.max_iterations": "max_iterations", "goal.history_context": "history_context_size",
	"goal.tools": "claude_options.allowed_tools", "goal.model": "claude_options.model", "goal.system_prompt": "prompts.append_system_prompt",
	"goal.judge_prompt": "prompts.judgment", "goal.history_file": "persist", "goal.knowledge_file": "knowledge",
	"goal.log_dir": "logging.raw_log_dir",
}

// keyOf returns the key of the file for a field of an intent: "criteria[2]"
// stays as it is, "goal.tools[1]" becomes "claude_options.allowed_tools[1]".
func keyOf(field string) string {
	list, index, entry := strings.Cut(field, "[")
	key, ok := keys[list]
	switch {
	case !ok:
		return field
	case entry:
		return key + "[" + index
	}
	return key
}
