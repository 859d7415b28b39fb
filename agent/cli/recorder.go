package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Bounds of texts in events, in characters.
const (
	maxName       = 100
	maxText       = 500
	maxTranscript = 8000 // for the transcript; who watches is shown the beginning
)

// Recorder turns the reports of a Reader into events and the outcome of a turn. It
// stops the turn when that takes more turns or costs more than the call allows.
//
// All texts are sanitized and cut here, so a Reader passes them on as they are. A
// Recorder is used by one goroutine at a time.
type Recorder struct {
	call *agent.Call
	sink func(agent.Event)
	// stop ends the turn; Run then fails with the cause.
	stop context.CancelCauseFunc
	// saveNative stores the CLI's session id.
	saveNative func(native string) error
	// counted returns the exact usage from the connection; nil if only the CLI's
	// reports are known.
	counted func() forge.Usage
	// priced says that the CLI's reports include a cost.
	priced bool

	native string
	model  string
	text   string
	tools  map[string]int
	files  []string
	usage  forge.Usage
}

// NewRecorder returns a recorder of a turn of a call whose session is not kept.
// stop must not be nil.
func NewRecorder(call *agent.Call, sink func(agent.Event), stop context.CancelCauseFunc) *Recorder {
	return &Recorder{call: call, sink: sink, stop: stop, saveNative: func(string) error { return nil }}
}

// emit sends an event, if there is a receiver.
func (r *Recorder) emit(e agent.Event) {
	if r.sink != nil {
		r.sink(e)
	}
}

// Started reports the CLI's session id and the model, each as soon as it is known; the
// other may be empty. The first valid id is stored at once: the CLI may be killed any
// time.
func (r *Recorder) Started(native, model string) {
	if model != "" {
		r.model = term.Short(model, maxName)
	}
	// Only the first id counts; a CLI repeats it.
	if r.native != "" || !validNativeID(native) {
		return
	}
	r.native = native
	if err := r.saveNative(native); err != nil {
		r.stop(agent.Fail(forge.FailRepository, "the session cannot be kept: %v", err))
	}
	r.emit(agent.Event{Kind: agent.EventStarted, Session: r.call.Session.ID, Model: r.modelName()})
}

// modelName returns the reported model, or else the requested one.
func (r *Recorder) modelName() string {
	if r.model == "" {
		return term.Short(r.call.Model, maxName)
	}
	return r.model
}

// Text reports a message of the agent. The last one becomes the outcome's text.
func (r *Recorder) Text(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	r.text = text
	r.emit(agent.Event{Kind: agent.EventText, Text: term.Short(text, maxTranscript)})
}

// FinalText replaces the outcome's text without sending an event.
func (r *Recorder) FinalText(text string) {
	if text != "" {
		r.text = text
	}
}

// Thinking reports the agent's reasoning.
func (r *Recorder) Thinking(text string) {
	r.emit(agent.Event{Kind: agent.EventThinking, Text: term.Short(text, maxTranscript)})
}

// ToolUsed reports and counts the use of a tool; on is its file, command or pattern.
func (r *Recorder) ToolUsed(tool, on string) {
	tool = term.Short(tool, maxName)
	if r.tools == nil {
		r.tools = map[string]int{}
	}
	r.tools[tool]++
	r.emit(agent.Event{Kind: agent.EventTool, Tool: tool, Text: term.Short(on, maxText)})
}

// ToolFailed reports that a tool failed, and why.
func (r *Recorder) ToolFailed(tool, why string) {
	r.emit(agent.Event{Kind: agent.EventToolFailed, Tool: term.Short(tool, maxName), Text: term.Short(why, maxText)})
}

// CommandEnded reports that a command of the agent ended, and the last line that it printed.
func (r *Recorder) CommandEnded(tool, output string) {
	r.emit(agent.Event{Kind: agent.EventCommandEnded, Tool: term.Short(tool, maxName), Text: term.Short(agent.LastLine(output), maxText)})
}

// FileWritten adds a file to the outcome, relative to the checkout if it is in it.
func (r *Recorder) FileWritten(file string) {
	if rel, err := filepath.Rel(r.call.Dir, file); err == nil && filepath.IsLocal(rel) {
		file = rel
	}
	if file = term.Line(file); file != "" && !slices.Contains(r.files, file) {
		r.files = append(r.files, file)
	}
}

// Waiting reports that the model is overloaded or limits the rate. until may be zero.
func (r *Recorder) Waiting(why string, until time.Time) {
	r.emit(agent.Event{Kind: agent.EventWaiting, Text: term.Short(why, maxText), Until: until})
}

// Abort stops the turn with a failure, where the CLI itself would retry for too long.
func (r *Recorder) Abort(f *agent.Failure) { r.stop(f) }

// SetUsage reports the turn's total usage so far, not an increment. It stops the turn
// if a limit is exceeded.
func (r *Recorder) SetUsage(u forge.Usage) {
	r.usage = forge.Usage{
		InputTokens: max(u.InputTokens, 0), OutputTokens: max(u.OutputTokens, 0),
		CacheReadTokens: max(u.CacheReadTokens, 0), CacheWriteTokens: max(u.CacheWriteTokens, 0),
		CostUSD: max(u.CostUSD, 0), Turns: max(u.Turns, 0),
	}
	now := r.Usage()
	r.emit(agent.Event{Kind: agent.EventUsage, Usage: now})
	turns := int64(r.call.Limits.MaxTurns)
	if turns <= 0 {
		turns = defaultTurns
	}
	switch most := r.call.Limits.BudgetUSD; {
	case most > 0 && now.CostUSD > most:
		r.stop(agent.Fail(forge.FailBudget, "it reached the limit of cost: %.4f USD of %.4f", now.CostUSD, most))
	case now.Turns > turns:
		r.stop(agent.Fail(forge.FailMaxTurns, "it reached the limit of %d turns (calls.max_turns in pfl-forge.yaml)", turns))
	}
}

// Usage returns the turn's usage so far with its cost, preferring the connection's
// exact count over the CLI's reports.
func (r *Recorder) Usage() forge.Usage {
	u := r.usage
	if r.counted != nil {
		turns := u.Turns
		u = r.counted()
		u.Turns = turns
	}
	if !r.priced || u.CostUSD == 0 {
		u = Price(r.modelName(), u)
	}
	u.Calls = 1
	return u
}

// Outcome returns the outcome as far as it was reported.
func (r *Recorder) Outcome() agent.Outcome {
	return agent.Outcome{
		Text: term.Sanitize(r.text), Session: r.call.Session.ID, Model: r.modelName(), Usage: r.Usage(),
		Tools: r.tools, Files: r.files,
	}
}
