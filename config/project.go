// Package config reads pfl-forge.yaml, the file in which a repository says how
// pfl-forge is to work on it.
package config

import "time"

// FileName is the file's name at the root of a repository.
const FileName = "pfl-forge.yaml"

// Project is pfl-forge.yaml: what a repository decides for itself. Every key is
// optional; Default has the values that serve without a file.
type Project struct {
	BaseBranch       string                 `yaml:"base_branch"`        // branch to integrate into; empty means the one that is checked out, or the origin's HEAD
	ParallelWorkers  int                    `yaml:"parallel_workers"`   // agent calls at once
	Models           Models                 `yaml:"models"`             // models per kind of work
	TriageTools      []string               `yaml:"triage_tools"`       // tools of agents that only read
	WorkerTools      []string               `yaml:"worker_tools"`       // tools of agents that implement
	MaxReviewRetries int                    `yaml:"max_review_retries"` // implementations after the first one was rejected
	Agent            string                 `yaml:"agent"`              // back end for intents that name no recipe, one of AgentNames()
	Roles            map[string]string      `yaml:"roles"`              // back ends by role, one of RoleNames(); others have Agent
	Fallback         []string               `yaml:"fallback"`           // back ends in place of one that is at its limit, in this order
	Agents           map[string]AgentConfig `yaml:"agents"`             // what there is to say about back ends
	Recipes          map[string]Recipe      `yaml:"recipes"`            // deterministic recipes by name
	Verify           []string               `yaml:"verify"`             // shell commands; all must exit 0 before a review
	WorktreeDir      string                 `yaml:"worktree_dir"`       // where checkouts are made; relative to the repository's root
	WorktreeSetup    []string               `yaml:"worktree_setup"`     // shell commands for a fresh checkout
	Timeouts         Timeouts               `yaml:"timeouts"`           // limits per agent call
	Budget           Budget                 `yaml:"budget"`             // limits of cost
	Policy           Policy                 `yaml:"policy"`             // what may happen without a person
	Reflection       Reflection             `yaml:"reflection"`         // what pfl-forge may ask for by itself
}

// Models names the model per kind of work, as the agent back end calls it.
type Models struct {
	TriageDeep string `yaml:"triage_deep"` // analyze, architect, intake, audit
	Default    string `yaml:"default"`     // implement, review, judge, reflect
	Complex    string `yaml:"complex"`     // implement, when the task's complexity is high
}

// Timeouts bounds each kind of call by the wall clock, and Idle the time
// without any output.
type Timeouts struct {
	Analyze   time.Duration `yaml:"analyze"`
	Implement time.Duration `yaml:"implement"`
	Verify    time.Duration `yaml:"verify"` // each verify or worktree_setup command
	Review    time.Duration `yaml:"review"`
	Idle      time.Duration `yaml:"idle"`
}

// Budget is the most that may be spent, in US dollars; 0 means no limit.
type Budget struct {
	IntentUSD  float64 `yaml:"intent_usd"`  // of one intent, unless it has its own
	ProjectUSD float64 `yaml:"project_usd"` // of all intents together
	DayUSD     float64 `yaml:"day_usd"`     // of all intents together, on one day of UTC
	CallUSD    float64 `yaml:"call_usd"`    // set aside for one call while a budget is in force
}

// Policy says what may happen without a person.
type Policy struct {
	TrustedOrigins []string `yaml:"trusted_origins"` // systems whose intents of risk low run unapproved
	ProtectedPaths []string `yaml:"protected_paths"` // a change of these waits for a person, also after an approved review
	Approvers      []string `yaml:"approvers"`       // who may approve; empty: everybody who can
	Sandbox        Sandbox  `yaml:"sandbox"`         // isolation of agents and commands from the machine
	Network        Network  `yaml:"network"`         // of agents: full or model
	CommandNetwork Network  `yaml:"command_network"` // of recipes and verify commands: full or none
	SandboxRead    []string `yaml:"sandbox_read"`    // paths that agents and commands may read beside the system's; ~ is the service's home
	SandboxWrite   []string `yaml:"sandbox_write"`   // paths that they may write to as well
	MaxDepth       int      `yaml:"max_depth"`       // of intents within intents; 0: none is taken apart
}

// Reflection bounds the intents that pfl-forge proposes by itself.
type Reflection struct {
	Enabled        bool `yaml:"enabled"`          // whether finished runs are reflected upon
	MaxGeneration  int  `yaml:"max_generation"`   // how many reflections may lie between an intent and what a person wanted
	ProposalsADay  int  `yaml:"proposals_a_day"`  // of the project, UTC
	ProposalsATime int  `yaml:"proposals_a_time"` // of one reflection
}

// Sandbox says whether agents run isolated from the machine.
type Sandbox string

// The sandbox modes.
const (
	SandboxOff     Sandbox = "off"     // never
	SandboxAuto    Sandbox = "auto"    // where the machine offers it
	SandboxRequire Sandbox = "require" // else refuse to run
)

// Network is what agents or commands in a sandbox reach.
type Network string

// The networks.
const (
	NetworkFull  Network = "full"  // what the machine reaches
	NetworkModel Network = "model" // the model, through the service
	NetworkNone  Network = "none"  // a loopback of their own
)

// The agent back ends.
const (
	AgentClaude   = "claude"
	AgentCodex    = "codex"
	AgentGemini   = "gemini"
	AgentOpencode = "opencode"
	AgentRecipe   = "recipe"
)

// Agents lists the back ends that there are without any configuration.
func Agents() []string {
	return []string{AgentClaude, AgentCodex, AgentGemini, AgentOpencode, AgentRecipe}
}

// Default returns the project that a repository without pfl-forge.yaml has.
func Default() *Project {
	return &Project{
		ParallelWorkers:  4,
		Models:           Models{TriageDeep: "sonnet", Default: "sonnet", Complex: "opus"},
		TriageTools:      []string{"Read", "Glob", "Grep"},
		WorkerTools:      []string{"Bash", "Read", "Write", "Edit", "Glob", "Grep"},
		MaxReviewRetries: 2,
		Agent:            AgentClaude,
		Recipes:          map[string]Recipe{},
		WorktreeDir:      ".forge/worktrees",
		Timeouts: Timeouts{
			Analyze:   10 * time.Minute,
			Implement: 30 * time.Minute,
			Verify:    15 * time.Minute,
			Review:    10 * time.Minute,
			Idle:      10 * time.Minute,
		},
		Policy: Policy{
			ProtectedPaths: protectedPaths(), Sandbox: SandboxAuto, Network: NetworkFull, CommandNetwork: NetworkFull,
			MaxDepth: 3,
		},
		Reflection: Reflection{Enabled: true, MaxGeneration: 2, ProposalsADay: 20, ProposalsATime: 5},
	}
}

// protectedPaths are what runs elsewhere with other rights, or tells agents and
// pfl-forge what they may do.
func protectedPaths() []string {
	return []string{
		".github/", ".gitlab-ci.yml", ".gitlab/", ".circleci/", ".buildkite/", "Jenkinsfile", "azure-pipelines.yml", ".gitmodules",
		"CLAUDE.md", "AGENTS.md", "GEMINI.md", ".claude/", ".codex/", ".gemini/", ".opencode/", ".mcp.json", FileName,
	}
}
