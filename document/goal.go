package document

import (
	"reflect"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// GoalOptions are the keys of drafts and intents' files that say how criteria are
// reached.
type GoalOptions struct {
	MaxIterations  int      `yaml:"max_iterations,omitempty"`       // of one run; 10 if left out
	HistoryContext int      `yaml:"history_context_size,omitempty"` // how many of the newest summaries an execution is told; 5 if left out
	Model          string   `yaml:"model,omitempty"`                // of the executing agent, if not the project's
	Tools          []string `yaml:"allowed_tools,omitempty"`        // of the executing agent, if not all that the project allows
	SystemPrompt   string   `yaml:"append_system_prompt,omitempty"` // added to the executing agent's
	JudgePrompt    string   `yaml:"judgment_prompt,omitempty"`      // added to the judge's
	History        string   `yaml:"history,omitempty"`              // the file of summaries; .e8/history.jsonl if left out
	Knowledge      string   `yaml:"knowledge,omitempty"`            // the file of knowledge; .e8/knowledge.jsonl if left out
	RawLog         bool     `yaml:"raw_log,omitempty"`              // keep the output of the executing agent, in a file for each iteration
	RawLogDir      string   `yaml:"raw_log_dir,omitempty"`          // of those files; .e8/logs if left out
}

// GoalOptionsOf returns the options as they were submitted; nil for nil.
func GoalOptionsOf(g *forge.GoalOptions) *GoalOptions {
	if g == nil {
		return nil
	}
	return &GoalOptions{
		MaxIterations: g.MaxIterations, HistoryContext: g.HistoryContext, Model: g.Model, Tools: g.Tools,
		SystemPrompt: g.SystemPrompt, JudgePrompt: g.JudgePrompt,
		History: g.HistoryFile, Knowledge: g.KnowledgeFile, RawLog: g.RawLog, RawLogDir: g.LogDir,
	}
}

// Options returns the options for the intent; nil for nil.
func (d *GoalOptions) Options() *forge.GoalOptions {
	if d == nil {
		return nil
	}
	return &forge.GoalOptions{
		MaxIterations: d.MaxIterations, HistoryContext: d.HistoryContext, Model: d.Model, Tools: d.Tools,
		SystemPrompt: d.SystemPrompt, JudgePrompt: d.JudgePrompt,
		HistoryFile: d.History, KnowledgeFile: d.Knowledge, RawLog: d.RawLog, LogDir: d.RawLogDir,
	}
}

// Values returns every value by its path in the file, such as goal.model. Those of nil are
// zero.
func (d *GoalOptions) Values() map[string]any {
	if d == nil {
		d = &GoalOptions{}
	}
	out := map[string]any{}
	for f, v := range reflect.ValueOf(*d).Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		out["goal."+name] = v.Interface()
	}
	return out
}

// GoalCounts has the numbers of a goal's iterations and of its criteria that are met.
type GoalCounts struct {
	Iteration     int `json:"iteration"       yaml:"iteration"`       // the newest one, counted from 1 over all runs
	Used          int `json:"iterations_used" yaml:"iterations_used"` // by this run
	MaxIterations int `json:"max_iterations"  yaml:"max_iterations"`  // of one run
	Met           int `json:"criteria_met"    yaml:"criteria_met"`    // as the last judgment says
}

// GoalProgress is how far a goal is, in lists.
type GoalProgress struct {
	GoalCounts `yaml:",inline"`
	Criteria   int              `json:"criteria_count"   yaml:"criteria_count"`
	Status     forge.LoopStatus `json:"status,omitempty" yaml:"status,omitempty"` // how its loop ended; empty before that
}

// GoalProgressOf returns how far a goal is; nil for an intent without criteria.
func GoalProgressOf(g *forge.GoalSummary) *GoalProgress {
	if g == nil {
		return nil
	}
	return &GoalProgress{GoalCounts{g.Iteration, g.Used, g.Most, g.Met}, g.Criteria, g.Status}
}
