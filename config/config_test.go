package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
)

const full = `# how this repository is worked on
base_branch: release/1.x
parallel_workers: 8
merge_queue: {parallel: 6, batch: 4, verify_before_review: false}
models: {triage_deep: haiku, complex: claude-opus-5}
calls:
  effort: {implement: high, complexity: {low: "", high: max}}
  max_turns: 60
  escalate: {implement: [{model: opus}, {model: opus, effort: max}], review: [{effort: high}]}
  best_of_two: {when: [complex, rejected], model: opus, effort: high}
triage_tools: [Read]
worker_tools:
  - Read
  - Bash
max_review_retries: 0
agent: recipe
verify:
  - go build ./...
  - 0123
checks:
  tests: go test ./...
  lint: {command: make lint, timeout: 2m}
worktree_dir: /var/tmp/trees
worktree_setup:
  - npm ci
timeouts: {implement: 1h30m, idle: 90s}
budget: {intent_usd: 2.5, project_usd: 100, day_usd: 20, call_usd: 1}
policy:
  trusted_origins: [scanner]
  protected_paths: [.github/, '*.lock']
  approvers: [A Person]
  approvals: {not_requester: true}
  sandbox: require
  analyze_before_approval: never
  max_depth: 1
reflection: {enabled: false, max_generation: 1, proposals_a_day: 0, proposals_a_time: 2}
recipes:
  gofmt:
    risk: low
    run: gofmt -w .
    check: test -z "$(gofmt -l .)"
    allow_empty: true
    timeout: 2m
  rename:
    title: Rename an identifier
    params:
      - name: FROM
        question: Which identifier?
        context: As Go spells it.
        suggested: [foo, no, 1e3]
      - name: TO
        default: ""
    each: git ls-files
    run: |
      set -e
      ./rename.sh "$FORGE_ITEM"
  docs:
    tasks:
      - {name: generate, run: make docs, files: [docs/]}
      - {name: index, title: The index, depends_on: [generate], run: make index, check: test -s index}
`

func TestParse(t *testing.T) {
	got, err := config.Parse([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	empty := ""
	want := &config.Project{
		Merging: config.Merging{
			BaseBranch: "release/1.x", MergeQueue: config.MergeQueue{Parallel: 6, Batch: 4}, Merge: config.Default().Merge,
		},
		ParallelWorkers: 8,
		Models:          config.Models{TriageDeep: "haiku", Default: "sonnet", Complex: "claude-opus-5"},
		Calls: config.Calls{
			Effort: config.Effort{Implement: "high", Reflect: "low", Complexity: config.EffortByComplexity{High: "max"}}, MaxTurns: 60,
			Escalate: config.Escalate{
				Implement: []config.Stronger{{Model: "opus"}, {Model: "opus", Effort: "max"}}, Review: []config.Stronger{{Effort: "high"}},
			},
			BestOfTwo: config.BestOfTwo{When: []string{"complex", "rejected"}, Model: "opus", Effort: "high"},
		},
		TriageTools: []string{"Read"},
		WorkerTools: []string{"Read", "Bash"},
		Review: config.Review{
			MinConfidence: 0.7, MaxChecks: 2, Proof: config.ProofInform, TestFiles: config.Default().Review.TestFiles, Second: config.Default().Review.Second,
		},
		Agent:     "recipe",
		Verify:    []string{"go build ./...", "0123"},
		Checkouts: config.Checkouts{WorktreeDir: "/var/tmp/trees", WorktreeSetup: []string{"npm ci"}},
		Checks:    map[string]config.Check{"tests": {Command: "go test ./..."}, "lint": {Command: "make lint", Timeout: 2 * time.Minute}},
		Timeouts: config.Timeouts{
			Analyze: 10 * time.Minute, Implement: 90 * time.Minute, Verify: 15 * time.Minute,
			Review: 10 * time.Minute, Idle: 90 * time.Second,
		},
		Budget: config.Budget{IntentUSD: 2.5, ProjectUSD: 100, DayUSD: 20, CallUSD: 1},
		Policy: config.Policy{
			TrustedOrigins: []string{"scanner"}, ProtectedPaths: []string{".github/", "*.lock"}, Approvers: []string{"A Person"},
			Approvals: config.Approvals{Count: 1, NotRequester: new(true)},
			Sandbox:   config.SandboxRequire, Network: config.NetworkFull, CommandNetwork: config.NetworkFull, MaxDepth: 1,
			AnalyzeBeforeApproval: config.AnalyzeNever,
		},
		Unasked: config.Unasked{Reflection: config.Reflection{MaxGeneration: 1, ProposalsATime: 2}},
		Recipes: map[string]config.Recipe{
			"gofmt": {
				Risk: forge.RiskLow, Run: "gofmt -w .", Check: `test -z "$(gofmt -l .)"`, AllowEmpty: true, Timeout: 2 * time.Minute,
			},
			"rename": {
				Title: "Rename an identifier",
				Params: []config.Param{
					{Name: "FROM", Question: "Which identifier?", Context: "As Go spells it.", Suggested: []string{"foo", "no", "1e3"}},
					{Name: "TO", Default: &empty},
				},
				Each: "git ls-files",
				Run:  "set -e\n./rename.sh \"$FORGE_ITEM\"\n",
			},
			"docs": {Tasks: []config.RecipeTask{
				{Name: "generate", Run: "make docs", Files: []string{"docs/"}},
				{Name: "index", Title: "The index", DependsOn: []string{"generate"}, Run: "make index", Check: "test -s index"},
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseOfNothingIsDefault(t *testing.T) {
	for _, in := range []string{"", "\n# only a comment\n", "recipes:\nverify:\n", "\ufeff# with a mark\n"} {
		got, err := config.Parse([]byte(in))
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if diff := cmp.Diff(config.Default(), got); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"base_brnch: main", `pfl-forge.yaml:1: base_brnch: unknown key; did you mean "base_branch"?`},
		{"calls: {effort: {implement: lots}}", `pfl-forge.yaml:1: calls.effort.implement: "lots" is not one of low, medium, high, xhigh, max`},
		{"calls: {effort: {complexity: {high: hihg}}}", `calls.effort.complexity.high: "hihg" is not one of low, medium, high, xhigh, max; did you mean "high"?`},
		{"calls: {effort: {judge: low}}", `calls.effort.judge: unknown key`},
		{"calls: {escalate: {implement: [{}]}}", `calls.escalate.implement[0]: needs a model or an effort`},
		{"calls: {escalate: {review: [{model: -x}]}}", `calls.escalate.review[0].model: must not start with a hyphen`},
		{"calls: {escalate: {review: [{effort: more}]}}", `calls.escalate.review[0].effort: "more" is not one of low,`},
		{"calls: {escalate: {analyze: [{effort: low}]}}", `calls.escalate.analyze: unknown key; known keys are implement, review`},
		{"calls: {escalate: {implement: [" + strings.Repeat("{effort: low}, ", 6) + "]}}", `calls.escalate.implement: has 6 steps; at most 5`},
		{"calls: {best_of_two: {when: [complexx]}}", `calls.best_of_two.when[0]: "complexx" is not one of complex, rejected; did you mean "complex"?`},
		{"calls: {best_of_two: {when: [complex, complex]}}", `calls.best_of_two.when[1]: "complex" is there twice`},
		{"calls: {best_of_two: {when: [rejected], model: -x}}", `calls.best_of_two.model: must not start with a hyphen`},
		{"calls: {best_of_two: {when: [rejected], effort: more}}", `calls.best_of_two.effort: "more" is not one of low,`},
		{"calls: {best_of_two: {model: opus}}", `calls.best_of_two.when: says of no task that two changes are made; list complex, rejected or both`},
		{"calls: {max_turns: 0}", `calls.max_turns: is 0; must be between 1 and 10000`},
		{"models: {triage: x}", `pfl-forge.yaml:1: models.triage: unknown key; did you mean "triage_deep"?`},
		{"models: {x: y}", `models.x: unknown key; known keys are complex, default, triage_deep`},
		{"verify: []\nverify: []", "pfl-forge.yaml:2: verify: duplicate key, first given on line 1"},
		{"base_branch: -x", `base_branch: "-x" is no branch name: it must not start with -`},
		{"base_branch: a..b", "must not contain .."},
		{"base_branch: a.lock/b", "ends with .lock"},
		{"base_branch: HEAD", "means something else"},
		{"base_branch: forge/x", "means something else"},
		{"base_branch: 'a b'", "must not contain spaces"},
		{"base_branch: ''", "must not be empty; leave the key out"},
		{"base_branch:", "must not be empty; give a value or leave the key out"},
		{"parallel_workers: 0", "is 0; must be between 1 and 256"},
		{"parallel_workers: 010", `must be a whole number, not "010"`},
		{"parallel_workers: '4'", "must be a whole number"},
		{"review: {min_confidence: 0}", "is 0; must be above 0 and at most 1"},
		{"review: {min_confidence: 1.5}", "is 1.5; must be above 0 and at most 1"},
		{"review: {min_confidence: .nan}", "min_confidence"},
		{"review: {proof: maybe}", "review.proof: \"maybe\" is not one of off, inform, require"},
		{"review: {test_files: [/x]}", "review.test_files[0]"},
		{"review: {second: {agent: codx}}", `review.second.agent: "codx" is not one of claude, codex, gemini, opencode, recipe; did you mean "codex"?`},
		{"review: {second: {agent: recipe}}", "review.second.agent: recipe reviews nothing but what an intent's recipe made"},
		{"review: {second: {when: [high]}}", "review.second: needs an agent or a model"},
		{"review: {second: {agent: codex, when: [hihg]}}", `review.second.when[0]: "hihg" is not one of low, med, high; did you mean "high"?`},
		{"review: {second: {agent: codex, when: [med, med]}}", `review.second.when[1]: "med" is given twice`},
		{"review: {second: {model: -x}}", "review.second.model: must not start with a hyphen"},
		{"review: {second: {agent: claude}}", "review.second.agent: is the first reviewer, claude with sonnet, again; the second must differ"},
		{"review: {second: {model: sonnet}}", "review.second.model: is the first reviewer, claude with sonnet, again"},
		{"roles: {review: codex}\nreview: {second: {agent: codex}}", "review.second.agent: is the first reviewer, codex, again"},
		{
			"agents: {codex: {models: {default: o3}}}\nroles: {review: codex}\nreview: {second: {model: o3}}",
			"review.second.model: is the first reviewer, codex with o3, again",
		},
		{
			"calls: {escalate: {review: [{effort: max}, {model: opus}]}}\nreview: {second: {model: opus}}",
			"review.second.model: is what calls.escalate.review[1] makes the first reviewer, claude with opus; the second must differ",
		},
		{"max_review_retries: -1", "is -1; must be between 0 and 20"},
		{"agent: cloude", `"cloude" is not one of claude, codex, gemini, opencode, recipe; did you mean "claude"?`},
		{"models: {default: --dangerous}", "models.default: must not start with a hyphen"},
		{"worker_tools: [Bash, 'Read,Write']", "worker_tools[1]: must not contain spaces, commas"},
		{"worker_tools: [Bash, Bash]", `worker_tools[1]: "Bash" is given twice`},
		{"verify: go build", "verify: must be a list"},
		{"verify: ['  ']", "verify[0]: is an empty command"},
		{"worktree_dir: .git/trees", "must be a directory of its own"},
		{"checks: {tests: ''}", "checks.tests: has no command"},
		{"checks: {tests: {timeout: 1m}}", "checks.tests: has no command"},
		{"checks: {tests: [go]}", "checks.tests: must be a mapping"},
		{"checks: {tests: {command: x, timeout: 1ms}}", "checks.tests.timeout: is 1ms; must be between 1s"},
		{"checks: {tests: {run: x}}", "checks.tests.run: unknown key"},
		{"checks: {a/b: x}", "checks.a/b: is no name of a check"},
		{"worktree_dir: ..", "must be a directory of its own"},
		{"worktree_dir: ../..", "must be a directory of its own"},
		{"timeouts: {idle: 10}", `must be a duration such as 90s or 10m, not "10"`},
		{"timeouts: {idle: 10ms}", "is 10ms; must be between 1s and 24h"},
		{"budget: {intent_usd: -3}", "budget.intent_usd: is -3; must be between 0"},
		{"budget: {intent_usd: .nan}", `must be a number such as 2.5, not ".nan"`},
		{"budget: {day_usd: -1}", "budget.day_usd: is -1"},
		{"budget: {call_usd: no}", "budget.call_usd: must be a number"},
		{"policy: {sandbox: on}", `policy.sandbox: "on" is not one of auto, require`},
		{"policy: {network: none}", `policy.network: "none" is not one of full, model`},
		{"policy: {command_network: model}", `policy.command_network: "model" is not one of full, none`},
		{"policy: {sandbox_read: [/]}", "policy.sandbox_read[0]: is everything"},
		{"policy: {sandbox_read: [/opt, '~/.']}", "policy.sandbox_read[1]: is everything"},
		{"policy: {sandbox_write: [cache]}", `policy.sandbox_write[0]: "cache" must start with / or ~/`},
		{"policy: {sandbox_write: ['~/../x']}", "policy.sandbox_write[0]: must not contain .."},
		{"policy: {sandbox_write: [/dev/sda]}", "policy.sandbox_write[0]: is made for each sandbox"},
		{"policy: {sandbox: off}", "policy.sandbox: no repository can turn the sandbox off: who runs pfl-forge may, for a machine, with FORGE_SANDBOX=unconfined"},
		{"policy: {protected_paths: [/etc]}", "policy.protected_paths[0]: \"/etc\" must be a path from the repository's root"},
		{"policy: {protected_paths: ['a/**']}", "must be a path from the repository's root"},
		{"policy: {protected_paths: ['[']}", "is no pattern"},
		{"policy: {approvals: {count: 0}}", "policy.approvals.count: is 0; must be between 1 and 20"},
		{"policy: {approvals: {count: -1}}", "policy.approvals.count: is -1; must be between 1 and 20"},
		{"policy: {approvals: {count: 1000000}}", "policy.approvals.count: is 1000000; must be between 1 and 20"},
		{"policy: {approvals: {count: two}}", "policy.approvals.count"},
		{"policy: {approvals: {count: 3}, approvers: [ada, bob]}", "policy.approvals.count: is 3, but policy.approvers names 2; name more, or lower it"},
		{"policy: {approvers: [ada, bob, Ada]}", `policy.approvers[2]: "Ada" is given twice; a person counts once`},
		{"policy: {approvals: {not_requester: maybe}}", "policy.approvals.not_requester"},
		{"policy: {approvals: {not_requestor: true}}", `policy.approvals.not_requestor: unknown key; did you mean "not_requester"?`},
		{"policy: {analyze_before_approval: yes}", "policy.analyze_before_approval: \"yes\" is not one of recipes, always, never"},
		{"policy: {max_depth: 11}", "policy.max_depth: is 11; must be between 0 and 10"},
		{"reflection: {max_generation: 0}", "reflection.max_generation: is 0; must be between 1"},
		{"reflection: {proposals_a_time: 0}", "reflection.proposals_a_time: is 0"},
		{"reflection: {proposals_a_day: -1}", "reflection.proposals_a_day: is -1"},
		{"policy: {approvers: [' ']}", "policy.approvers[0]: is empty"},
		{"recipes:\n  a: {}", "pfl-forge.yaml:2: recipes.a: needs either run or tasks"},
		{"recipes:\n  a: {run: x, tasks: [{name: b, run: x}]}", "recipes.a.tasks: cannot stand beside run"},
		{"recipes:\n  a: {each: x, tasks: [{name: b, run: x}]}", "recipes.a.each: goes with run, not with tasks"},
		{"recipes:\n  a: {run: ' '}", "recipes.a.run: is an empty command"},
		{"recipes:\n  A B: {run: x}", `recipe name "A B" must be a-z`},
		{"recipes:\n  a: {run: x, risk: medium}", `"medium" is not one of low, med, high; did you mean "med"?`},
		{"recipes:\n  a: {run: x, timeout: 1ms}", "recipes.a.timeout: is 1ms"},
		{"recipes:\n  a:\n    run: x\n    chekc: y", `pfl-forge.yaml:4: recipes.a.chekc: unknown key; did you mean "check"?`},
		{"recipes:\n  a: {run: x, params: [{name: from}]}", `recipes.a.params[0].name: "from" must be upper case`},
		{"recipes:\n  a: {run: x, params: [{question: q}]}", `"" must be upper case`},
		{"recipes:\n  a: {run: x, params: [{name: FORGE_ITEM}]}", "kept for pfl-forge's own"},
		{"recipes:\n  a: {run: x, params: [{name: LD_PRELOAD}]}", "changes how commands run"},
		{"recipes:\n  a: {run: x, params: [{name: GIT_DIR}]}", "changes how commands run"},
		{"recipes:\n  a: {run: x, params: [{name: PATH}]}", "changes how commands run"},
		{"recipes:\n  a: {run: x, params: [{name: X}, {name: X}]}", `recipes.a.params[1].name: "X" is given twice`},
		{"recipes:\n  a: {tasks: [{run: x}]}", "recipes.a.tasks[0]: needs a name"},
		{"recipes:\n  a: {tasks: [{name: b}]}", "recipes.a.tasks[0]: needs run"},
		{"recipes:\n  a: {tasks: [{name: b, run: x}, {name: b, run: y}]}", `recipes.a.tasks[1].name: "b" is given twice`},
		{"recipes:\n  a: {tasks: [{name: bcd, run: x, depends_on: [bce]}]}", `no task of this recipe is called "bce"; did you mean "bcd"?`},
		{"recipes:\n  a: {tasks: [{name: b, run: x, depends_on: [b]}]}", `"b" depends on itself`},
		{
			"recipes:\n  a:\n    tasks: [{name: b, run: x, depends_on: [c]}, {name: c, run: x, depends_on: [b]}]",
			"pfl-forge.yaml:3: recipes.a.tasks: depend on each other in a circle: b -> c -> b",
		},
		{"recipes:\n  a: {run: \"x\\0y\"}", "must not contain a NUL character"},
	} {
		_, err := config.Parse([]byte(tt.in))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q:\n got %v\nwant ...%s", tt.in, err, tt.want)
		}
	}
}

func TestParseReportsEverythingInOrder(t *testing.T) {
	_, err := config.Parse([]byte("recipes:\n  b: {}\n  a: {}\nagent: nobody\nparallel_workers: 0\n"))
	want := `pfl-forge.yaml:2: recipes.b: needs either run or tasks
pfl-forge.yaml:3: recipes.a: needs either run or tasks
pfl-forge.yaml:4: agent: "nobody" is not one of claude, codex, gemini, opencode, recipe
pfl-forge.yaml:5: parallel_workers: is 0; must be between 1 and 256`
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}

// Changes that wait for their merge are verified side by side without anybody asking for it.
func TestMergeTrainByDefault(t *testing.T) {
	for in, want := range map[string]int{
		"":                           4,
		"parallel_workers: 7":        7,
		"parallel_workers: 1":        1,
		"merge_queue: {parallel: 1}": 1,
		"merge_queue: {parallel: 0}": 4,
		"parallel_workers: 2\nmerge_queue: {parallel: 8}": 8,
	} {
		got, err := config.Parse([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if n := got.Rules().MergeParallel; n != want {
			t.Errorf("%q: %d changes at once, want %d", in, n, want)
		}
	}
}

// One run decides about several changes only where the project says so, and has
// them verified side by side.
func TestBatches(t *testing.T) {
	for in, want := range map[string]int{
		"":                        0,
		"merge_queue: {batch: 1}": 0,
		"merge_queue: {batch: 8}": 8,
		"parallel_workers: 1\nmerge_queue: {batch: 8}": 0,
		"merge_queue: {parallel: 1, batch: 8}":         0,
	} {
		got, err := config.Parse([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if n := got.Rules().MergeBatch; n != want {
			t.Errorf("%q: %d changes by one run, want %d", in, n, want)
		}
	}
	for _, in := range []string{"merge_queue: {batch: 0}", "merge_queue: {batch: 65}", "merge_queue: {batch: many}"} {
		if _, err := config.Parse([]byte(in)); err == nil || !strings.Contains(err.Error(), "merge_queue.batch") {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// There is no setting by which a change lands unverified beside other files: a
// configuration that asks for one is refused by its line.
func TestMergeQueueSettings(t *testing.T) {
	for _, name := range []string{"on_push: restack", "on_push: reverify-overlap", "independent: paths"} {
		key, _, _ := strings.Cut(name, ":")
		_, err := config.Parse([]byte("verify: [make]\nmerge_queue:\n  " + name + "\n"))
		if err == nil || !strings.Contains(err.Error(), "pfl-forge.yaml:3: merge_queue."+key+": unknown key; ") || !strings.Contains(err.Error(), "batch") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Verifying is left to what lands only where the project says so, and has something to verify by.
func TestVerifyBeforeReview(t *testing.T) {
	for in, want := range map[string]bool{
		"verify: [make]": false,
		"verify: [make]\nmerge_queue: {parallel: 2}":                 false,
		"verify: [make]\nmerge_queue: {verify_before_review: true}":  false,
		"verify: [make]\nmerge_queue: {verify_before_review: false}": true,
		"merge_queue: {verify_before_review: false}":                 false,
	} {
		got, err := config.Parse([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if left := got.Rules().VerifyInMerge; left != want {
			t.Errorf("%q: verifying is left to the merge: %v, want %v", in, left, want)
		}
	}
}
