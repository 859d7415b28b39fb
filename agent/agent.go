// Package agent runs coding agents: one call in, one structured answer out.
//
// An Agent is a back end such as claude or recipe. What a call returns is
// believed only as far as exit status, output and schema agree; whether work
// was done is for the caller to see in the checkout.
package agent

import (
	"context"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/config"
)

// Agent is a back end that runs one call at a time per checkout; calls with
// different directories may run at once.
type Agent interface {
	// Name is the back end's name in pfl-forge.yaml.
	Name() string

	// Run makes one call and returns when it is over and every process of it is
	// gone. sink receives what happens meanwhile, one event at a time; it may be
	// nil and must not block. An error is a *Failure, whatever went wrong; the
	// Outcome beside it holds what is known nevertheless, such as the usage.
	Run(ctx context.Context, call Call, sink func(Event)) (Outcome, error)
}

// Call is one piece of work for an agent.
type Call struct {
	Role       Role
	Dir        string   // the checkout to work in, absolute
	ScratchDir string   // private to this call, absolute, outside every checkout: HOME, prompt and feedback files
	StateDir   string   // kept from call to call of one task: session files; empty means ScratchDir
	Prompt     string   // what to do
	System     string   // who the agent is; given again on every call of a session
	Tools      []string // tools that exist for the agent
	ReadOnly   bool     // the agent must not change the checkout
	Model      string
	Schema     []byte                    // JSON schema of the answer; empty means that any text will do
	Check      func(answer []byte) error // says what is wrong with an answer that its role allows, a *Failure; may be nil
	Session    Session
	Limits     Limits
	Env        []string      // KEY=VALUE beside the basic environment; nothing else of the service's own is passed on
	Sandbox    *sandbox.Spec // what its processes see of the machine; nil means everything
	Recipe     *RecipeCall   // for the recipe back end only
}

// Limits ends a call that takes too much. Zero values mean the back end's own.
type Limits struct {
	Wall        time.Duration // from start to end
	Idle        time.Duration // without any output
	OutputBytes int64         // printed in all
	MaxTurns    int
	BudgetUSD   float64
}

// RecipeCall is what a recipe needs to know beyond a Call.
type RecipeCall struct {
	Project  *config.Project // where the recipes are
	Name     string          // of the recipe
	With     map[string]string
	Intent   forge.IntentID
	Title    string       // of the intent
	TaskID   forge.TaskID // implement, review
	Task     string       // implement, review: the name of the recipe's task; empty for a recipe with run
	Item     string       // implement, review: the line of each
	Attempt  int          // counted from 1
	Feedback string       // what was wrong with the attempt before
}

// Outcome is what a call brought.
type Outcome struct {
	Answer   []byte // the structured answer, JSON; nil if no schema was given
	Text     string // what the agent said at the end, or the output's tail; sanitized
	Session  string // to resume
	Model    string // that worked
	Usage    forge.Usage
	Duration time.Duration
	Tools    map[string]int // tools used, how often
	Files    []string       // that the agent says it wrote; a shell's writes are not among them
}
