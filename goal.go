package forge

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// Bounds and defaults of a goal.
const (
	DefaultIterations     = 10
	MaxIterations         = 100
	DefaultHistoryContext = 5
	MaxHistoryContext     = 20

	DefaultHistoryFile   = ".e8/history.jsonl"
	DefaultKnowledgeFile = ".e8/knowledge.jsonl"
	DefaultLogDir        = ".e8/logs"
)

// GoalOptions says how an intent with criteria is worked on. The zero value of
// each field stands for its default.
type GoalOptions struct {
	// MaxIterations bounds the iterations of one run, 1 to 100; 0 stands for DefaultIterations.
	MaxIterations int
	// HistoryContext is how many of the newest summaries an execution gets, 1
	// to 20; 0 stands for DefaultHistoryContext.
	HistoryContext int
	// Model is the model of the executing agent; empty for the project's.
	Model string
	// Tools are those of the executing agent, among those that the project
	// allows; empty for all of them.
	Tools []string
	// SystemPrompt is added to the executing agent's.
	SystemPrompt string
	// JudgePrompt is added to the judge's.
	JudgePrompt string
	// HistoryFile is the path of the summaries below .e8/; empty stands for DefaultHistoryFile.
	HistoryFile string
	// KnowledgeFile is the path of the knowledge below .e8/; empty stands for DefaultKnowledgeFile.
	KnowledgeFile string
	// RawLog keeps the output of the executing agent's program, in a file for each iteration.
	RawLog bool
	// LogDir is the directory of those files below .e8/; empty stands for DefaultLogDir.
	LogDir string
}

// IsGoal reports whether the intent is worked on until its criteria are met. Criteria beside a
// recipe, or of an audit or skill extraction, are refused.
func (i *Intent) IsGoal() bool {
	return len(i.Criteria) > 0 && i.Recipe == "" && i.Type != TypeAudit && i.Type != TypeSkillExtraction
}

// Iterations is how many iterations a goal may take in one run.
func (g *GoalOptions) Iterations() int {
	if g == nil || g.MaxIterations == 0 {
		return DefaultIterations
	}
	return g.MaxIterations
}

// History is how many of the newest summaries an execution is told.
func (g *GoalOptions) History() int {
	if g == nil || g.HistoryContext == 0 {
		return DefaultHistoryContext
	}
	return g.HistoryContext
}

// validGoal returns the first thing that is wrong with an intent's criteria and options, or nil.
func validGoal(in *Intent) *FieldError {
	for i, c := range in.Criteria {
		field := fmt.Sprintf("criteria[%d]", i)
		switch e := validText(field, c, MaxCriterion); {
		case e != nil:
			return e
		case strings.TrimSpace(c) == "":
			return &FieldError{field, "is empty"}
		}
	}
	if len(in.Criteria) > 0 && !in.IsGoal() {
		return &FieldError{"criteria", unjudged(in)}
	}
	if e := validChecks(in); e != nil {
		return e
	}
	g := in.Goal
	if g == nil {
		return nil
	}
	if len(in.Criteria) == 0 {
		return &FieldError{"goal", "is about how criteria are reached, and there are none"}
	}
	for _, n := range []struct {
		field       string
		value, most int
	}{{"goal.max_iterations", g.MaxIterations, MaxIterations}, {"goal.history_context", g.HistoryContext, MaxHistoryContext}} {
		if n.value < 0 || n.value > n.most {
			return &FieldError{n.field, fmt.Sprintf("is %d; it can be 1 to %d", n.value, n.most)}
		}
	}
	if e := g.ValidateAgent(); e != nil {
		return e
	}
	for _, p := range []struct{ field, text string }{{"goal.system_prompt", g.SystemPrompt}, {"goal.judge_prompt", g.JudgePrompt}} {
		switch e := validText(p.field, p.text, MaxBody); {
		case p.text == "":
		case in.Source != SourceHuman:
			return &FieldError{p.field, "can be set by people only"}
		case e != nil:
			return e
		}
	}
	for _, p := range []struct{ field, path string }{
		{"goal.history_file", g.HistoryFile}, {"goal.knowledge_file", g.KnowledgeFile}, {"goal.log_dir", g.LogDir},
	} {
		if p.path != "" && !isGoalPath(p.path) {
			return &FieldError{p.field, fmt.Sprintf("is %q; it has to be a path below .e8/, such as %s", p.path, DefaultHistoryFile)}
		}
	}
	return g.validPlaces()
}

// unjudged returns the reason to refuse the criteria of an intent that is no goal.
func unjudged(in *Intent) string {
	if in.Recipe != "" {
		return fmt.Sprintf("would not be judged: with a recipe, the recipe's own check decides; "+
			"write them into the check of recipe %.64q, or leave the recipe out", in.Recipe)
	}
	return fmt.Sprintf("would not be judged: an intent of type %.64q makes a report or skills, which nobody judges by criteria; "+
		"leave them out, or choose another type", in.Type)
}

// validPlaces refuses files of a goal that are in each other's place.
func (g *GoalOptions) validPlaces() *FieldError {
	history, knowledge := cmp.Or(g.HistoryFile, DefaultHistoryFile), cmp.Or(g.KnowledgeFile, DefaultKnowledgeFile)
	logs := cmp.Or(g.LogDir, DefaultLogDir)
	within := func(a, b string) bool { return a == b || strings.HasPrefix(a, b+"/") }
	switch {
	case within(knowledge, history), within(history, knowledge):
		return &FieldError{"goal.knowledge_file", fmt.Sprintf("is %q, and the summaries are in %q; they have to be two files", knowledge, history)}
	case within(logs, history):
		return &FieldError{"goal.log_dir", fmt.Sprintf("is %q, and the summaries are in the file %q; choose another directory", logs, history)}
	case within(logs, knowledge):
		return &FieldError{"goal.log_dir", fmt.Sprintf("is %q, and what is found out is in the file %q; choose another directory", logs, knowledge)}
	}
	return nil
}

// toolShape is a tool's name, and, in parentheses, what it may be used for.
var toolShape = pattern.New(`^[A-Za-z][A-Za-z0-9_]{0,63}(\([^(),\x00-\x1f\x7f]{1,200}\))?$`)

// ValidateAgent refuses a model or a tool that an agent's program could take
// for an option or for several arguments.
func (g *GoalOptions) ValidateAgent() *FieldError {
	odd := func(r rune) bool { return r <= ' ' || r == 0x7f || r == ',' }
	if m := g.Model; m != "" && (len(m) > 128 || m[0] == '-' || strings.ContainsFunc(m, odd)) {
		return &FieldError{"goal.model", fmt.Sprintf("is %.128q; it has to be a model's name as the agent takes it, without spaces and commas", m)}
	}
	if len(g.Tools) > MaxListLength {
		return &FieldError{"goal.tools", fmt.Sprintf("has %d entries; at most %d are allowed", len(g.Tools), MaxListLength)}
	}
	for i, tool := range g.Tools {
		if !toolShape.MatchString(tool) {
			return &FieldError{fmt.Sprintf("goal.tools[%d]", i), fmt.Sprintf("is %.100q; it has to be a tool such as Edit, or Bash(go test:*)", tool)}
		}
	}
	return nil
}

// isGoalPath reports whether p is a clean path below .e8 in plain characters.
func isGoalPath(p string) bool {
	rest, ok := strings.CutPrefix(p, ".e8/")
	if !ok || len(p) > 200 || path.Clean(p) != p {
		return false
	}
	return !strings.ContainsFunc(rest, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/", r))
	})
}

// Intake is the answer of intake: a task and criteria, or questions.
type Intake struct {
	// Task says what to do, for the executing agent.
	Task string
	// Criteria are those of the goal, each in words that can be judged.
	Criteria []string
	// Clarifications are questions to a person. If there are any, nothing else
	// of the intake counts.
	Clarifications []Clarification
	// Notes are for a person.
	Notes string
	// Type is the judged type.
	Type string
	// Risk is the judged risk.
	Risk Risk
	// Complexity picks the model.
	Complexity Complexity
	// RelevantFiles are paths that the goal is about.
	RelevantFiles []string
}

// ExecutionStatus is how an iteration's execution ended, in its agent's words.
type ExecutionStatus string

// The ends of an execution.
const (
	ExecutionSuccess ExecutionStatus = "success" // the agent got it done
	ExecutionFailure ExecutionStatus = "failure" // the agent did not get it done
	ExecutionError   ExecutionStatus = "error"   // the agent could not try, because something outside of the work failed
)

// Execution is the executing agent's report of an iteration, with the measured
// metadata of its work.
type Execution struct {
	// Status is how it ended, in the agent's words.
	Status ExecutionStatus
	// Output is the agent's report.
	Output string
	// Artifacts are paths that the agent names as results.
	Artifacts []string
	// Approach says how the agent went about it.
	Approach string
	// StrategyTags are the agent's own key words.
	StrategyTags []string
	// Discoveries are facts that the agent found out.
	Discoveries []string
	// Applied are the ids of knowledge that helped.
	Applied []string
	// Metadata is measured, not reported.
	Metadata SummaryMetadata
}

// SummaryMetadata holds measurements of an execution. Only StrategyTags are the agent's own words.
type SummaryMetadata struct {
	// ToolsUsed are names such as Edit or Bash(go test), each once, sorted.
	ToolsUsed []string
	// FilesModified are the paths that the iteration changed.
	FilesModified []string
	// ErrorType is a FailureReason or verify_failed; empty if nothing failed.
	ErrorType string
	// TokensUsed are input and output tokens together.
	TokensUsed int64
	// StrategyTags are the agent's own key words.
	StrategyTags []string
}

// ExecutionSummary sums an iteration up, for those that follow.
type ExecutionSummary struct {
	// Iteration counts from 1, over all runs of the goal.
	Iteration int
	// Approach says how the iteration went about it.
	Approach string
	// Result is how the execution ended.
	Result ExecutionStatus
	// Reason says why.
	Reason string
	// Artifacts are paths of results.
	Artifacts []string
	// Metadata is measured.
	Metadata SummaryMetadata
	// Next is the suggested continuation; nil if there is none.
	Next *NextAction
	// At is when the iteration was summed up, in UTC.
	At time.Time
}

// NextAction is the work that an iteration leaves to the next one.
type NextAction struct {
	// SuggestedAction says what to do next.
	SuggestedAction string
	// Blockers are in the way of that.
	Blockers []string
	// PartialProgress says how far the work is.
	PartialProgress string
	// PendingItems are not begun.
	PendingItems []string
}

// Summarization is the answer of summarize.
type Summarization struct {
	// Summary sums the iteration up.
	Summary ExecutionSummary
	// Knowledge can be of use to others.
	Knowledge []Knowledge
}

// Judgment says whether a goal is reached, criterion by criterion.
type Judgment struct {
	// Head is the commit that was judged; empty if the goal has changed nothing.
	Head string
	// Complete says that every criterion is met. A result has the judge's word;
	// the state of a goal has the verdict that the rules derive from the claims.
	Complete bool
	// Claims answer the criteria. In the state of a goal there is one for each, in their order.
	Claims []Claim
	// Reason sums the judgment up.
	Reason string
	// NextAction says what to do next where the goal is not reached.
	NextAction string
	// Statement is as in a Review.
	Statement Envelope
}

// GoalContext describes a goal and its iterations so far, for the steps of an iteration.
type GoalContext struct {
	// Iteration counts from 1, over all runs of the goal.
	Iteration int
	// Left is how many iterations may follow this one.
	Left int
	// Criteria are those of the goal.
	Criteria []string
	// Summaries are the newest ones, and before them the newest of iterations
	// that failed; oldest first. For judge: that of this iteration only.
	Summaries []ExecutionSummary
	// Knowledge is known already. Empty for judge.
	Knowledge []Knowledge
	// Judgment is the last one, for execute; otherwise nil.
	Judgment *Judgment
	// Execution is that of this iteration, for summarize and judge; otherwise nil.
	Execution *Execution
}

// Iteration is one turn of a goal: execute, rebase and verify, summarize, judge.
type Iteration struct {
	// Number counts from 1, over all runs of the goal.
	Number int
	// Attempt is the attempt of execute, from 1.
	Attempt int
	// Head is the branch's newest commit after it.
	Head string
	// Summary is nil until the iteration is summed up.
	Summary *ExecutionSummary
	// Judgment is nil if the iteration was not judged: its verify commands failed,
	// or it was cut off.
	Judgment *Judgment
}

// LoopStatus is how a goal's loop ended.
type LoopStatus string

// The ends of a loop.
const (
	LoopCompleted     LoopStatus = "completed"
	LoopMaxIterations LoopStatus = "max_iterations"
	LoopError         LoopStatus = "error"
	LoopCancelled     LoopStatus = "cancelled"
)

// GoalSummary is the progress of a goal as lists show it.
type GoalSummary struct {
	// Iteration is the newest, counted from 1 over all runs of the goal.
	Iteration int
	// Most bounds the iterations of this run.
	Most int
	// Used counts the iterations of this run.
	Used int
	// Criteria counts the criteria.
	Criteria int
	// Met counts the criteria that the last judgment says are met.
	Met int
	// Status is how the goal ended; empty while it is worked on.
	Status LoopStatus
}

// GoalView is a goal with all its iterations.
type GoalView struct {
	GoalSummary
	// Text are the criteria.
	Text []string
	// Iterations are those of all runs, in order.
	Iterations []Iteration
	// Knowledge was found out by the goal.
	Knowledge []Knowledge
	// Applied are the ids of knowledge that helped, once for each execution.
	Applied []string
	// Error says why it ended otherwise than completed; empty if it did not.
	Error string
}

// FinalJudgment is the newest judgment, or nil.
func (g *GoalView) FinalJudgment() *Judgment {
	for _, it := range slices.Backward(g.Iterations) {
		if it.Judgment != nil {
			return it.Judgment
		}
	}
	return nil
}
