package config

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// FileName is the file's name at the root of a repository.
const FileName = "pfl-forge.yaml"

// IntakeFileName is the name, at the root of a repository, of the intake rules
// that make those of the operator stricter.
const IntakeFileName = "pfl-forge-intake.yaml"

// Project holds the values of pfl-forge.yaml. Every key is optional; [Default] has the values of
// those that are not given.
type Project struct {
	// Checkouts says where changes are made.
	Checkouts `yaml:",inline"`

	// Merging says where and how changes are merged.
	Merging `yaml:",inline"`

	// Unasked says which intents come without a person asking for each.
	Unasked `yaml:",inline"`

	// ParallelWorkers bounds the agent calls that run at once, 1 to 256.
	ParallelWorkers int `yaml:"parallel_workers"`
	// Models are those of the claude back end; others have theirs in Agents.
	Models Models `yaml:"models"`
	// Calls says how agents are called.
	Calls Calls `yaml:"calls"`
	// TriageTools are the tools that agents may use which only read: those that analyze,
	// review and reflect.
	TriageTools []string `yaml:"triage_tools"`
	// WorkerTools are the tools that implementing agents may use.
	WorkerTools []string `yaml:"worker_tools"`
	// MaxReviewRetries bounds how often a change may be made again because it was rejected,
	// failed to verify or was empty.
	MaxReviewRetries int `yaml:"max_review_retries"`
	// Review says what a verdict needs.
	Review Review `yaml:"review"`
	// Agent is the back end for intents that name neither a back end nor a recipe. It is
	// one of AgentNames.
	Agent string `yaml:"agent"`
	// Roles names back ends by role, which is one of [RoleNames]. Agent has the others.
	Roles map[string]string `yaml:"roles"`
	// Fallback lists the back ends that stand in for one that is at its limit, in the order
	// in which they are tried.
	Fallback []string `yaml:"fallback"`
	// Agents configures back ends by name: models of those that there are, and programs of
	// the project's own.
	Agents map[string]AgentConfig `yaml:"agents"`
	// Recipes are the deterministic changes that intents can ask for, by name.
	Recipes map[string]Recipe `yaml:"recipes"`
	// Verify lists shell commands that must all exit with 0 before a change is reviewed (see
	// [MergeQueue]), and on exactly what is merged.
	Verify []string `yaml:"verify"`
	// Checks are commands that criteria of goals can name: {check: tests}.
	Checks map[string]Check `yaml:"checks"`
	// Timeouts bounds agent calls and commands in time.
	Timeouts Timeouts `yaml:"timeouts"`
	// Budget bounds the costs of agents.
	Budget Budget `yaml:"budget"`
	// Policy says what happens without a person, and what agents may reach.
	Policy Policy `yaml:"policy"`
}

// Unasked says which intents come without a person asking for each.
type Unasked struct {
	// Reflection bounds the intents that pfl-forge proposes by itself.
	Reflection Reflection `yaml:"reflection"`
	// Schedules have intents submitted again and again, once a person has applied them.
	Schedules []Schedule `yaml:"schedules"`
}

// Checkouts says where checkouts are, and how they are set up.
type Checkouts struct {
	// WorktreeDir is the directory for checkouts, relative to the repository's root.
	WorktreeDir string `yaml:"worktree_dir"`
	// WorktreeSetup lists shell commands that run in a fresh checkout before anything else.
	WorktreeSetup []string `yaml:"worktree_setup"`
}

// Merging says where and how changes are merged.
type Merging struct {
	// BaseBranch is the branch that changes are merged into. Empty means the branch that is
	// checked out, or the HEAD of the origin where nothing is.
	BaseBranch string `yaml:"base_branch"`
	// MergeQueue says how the changes are verified that wait for their merge.
	MergeQueue MergeQueue `yaml:"merge_queue"`
	// Merge says whether changes are pushed, or merged by pull requests.
	Merge Merge `yaml:"merge"`
}

// Models names the model for each kind of work, as the back end calls it. For back ends
// other than claude, empty leaves the choice to the program.
type Models struct {
	// TriageDeep is for the steps that understand a request: analyze, architect, intake
	// and audit.
	TriageDeep string `yaml:"triage_deep"`
	// Default is for all other steps, such as implement and review.
	Default string `yaml:"default"`
	// Complex is for implement, where the analysis judged the task to be complex.
	Complex string `yaml:"complex"`
}

// Timeouts bounds each kind of call by the wall clock. All are between 1s and 24h.
type Timeouts struct {
	// Analyze bounds one call of the steps that understand a request: analyze, architect,
	// intake, audit and observe.
	Analyze time.Duration `yaml:"analyze"`
	// Implement bounds one call of an implementing agent.
	Implement time.Duration `yaml:"implement"`
	// Verify bounds each command of Verify and WorktreeSetup, not all of them together.
	Verify time.Duration `yaml:"verify"`
	// Review bounds one call of all other steps, such as review and reflect.
	Review time.Duration `yaml:"review"`
	// Idle bounds how long a call may be without any output.
	Idle time.Duration `yaml:"idle"`
}

// The budgets that hold where a project names none: whoever starts an agent by mistake, or on
// something endless, loses no more.
const (
	DefaultIntentUSD = 20
	DefaultDayUSD    = 100
)

// Budget is the most that may be spent, in US dollars. 0 means no limit.
type Budget struct {
	// IntentUSD bounds one intent that has no budget of its own.
	IntentUSD float64 `yaml:"intent_usd"`
	// ProjectUSD bounds all intents together, for ever.
	ProjectUSD float64 `yaml:"project_usd"`
	// DayUSD bounds all intents together on one day of UTC.
	DayUSD float64 `yaml:"day_usd"`
	// CallUSD is the amount that is reserved for one call while any budget is in force. 0 means
	// forge.DefaultCallUSD, or less where a budget is small.
	CallUSD float64 `yaml:"call_usd"`
}

// MergeQueue says how the changes are verified that wait for their merge.
type MergeQueue struct {
	// Parallel is how many are verified at once, each on top of those before it,
	// up to 256; 1: one after the other, 0: as many as parallel_workers says.
	Parallel int `yaml:"parallel"`
	// Batch is how many one run of the verify commands decides about at most,
	// up to 64; 1: each is verified by itself.
	Batch int `yaml:"batch"`
	// VerifyBeforeReview says that a change is verified also before its review,
	// and not only on what lands.
	VerifyBeforeReview bool `yaml:"verify_before_review"`
}

// Review says what a verdict needs, of a reviewer as of a judge.
type Review struct {
	// MinConfidence is how sure one has to be of what counts as met, above 0 and at most 1.
	MinConfidence float64 `yaml:"min_confidence"`
	// Proof says what a fix needs that has no test which fails without it: off, inform or require.
	Proof Proof `yaml:"proof"`
	// TestFiles are patterns, as in policy.protected_paths, of the files that are tests.
	TestFiles []string `yaml:"test_files"`
	// MaxChecks bounds the checks that a reviewer may ask for in one review; 0: none.
	MaxChecks int `yaml:"max_checks"`
	// Second is another reviewer who has to approve, too.
	Second Second `yaml:"second"`
}

// Proof says what follows where the tests of a fix do not fail without the fix.
type Proof string

// What follows.
const (
	// ProofOff does not look.
	ProofOff Proof = "off"
	// ProofInform tells the reviewer.
	ProofInform Proof = "inform"
	// ProofRequire lets the change fail to verify.
	ProofRequire Proof = "require"
)

// testFiles are the files that are tests where a project does not say.
func testFiles() []string {
	return []string{
		"*_test.go", "*_test.py", "test_*.py", "*.test.*", "*.spec.*", "*_spec.rb", "*_test.rb", "*Test.java", "*Tests.cs",
		"test/", "tests/", "testdata/", "spec/", "__tests__/",
	}
}

// Policy says what may happen without a person, and what agents and commands may reach on
// the machine that runs them.
type Policy struct {
	// TrustedOrigins names the systems whose intents run without an approval if their risk
	// is low.
	TrustedOrigins []string `yaml:"trusted_origins"`
	// ProtectedPaths are paths from the repository's root, or patterns of
	// path.Match; after a # stands one key of a JSON file. A change of one
	// waits for a person, also after an approved review.
	ProtectedPaths []string `yaml:"protected_paths"`
	// Approvers names who may approve. Empty means everybody who can send commands.
	Approvers []string `yaml:"approvers"`
	// Approvals says how many of them have to approve, and whether those may who asked.
	Approvals Approvals `yaml:"approvals"`
	// AnalyzeBeforeApproval says which intents are analyzed although they come from a system that
	// is not trusted, or were declared to be of high risk. The others wait for a person first.
	AnalyzeBeforeApproval AnalyzeFirst `yaml:"analyze_before_approval"`
	// Sandbox says whether agents and commands are isolated from the machine.
	Sandbox Sandbox `yaml:"sandbox"`
	// Network says what agents can connect to: full or model. The latter needs the sandbox.
	Network Network `yaml:"network"`
	// CommandNetwork says what recipes and the commands of Verify can connect to: full or
	// none. The latter needs the sandbox.
	CommandNetwork Network `yaml:"command_network"`
	// SandboxRead lists absolute paths that may be read in the sandbox beside those of the
	// system. ~/ is the home of the service's user.
	SandboxRead []string `yaml:"sandbox_read"`
	// SandboxWrite lists paths that may be written to as well.
	SandboxWrite []string `yaml:"sandbox_write"`
	// MaxDepth bounds how often an intent may be divided into child intents, which are
	// divided again. With 0 none is.
	MaxDepth int `yaml:"max_depth"`
}

// Approvals says how many people have to approve what waits for a person.
type Approvals struct {
	// Count is how many different people have to approve, 1 to 20.
	Count int `yaml:"count"`
	// NotRequester says that a requester of an intent may not approve it. Left
	// out (nil), that holds wherever more than one person could approve.
	NotRequester *bool `yaml:"not_requester"`
}

// AnalyzeFirst names the intents that are analyzed before a person has approved anything of them.
type AnalyzeFirst string

// The values of AnalyzeFirst, which the rules know by these words.
const (
	// AnalyzeRecipes has those analyzed whose analysis calls no agent, and so costs nothing.
	AnalyzeRecipes AnalyzeFirst = "recipes"
	// AnalyzeAlways has all of them analyzed: a person is asked about the plan alone.
	AnalyzeAlways AnalyzeFirst = "always"
	// AnalyzeNever has none of them analyzed.
	AnalyzeNever AnalyzeFirst = "never"
)

// Reflection bounds the intents that pfl-forge proposes by itself.
type Reflection struct {
	// Enabled says whether finished runs are reflected upon.
	Enabled bool `yaml:"enabled"`
	// MaxGeneration bounds how many reflections may lie between a proposal and what a
	// person asked for.
	MaxGeneration int `yaml:"max_generation"`
	// ProposalsADay bounds the proposals of the project on one day of UTC.
	ProposalsADay int `yaml:"proposals_a_day"`
	// ProposalsATime bounds the proposals of one reflection.
	ProposalsATime int `yaml:"proposals_a_time"`
}

// Sandbox says how much agents and commands are isolated from the machine. A project can
// ask for more than the user of the machine does, and never for less.
type Sandbox string

// The sandbox modes.
const (
	// SandboxAuto isolates, unless the user of the machine says otherwise. Where there is no
	// sandbox, only recipes run that this user wished for.
	SandboxAuto Sandbox = "auto"
	// SandboxRequire runs nothing without a sandbox, whatever the user says.
	SandboxRequire Sandbox = "require"
)

// Overlay says whether checkouts are overlay mounts over one tree of the base branch.
type Overlay string

// The overlay modes.
const (
	// OverlayOff makes every checkout a full one.
	OverlayOff Overlay = "off"
	// OverlayAuto mounts where the machine permits it.
	OverlayAuto Overlay = "auto"
)

// Network says what agents or commands in a sandbox reach.
type Network string

// The networks.
const (
	// NetworkFull leaves the machine's network as it is.
	NetworkFull Network = "full"
	// NetworkModel allows the model's API alone, through the service.
	NetworkModel Network = "model"
	// NetworkNone gives the sandbox a loopback interface of its own and nothing else.
	NetworkNone Network = "none"
)

// The back ends that there are without any configuration. AgentRecipe runs recipes and no
// agent.
const (
	AgentClaude   = "claude"
	AgentCodex    = "codex"
	AgentGemini   = "gemini"
	AgentOpencode = "opencode"
	AgentRecipe   = "recipe"
)

// Agents returns the names of the back ends that there are without any configuration.
func Agents() []string {
	return []string{AgentClaude, AgentCodex, AgentGemini, AgentOpencode, AgentRecipe}
}

// Default returns the configuration of a repository without pfl-forge.yaml. The caller may
// change it.
func Default() *Project {
	return &Project{
		ParallelWorkers:  4,
		Models:           Models{TriageDeep: "sonnet", Default: "sonnet", Complex: "opus"},
		Calls:            Calls{Effort: Effort{Reflect: LevelLow, Complexity: EffortByComplexity{Low: LevelLow}}, MaxTurns: DefaultMaxTurns},
		TriageTools:      []string{"Read", "Glob", "Grep"},
		WorkerTools:      []string{"Bash", "Read", "Write", "Edit", "Glob", "Grep"},
		MaxReviewRetries: 2,
		Review: Review{
			MinConfidence: forge.DefaultMinConfidence, MaxChecks: 2, Proof: ProofInform, TestFiles: testFiles(), Second: Second{When: riskyEnough()},
		},
		Agent:     AgentClaude,
		Recipes:   map[string]Recipe{},
		Checkouts: Checkouts{WorktreeDir: ".forge/worktrees"},
		Merging:   Merging{MergeQueue: MergeQueue{Batch: 1, VerifyBeforeReview: true}, Merge: defaultMerge()},
		Timeouts: Timeouts{
			Analyze:   10 * time.Minute,
			Implement: 30 * time.Minute,
			Verify:    15 * time.Minute,
			Review:    10 * time.Minute,
			Idle:      10 * time.Minute,
		},
		Policy: Policy{
			ProtectedPaths: protectedPaths(), Sandbox: SandboxAuto, Network: NetworkFull, CommandNetwork: NetworkFull,
			Approvals: Approvals{Count: 1}, AnalyzeBeforeApproval: AnalyzeRecipes, MaxDepth: 3,
		},
		Budget:  Budget{IntentUSD: DefaultIntentUSD, DayUSD: DefaultDayUSD},
		Unasked: Unasked{Reflection: Reflection{Enabled: true, MaxGeneration: 2, ProposalsADay: 20, ProposalsATime: 5}},
	}
}

// protectedPaths returns the default of Policy.ProtectedPaths: files that run elsewhere with
// other rights (continuous integration, hooks, what editors and shells run on opening a
// folder), that grant rights, or that tell agents and pfl-forge what they may do.
func protectedPaths() []string {
	list := []string{
		".github/", ".gitlab-ci.yml", ".gitlab/", ".circleci/", ".buildkite/", "Jenkinsfile", "azure-pipelines.yml", ".gitmodules",
		".travis.yml", ".drone.yml", ".woodpecker/", ".woodpecker.yml", ".tekton/", ".teamcity/", ".forgejo/", ".gitea/",
		"bitbucket-pipelines.yml", "cloudbuild.yaml", "cloudbuild.yml", "appveyor.yml", ".appveyor.yml", "azure-pipelines.yaml", ".woodpecker.yaml",
		".cirrus.yml", ".semaphore/", "buildspec.yml", "buildspec.yaml", "bitrise.yml", ".builds/", ".build.yml", ".drone.jsonnet", ".drone.star",
		".zuul.yaml", ".zuul.d/", "CODEOWNERS", ".husky/", ".githooks/", ".pre-commit-config.yaml", "lefthook.yml", "lefthook.yaml", ".lefthook.yml",
		".lefthook.yaml", "lefthook-local.yml", ".vscode/", ".devcontainer/", ".devcontainer.json", ".envrc",
		"Makefile", "GNUmakefile", "justfile", "package.json#scripts", ".mcp.json", FileName, IntakeFileName,
	}
	list = append(list, instructionFiles...)
	for _, dir := range instructionDirs {
		list = append(list, dir+"/")
	}
	return list
}
