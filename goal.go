package forge

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
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

// GoalOptions says how an intent with criteria is worked on.
type GoalOptions struct {
	MaxIterations  int      // 1 to 100; 0: DefaultIterations
	HistoryContext int      // how many of the newest summaries an execution is told, 1 to 20; 0: DefaultHistoryContext
	Model          string   // of the executing agent; empty: the project's
	Tools          []string // of the executing agent, of those that the project allows; empty: all of them
	SystemPrompt   string   // added to the executing agent's
	JudgePrompt    string   // added to the judge's
	HistoryFile    string   // of the summaries, below .e8/; empty: DefaultHistoryFile
	KnowledgeFile  string   // below .e8/; empty: DefaultKnowledgeFile
	RawLog         bool     // keep what the executing agent's program printed, in a file for each iteration
	LogDir         string   // of those files, below .e8/; empty: DefaultLogDir
}

// IsGoal reports whether the intent is worked on until its criteria are met. With a
// recipe, the recipe's check decides.
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

// validGoal returns the first thing that is wrong with an intent's criteria and options,
// or nil.
func validGoal(in *Intent) *FieldError {
	for i, c := range in.Criteria {
		field := fmt.Sprintf("criteria[%d]", i)
		if e := validText(field, c, MaxCriterion); e != nil {
			return e
		}
		if strings.TrimSpace(c) == "" {
			return &FieldError{field, "is empty"}
		}
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
		if p.text == "" {
			continue
		}
		if in.Source != SourceHuman {
			return &FieldError{p.field, "can be set by people only"}
		}
		if e := validText(p.field, p.text, MaxBody); e != nil {
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
var toolShape = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}(\([^(),\x00-\x1f\x7f]{1,200}\))?$`)

// ValidateAgent refuses a model or a tool that an agent's program could take for an
// option or for several arguments.
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

// Intake is what intake made of a goal: a task and criteria, or questions.
type Intake struct {
	Task           string
	Criteria       []string
	Clarifications []Clarification // asked when not empty
	Notes          string          // for a person
	Type           string
	Risk           Risk
	Complexity     Complexity
	RelevantFiles  []string
}

// ExecutionStatus is how an iteration's execution ended, in its agent's words.
type ExecutionStatus string

// The ends of an execution.
const (
	ExecutionSuccess ExecutionStatus = "success"
	ExecutionFailure ExecutionStatus = "failure" // it did not get done
	ExecutionError   ExecutionStatus = "error"   // it could not be tried
)

// Execution is what an executing agent reports of an iteration, and what was seen of
// its work.
type Execution struct {
	Status       ExecutionStatus
	Output       string
	Artifacts    []string // paths
	Approach     string
	StrategyTags []string
	Discoveries  []string
	Applied      []string // ids of knowledge that helped
	Metadata     SummaryMetadata
}

// SummaryMetadata is what was seen of an execution, by no agent's word.
type SummaryMetadata struct {
	ToolsUsed     []string // such as Edit, or Bash(go test)
	FilesModified []string
	ErrorType     string
	TokensUsed    int64
	StrategyTags  []string // these are the agent's
}

// ExecutionSummary sums up an iteration, for those that follow.
type ExecutionSummary struct {
	Iteration int // counted from 1, over all runs of the goal
	Approach  string
	Result    ExecutionStatus
	Reason    string
	Artifacts []string
	Metadata  SummaryMetadata
	Next      *NextAction
	At        time.Time
}

// NextAction is what an iteration left to do.
type NextAction struct {
	SuggestedAction string
	Blockers        []string
	PartialProgress string
	PendingItems    []string
}

// Summarization is what summarize made of an iteration.
type Summarization struct {
	Summary   ExecutionSummary
	Knowledge []Knowledge
}

// KnowledgeType says what a piece of knowledge is about.
type KnowledgeType string

// The types of knowledge.
const (
	KnowledgeDiscovery  KnowledgeType = "discovery"  // a fact about the code
	KnowledgeLesson     KnowledgeType = "lesson"     // learned from what failed
	KnowledgePattern    KnowledgeType = "pattern"    // a convention
	KnowledgeConstraint KnowledgeType = "constraint" // what technology does not allow
	KnowledgeCodebase   KnowledgeType = "codebase"   // how the code is built
)

// Confidence is how certain a piece of knowledge is.
type Confidence string

// The confidences.
const (
	ConfidenceHigh   Confidence = "high"
	ConfidenceMedium Confidence = "medium"
	ConfidenceLow    Confidence = "low"
)

// Knowledge is what a goal's iterations found out that others can use.
type Knowledge struct {
	ID           string // unique within the project, once it is journaled
	Type         KnowledgeType
	Category     string // such as error_handling, testing
	Content      string
	ExampleFile  string // a path, with lines if they matter
	SourceTask   string // the goal that it was found in
	Confidence   Confidence
	AppliedCount int // executions that it helped
	CreatedAt    time.Time
}

// Judgment says whether a goal is reached, criterion by criterion.
type Judgment struct {
	Head        string // the commit that was judged; empty if the goal has changed nothing
	Complete    bool
	Evaluations []Evaluation
	Reason      string
	NextAction  string // what to do where it is not complete
}

// Evaluation is the verdict on one criterion.
type Evaluation struct {
	Criterion  string
	Met        bool
	Evidence   string
	Confidence float64 // 0 to 1
}

// Loop is what the steps of an iteration are told of their goal.
type Loop struct {
	Iteration int // counted from 1, over all runs of the goal
	Left      int // iterations that may follow this one
	Criteria  []string
	Summaries []ExecutionSummary // the newest, and before them the newest of those that failed; oldest first; judge: this iteration's only
	Knowledge []Knowledge        // execute, summarize: what is known already
	Judgment  *Judgment          // execute: the last one
	Execution *Execution         // summarize, judge
}

// Iteration is one turn of a goal's loop.
type Iteration struct {
	Number   int // counted from 1, over all runs of the goal
	Attempt  int // of the step execute
	Head     string
	Summary  *ExecutionSummary // nil until it is summed up
	Judgment *Judgment         // nil if it was not judged: its verify commands failed, or it was cut off
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

// GoalSummary is how far a goal is, as lists show it.
type GoalSummary struct {
	Iteration int // the newest, counted from 1, over all runs of the goal
	Most      int // iterations that this run may take
	Used      int // of them
	Criteria  int
	Met       int        // criteria, as the last judgment says
	Status    LoopStatus // how the loop ended; empty while it goes on
}

// GoalView is everything that is known of a goal's loop.
type GoalView struct {
	GoalSummary
	Text       []string // the criteria
	Iterations []Iteration
	Knowledge  []Knowledge // found by it
	Applied    []string    // ids of knowledge that helped, once for each execution
	Error      string      // why it ended otherwise than completed
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
