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

// Bounds of what is shown, in characters.
const (
	maxName       = 100
	maxText       = 500
	maxTranscript = 8000 // for the transcript; who watches is shown the beginning
)

// Recorder receives what a Reader found in the output. It passes on events, adds up what the outcome
// is, and ends the turn when it takes more turns or costs more than it may.
type Recorder struct {
	call       *agent.Call
	sink       func(agent.Event)
	stop       context.CancelCauseFunc
	saveNative func(native string) error
	counted    func() forge.Usage // exactly, by somebody else; may be nil
	priced     bool               // the CLI reports a cost

	native string
	model  string
	text   string
	tools  map[string]int
	files  []string
	usage  forge.Usage
}

func (l *Recorder) emit(e agent.Event) {
	if l.sink != nil {
		l.sink(e)
	}
}

// Started says which session and model it is.
func (l *Recorder) Started(native, model string) {
	if model != "" {
		l.model = term.Short(model, maxName)
	}
	if l.native != "" || !validNativeID(native) {
		return
	}
	l.native = native
	if err := l.saveNative(native); err != nil {
		l.stop(agent.Fail(forge.FailRepository, "the session cannot be kept: %v", err))
	}
	l.emit(agent.Event{Kind: agent.EventStarted, Session: l.call.Session.ID, Model: l.modelName()})
}

func (l *Recorder) modelName() string {
	if l.model == "" {
		return term.Short(l.call.Model, maxName)
	}
	return l.model
}

// Text is what the agent says; the last one is the outcome's text.
func (l *Recorder) Text(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	l.text = text
	l.emit(agent.Event{Kind: agent.EventText, Text: term.Short(text, maxTranscript)})
}

// FinalText is what the agent said last, as a whole.
func (l *Recorder) FinalText(text string) {
	if text != "" {
		l.text = text
	}
}

// LastText returns what the agent said last.
func (l *Recorder) LastText() string { return l.text }

// Thinking is what it thinks.
func (l *Recorder) Thinking(text string) {
	l.emit(agent.Event{Kind: agent.EventThinking, Text: term.Short(text, maxTranscript)})
}

// ToolUsed says that it uses a tool on something.
func (l *Recorder) ToolUsed(tool, on string) {
	tool = term.Short(tool, maxName)
	if l.tools == nil {
		l.tools = map[string]int{}
	}
	l.tools[tool]++
	l.emit(agent.Event{Kind: agent.EventTool, Tool: tool, Text: term.Short(on, maxText)})
}

// ToolFailed says that a tool could not do it.
func (l *Recorder) ToolFailed(tool, why string) {
	l.emit(agent.Event{Kind: agent.EventToolFailed, Tool: term.Short(tool, maxName), Text: term.Short(why, maxText)})
}

// FileWritten says that it wrote a file.
func (l *Recorder) FileWritten(file string) {
	if rel, err := filepath.Rel(l.call.Dir, file); err == nil && filepath.IsLocal(rel) {
		file = rel
	}
	if file = term.Line(file); file != "" && !slices.Contains(l.files, file) {
		l.files = append(l.files, file)
	}
}

// Waiting says that the model is overloaded or limits the rate.
func (l *Recorder) Waiting(why string, until time.Time) {
	l.emit(agent.Event{Kind: agent.EventWaiting, Text: term.Short(why, maxText), Until: until})
}

// Abort ends the turn: the program would try again for longer than makes sense.
func (l *Recorder) Abort(f *agent.Failure) { l.stop(f) }

// SetUsage is the usage of the turn so far.
func (l *Recorder) SetUsage(u forge.Usage) {
	l.usage = forge.Usage{
		InputTokens: max(u.InputTokens, 0), OutputTokens: max(u.OutputTokens, 0),
		CacheReadTokens: max(u.CacheReadTokens, 0), CacheWriteTokens: max(u.CacheWriteTokens, 0),
		CostUSD: max(u.CostUSD, 0), Turns: max(u.Turns, 0),
	}
	now := l.Usage()
	l.emit(agent.Event{Kind: agent.EventUsage, Usage: now})
	turns := int64(l.call.Limits.MaxTurns)
	if turns <= 0 {
		turns = defaultTurns
	}
	switch most := l.call.Limits.BudgetUSD; {
	case most > 0 && now.CostUSD > most:
		l.stop(agent.Fail(forge.FailBudget, "it reached the limit of cost: %.4f USD of %.4f", now.CostUSD, most))
	case now.Turns > turns:
		l.stop(agent.Fail(forge.FailMaxTurns, "it reached the limit of turns: %d", turns))
	}
}

// Usage is that of the turn so far, with its cost.
func (l *Recorder) Usage() forge.Usage {
	u := l.usage
	if l.counted != nil {
		turns := u.Turns
		u = l.counted()
		u.Turns = turns
	}
	if !l.priced || u.CostUSD == 0 {
		u = Price(l.modelName(), u)
	}
	u.Calls = 1
	return u
}

func (l *Recorder) outcome() agent.Outcome {
	return agent.Outcome{
		Text: term.Sanitize(l.text), Session: l.call.Session.ID, Model: l.modelName(), Usage: l.Usage(),
		Tools: l.tools, Files: l.files,
	}
}
