package workspace

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// goalDoc is what drafts and intents' files say about how criteria are reached.
type goalDoc struct {
	MaxIterations  int      `yaml:"max_iterations,omitempty"`       // of one run; 10 if left out
	HistoryContext int      `yaml:"history_context_size,omitempty"` // how many of the newest summaries an execution is told; 5 if left out
	Model          string   `yaml:"model,omitempty"`                // of the executing agent, if not the project's
	Tools          []string `yaml:"allowed_tools,omitempty"`        // of the executing agent, if not all that the project allows
	SystemPrompt   string   `yaml:"append_system_prompt,omitempty"` // added to the executing agent's
	JudgePrompt    string   `yaml:"judgment_prompt,omitempty"`      // added to the judge's
	History        string   `yaml:"history,omitempty"`              // the file of summaries; .e8/history.jsonl if left out
	Knowledge      string   `yaml:"knowledge,omitempty"`            // the file of what was found out; .e8/knowledge.jsonl if left out
	RawLog         bool     `yaml:"raw_log,omitempty"`              // keep what the executing agent did, in a file for each iteration
	RawLogDir      string   `yaml:"raw_log_dir,omitempty"`          // of those files; .e8/logs if left out
}

func goalDocOf(g *forge.GoalOptions) *goalDoc {
	if g == nil {
		return nil
	}
	return &goalDoc{
		MaxIterations: g.MaxIterations, HistoryContext: g.HistoryContext, Model: g.Model, Tools: g.Tools,
		SystemPrompt: g.SystemPrompt, JudgePrompt: g.JudgePrompt,
		History: g.HistoryFile, Knowledge: g.KnowledgeFile, RawLog: g.RawLog, RawLogDir: g.LogDir,
	}
}

func (d *goalDoc) options() *forge.GoalOptions {
	if d == nil {
		return nil
	}
	return &forge.GoalOptions{
		MaxIterations: d.MaxIterations, HistoryContext: d.HistoryContext, Model: d.Model, Tools: d.Tools,
		SystemPrompt: d.SystemPrompt, JudgePrompt: d.JudgePrompt,
		HistoryFile: d.History, KnowledgeFile: d.Knowledge, RawLog: d.RawLog, LogDir: d.RawLogDir,
	}
}

// values returns every value by its path in the file; of none the zero ones.
func (d *goalDoc) values() map[string]any {
	if d == nil {
		d = &goalDoc{}
	}
	out := map[string]any{}
	for f, v := range reflect.ValueOf(*d).Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		out["goal."+name] = v.Interface()
	}
	return out
}

// fileFields are the fields of an intent that have another name in files.
var fileFields = map[string]string{
	"goal.history_context": "goal.history_context_size",
	"goal.tools":           "goal.allowed_tools",
	"goal.system_prompt":   "goal.append_system_prompt",
	"goal.judge_prompt":    "goal.judgment_prompt",
	"goal.history_file":    "goal.history",
	"goal.knowledge_file":  "goal.knowledge",
	"goal.log_dir":         "goal.raw_log_dir",
}

// fileField returns the name in files of an intent's field, or of an entry of one.
func fileField(field string) string {
	list, index, entry := strings.Cut(field, "[")
	name, ok := fileFields[list]
	switch {
	case !ok:
		return field
	case entry:
		return name + "[" + index
	}
	return name
}

// goal finds what is written and says nothing; bounds and paths are the intent's to
// check.
func (c *frontCheck) goal() {
	g := c.front.Goal
	if g == nil {
		return
	}
	for _, f := range []struct {
		field       string
		value, most int
	}{
		{"goal.max_iterations", g.MaxIterations, forge.MaxIterations},
		{"goal.history_context_size", g.HistoryContext, forge.MaxHistoryContext},
	} {
		if c.pos.Has(f.field) && f.value == 0 {
			c.refuse(f.field, fmt.Sprintf("is 0; it can be 1 to %d", f.most), "")
		}
	}
	for _, f := range []struct{ field, value string }{
		{"goal.model", g.Model},
		{"goal.history", g.History},
		{"goal.knowledge", g.Knowledge},
		{"goal.raw_log_dir", g.RawLogDir},
	} {
		if c.pos.Has(f.field) {
			c.refuse(f.field, checkLine(f.value), "")
		}
	}
	for _, f := range []struct{ field, value string }{
		{"goal.append_system_prompt", g.SystemPrompt}, {"goal.judgment_prompt", g.JudgePrompt},
	} {
		if c.pos.Has(f.field) {
			c.refuse(f.field, checkBody(f.value), "")
		}
	}
}
