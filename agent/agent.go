// Package agent runs coding agents: one Call in, one Outcome with a structured answer
// out.
//
// An Agent is a back end, such as package claude, codex or recipe. The services build a
// Call for one Role (analyze, implement, review and so on), run it, and parse the
// answer with the Parse function of that role. The rest of this package is shared by
// all back ends:
//
//   - role.go lists the roles: which step makes such calls, with which tools, model
//     and answer schema;
//   - the Parse functions turn an answer into types of package forge, and refuse one
//     that fits its schema but contradicts itself;
//   - RunWithRepair runs a call, checks its answer, and asks once for a better one;
//   - Failure is the only error that a back end returns; its reason decides, in the
//     rules of the flow, whether the call is tried again;
//   - RunShell runs the command lines that a repository defines.
//
// Types such as Analysis, Review and Judgment have the form of the answer's JSON. The
// types of the same names in package forge are the checked form, which the services
// report.
//
// An answer is trusted only as far as exit status, output and schema agree. Whether
// work was really done is for the caller to see in the checkout.
package agent

import (
	"context"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/config"
)

// Agent is a back end. It runs one call at a time per checkout; calls with different
// directories may run at once.
type Agent interface {
	// Name returns the back end's name in pfl-forge.yaml.
	Name() string

	// Run makes one call and returns when it is over and every process of it is gone.
	// sink receives the call's events, one at a time; it may be nil and must not block.
	// An error is always a *Failure. The Outcome beside an error holds the parts that
	// are known nevertheless, such as the usage.
	Run(ctx context.Context, call Call, sink func(Event)) (Outcome, error)
}

// Call describes one piece of work for an agent.
type Call struct {
	// Role decides how the answer is checked; see Spec.
	Role Role
	// Dir is the absolute path of the checkout to work in, or ScratchDir for a call
	// that needs no checkout.
	Dir string
	// ScratchDir is absolute, private to this call and outside every checkout. It holds
	// HOME, the prompt and the feedback file.
	ScratchDir string
	// StateDir is kept between the calls of one task, for session files. Empty means
	// ScratchDir, which is not kept.
	StateDir string
	// Prompt is the request. It must not be blank.
	Prompt string
	// System tells the agent who it is. It is given again on every call of a session.
	System string
	// Tools lists the tools that exist for the agent, by Claude Code's names, such as
	// Read or Bash(go test:*). None means that the agent sees no file.
	Tools []string
	// ReadOnly forbids the agent to change the checkout. Tools that write are then left
	// out, whatever Tools says.
	ReadOnly bool
	// Model is the model's name as the CLI takes it; empty means the CLI's default.
	Model string
	// Effort is how much the model is to think, a config.Level; empty leaves that
	// to the CLI. Back ends that config.TakesEffort does not name pay no heed to it.
	Effort config.Level
	// Schema is the JSON schema of the answer; empty means that any text will do.
	Schema []byte
	// Check is called with an answer that fits Schema and its role. It returns a
	// *Failure that the agent is shown, or nil. May be nil.
	Check func(answer []byte) error
	// Session names the session to begin or to resume.
	Session Session
	// Limits end the call when it takes too much.
	Limits Limits
	// Env has KEY=VALUE entries beside the basic environment. Nothing else of the
	// service's own environment is passed on.
	Env []string
	// Sandbox limits which files and networks the call's processes reach; nil means all
	// of the machine's.
	Sandbox *sandbox.Spec
	// Recipe is set for the recipe back end only.
	Recipe *RecipeCall
	// Changed reports whether the checkout may have other files or commits than those that
	// the call began with, at a time at which no process of the call runs. Nil means that
	// it may. Recipes ask it, for whom a git command of their own would be one pod more.
	Changed func(ctx context.Context) bool
}

// Uninstructed reports whether the checkout's CLAUDE.md, AGENTS.md and their like must
// not instruct the call, because it judges what is in that checkout.
func (c *Call) Uninstructed() bool {
	spec := Spec(c.Role)
	return spec.Judges
}

// Limits ends a call that takes too much. A zero value means the back end's default.
type Limits struct {
	// Wall is the time from start to end, a repair of the answer included.
	Wall time.Duration
	// Idle is the longest time without any output.
	Idle time.Duration
	// OutputBytes is the size of the printed output, stdout and stderr together.
	OutputBytes int64
	// MaxTurns is the number of requests to the model. A program of the
	// project's own is told it, and ended by it only if it reports its turns.
	MaxTurns int
	// BudgetUSD is the cost at list price. The request that exceeds it is still paid
	// for.
	BudgetUSD float64
}

// RecipeCall has the data that the recipe back end needs beyond a Call.
type RecipeCall struct {
	// Project is the configuration that defines the recipes.
	Project *config.Project
	// Name is the recipe's name.
	Name string
	// With has the values of the recipe's parameters.
	With map[string]string
	// Intent and TaskID become FORGE_INTENT and FORGE_TASK.
	Intent forge.IntentID
	// Title is the intent's title, for recipes without one of their own.
	Title string
	// TaskID is set for implement and review.
	TaskID forge.TaskID
	// Task is the name of the recipe's task, for implement and review; empty for a
	// recipe that has a run command instead of tasks.
	Task string
	// Item is the line of the recipe's each command that the task is for, if it has
	// one.
	Item string
	// Attempt is counted from 1.
	Attempt int
	// Feedback says why the previous attempt was not accepted; empty on the first.
	Feedback string
}

// Outcome is the result of a call.
type Outcome struct {
	// Answer is the structured answer, JSON. It is set if the call has a Schema and
	// succeeded.
	Answer []byte
	// Text is the agent's last message, or the end of a command's output; sanitized.
	Text string
	// Session is the id by which the session can be resumed.
	Session string
	// Model is the name of the model that answered, if it is known.
	Model string
	// Usage has tokens and cost of the whole call, a repair included.
	Usage forge.Usage
	// Duration is wall clock time.
	Duration time.Duration
	// Tools counts the uses of each tool.
	Tools map[string]int
	// Denied lists the uses of tools that the program did not allow, as a tool's name and
	// what it was used on.
	Denied []string
	// Files lists the files that the agent reported as written, relative to Dir where
	// they are in it. Files that a shell command wrote are missing.
	Files []string
}
