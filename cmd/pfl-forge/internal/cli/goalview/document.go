// Package goalview is the document of a goal, an intent with criteria: its iterations, the
// judgments on them, and what it found out. Goal status prints it alone, and show as a part
// of the intent.
package goalview

import (
	"cmp"
	"path"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	model "github.com/pfl-forge/pfl-forge/document"
)

// Options are the settings of a goal, as programs read them: in the words of drafts.
type Options struct {
	MaxIterations int `json:"max_iterations" yaml:"max_iterations"`

	// HistoryContext is the number of past iterations that the prompt of the next one has.
	HistoryContext int    `json:"history_context_size" yaml:"history_context_size"`
	Model          string `json:"model,omitempty"      yaml:"model,omitempty"`

	// Tools are those that the agent may use, of those that the project allows; empty: all of
	// these.
	Tools        []string `json:"allowed_tools,omitempty"        yaml:"allowed_tools,omitempty"`
	SystemPrompt string   `json:"append_system_prompt,omitempty" yaml:"append_system_prompt,omitempty"`
	JudgePrompt  string   `json:"judgment_prompt,omitempty"      yaml:"judgment_prompt,omitempty"`

	// HistoryFile, KnowledgeFile and LogDir are paths in the repository. LogDir is empty if
	// raw logs are not kept.
	HistoryFile   string `json:"history"               yaml:"history"`
	KnowledgeFile string `json:"knowledge"             yaml:"knowledge"`
	LogDir        string `json:"raw_log_dir,omitempty" yaml:"raw_log_dir,omitempty"` // empty: nothing is kept there
}

// OptionsOf returns the options of a goal with their defaults filled in; nil for none.
func OptionsOf(g *forge.GoalOptions) *Options {
	if g == nil {
		return nil
	}
	o := &Options{
		MaxIterations: g.Iterations(), HistoryContext: g.History(), Model: g.Model, Tools: g.Tools,
		SystemPrompt: g.SystemPrompt, JudgePrompt: g.JudgePrompt,
		HistoryFile: cmp.Or(g.HistoryFile, forge.DefaultHistoryFile), KnowledgeFile: cmp.Or(g.KnowledgeFile, forge.DefaultKnowledgeFile),
	}
	if g.RawLog {
		o.LogDir = cmp.Or(g.LogDir, forge.DefaultLogDir)
	}
	return o
}

// Document is a goal with its iterations, as programs read it.
type Document struct {
	ID    forge.IntentID `json:"id"    yaml:"id"`
	Title string         `json:"title" yaml:"title"`

	// Status is the end of the goal: completed, max_iterations, error or cancelled; before
	// that it is running or waiting, for a person. IntentStatus is that of any intent.
	Status       string        `json:"status"             yaml:"status"`
	IntentStatus forge.Status  `json:"intent_status"      yaml:"intent_status"`
	Waiting      forge.Waiting `json:"waiting,omitempty"  yaml:"waiting,omitempty"`
	Reason       string        `json:"reason,omitempty"   yaml:"reason,omitempty"`
	Activity     string        `json:"activity,omitempty" yaml:"activity,omitempty"`

	model.GoalCounts `yaml:",inline"` //nolint:embeddedstructfieldcheck // its place is that of its fields in the output

	Criteria   []document.Claim `json:"criteria"          yaml:"criteria"`       // as the last judgment says
	Judgment   *judgment        `json:"final_judgment"    yaml:"final_judgment"` // the last one; nil before the first
	Iterations []iteration      `json:"iterations"        yaml:"iterations"`     // of all runs, the oldest first
	Knowledge  []knowledge      `json:"knowledge_found"   yaml:"knowledge_found"`
	Applied    []string         `json:"knowledge_applied" yaml:"knowledge_applied"` // ids, once for each iteration

	Files `yaml:",inline"`

	Error        string   `json:"error_message,omitempty" yaml:"error_message,omitempty"`
	Commit       string   `json:"commit,omitempty"        yaml:"commit,omitempty"` // that reached the base branch
	Tokens       int64    `json:"tokens"                  yaml:"tokens"`
	CachedTokens int64    `json:"cached_tokens"           yaml:"cached_tokens"`
	CostUSD      float64  `json:"cost_usd"                yaml:"cost_usd"`
	Commands     []string `json:"commands,omitempty"      yaml:"commands,omitempty"` // what a person can do while it waits
}

// Files are the paths, from the repository's root, of the files about a goal, as a part of
// Document. Goal status leaves them empty for an organisation's goal, of which there are no
// such files.
type Files struct {
	HistoryPath   string `json:"history_path,omitempty"   yaml:"history_path,omitempty"`
	KnowledgePath string `json:"knowledge_path,omitempty" yaml:"knowledge_path,omitempty"`
	RawLogDir     string `json:"raw_log_dir,omitempty"    yaml:"raw_log_dir,omitempty"` // empty: raw logs are not kept
}

// judgment says whether a goal is reached.
type judgment struct {
	// Head is the commit that was judged; empty if the iteration made none.
	Head string `json:"head,omitempty" yaml:"head,omitempty"`

	// Complete says that every criterion is met, each as its claim says.
	Complete bool             `json:"is_complete"    yaml:"is_complete"`
	Criteria []document.Claim `json:"criteria"       yaml:"criteria"`
	Reason   string           `json:"overall_reason" yaml:"overall_reason"`

	// NextAction is the judge's advice for the next iteration.
	NextAction string `json:"suggested_next_action,omitempty" yaml:"suggested_next_action,omitempty"`
}

// iteration is one turn of a goal: an execution, and the judgment on it.
type iteration struct {
	// Number counts the iterations of all runs from 1.
	Number int `json:"iteration" yaml:"iteration"`

	// Head is the last commit of the iteration; empty if it made none.
	Head string `json:"head,omitempty" yaml:"head,omitempty"`

	// Approach to Next are from the summary of the iteration, and empty before there is one.
	// An empty Result means that it goes on, or was cut off.
	Approach     string                `json:"approach,omitempty"       yaml:"approach,omitempty"`
	Result       forge.ExecutionStatus `json:"result,omitempty"         yaml:"result,omitempty"` // empty: it goes on, or was cut off
	Reason       string                `json:"reason,omitempty"         yaml:"reason,omitempty"`
	Artifacts    []string              `json:"artifacts,omitempty"      yaml:"artifacts,omitempty"`
	Tools        []string              `json:"tools_used,omitempty"     yaml:"tools_used,omitempty"`
	Files        []string              `json:"files_modified,omitempty" yaml:"files_modified,omitempty"`
	ErrorType    string                `json:"error_type,omitempty"     yaml:"error_type,omitempty"`
	StrategyTags []string              `json:"strategy_tags,omitempty"  yaml:"strategy_tags,omitempty"`
	Next         *nextAction           `json:"next,omitempty"           yaml:"next,omitempty"`

	// Judged says that a judgment was made; Met is how many criteria are met by it.
	Judged   bool      `json:"judged"             yaml:"judged"`
	Met      int       `json:"criteria_met"       yaml:"criteria_met"`
	Judgment *judgment `json:"judgment,omitempty" yaml:"judgment,omitempty"`

	// Tokens to CostUSD add up its attempts: the executions, and those that followed from
	// them.
	Tokens       int64   `json:"tokens"        yaml:"tokens"`
	CachedTokens int64   `json:"cached_tokens" yaml:"cached_tokens"`
	CostUSD      float64 `json:"cost_usd"      yaml:"cost_usd"`

	// At is the time of its summary; nil before that.
	At *time.Time `json:"timestamp,omitempty" yaml:"timestamp,omitempty"`
}

// nextAction is the work that an iteration left, in its own words.
type nextAction struct {
	SuggestedAction string   `json:"suggested_action"           yaml:"suggested_action"`
	Blockers        []string `json:"blockers,omitempty"         yaml:"blockers,omitempty"`
	PartialProgress string   `json:"partial_progress,omitempty" yaml:"partial_progress,omitempty"`
	PendingItems    []string `json:"pending_items,omitempty"    yaml:"pending_items,omitempty"`
}

// knowledge is something that a goal found out and other intents can use.
type knowledge struct {
	ID          string              `json:"id"                     yaml:"id"`
	Type        forge.KnowledgeType `json:"type"                   yaml:"type"`
	Category    string              `json:"category"               yaml:"category"`
	Content     string              `json:"content"                yaml:"content"`
	ExampleFile string              `json:"example_file,omitempty" yaml:"example_file,omitempty"`
	Confidence  forge.Confidence    `json:"confidence"             yaml:"confidence"`

	// Applied counts the iterations whose prompts had it.
	Applied int `json:"applied_count" yaml:"applied_count"`
}

// The statuses of a goal that has not ended; the others are those of forge.LoopStatus.
const (
	Running = "running"
	Waiting = "waiting" // for a person
)

// StatusOf returns the status of a goal: Running, Waiting, or how it ended.
func StatusOf(s *forge.Summary) string {
	switch {
	case s.Goal.Status != "":
		return string(s.Goal.Status)
	case s.Waiting != "":
		return Waiting
	}
	return Running
}

// rawLogs returns where a goal's raw logs are kept, empty if they are not.
func rawLogs(o *Options, id forge.IntentID) string {
	if o.LogDir == "" {
		return ""
	}
	return path.Join(o.LogDir, string(id))
}
