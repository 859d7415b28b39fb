package imports

// allowList names everything that some packages may import.
//
// Patterns are those of the go command at the root of this repository: a path
// is itself, with /... also everything below it, ours begin with a dot, and std
// is the standard library.
type allowList struct {
	packages []string
	may      []string
	// never takes away from may.
	never []string
	// tests says that the rule holds for _test.go files too.
	tests  bool
	reason string
}

// restriction names the only packages that may import something.
type restriction struct {
	imports  []string
	packages []string
	// tests says that the rule holds for _test.go files too.
	tests  bool
	reason string
}

var allowLists = []allowList{
	{
		packages: []string{"."},
		may:      []string{"std"},
		reason:   "the vocabulary is what everything else speaks; whoever imports it must get nothing else with it",
	},
	{
		packages: []string{"./messages"},
		may:      []string{"std", "."},
		never:    []string{"log/...", "net/...", "os/..."},
		reason:   "the rules read the registry of messages, and they are pure",
	},
	{
		packages: []string{"./verdict"},
		may:      []string{"std", "."},
		never:    []string{"log/...", "net/...", "os/..."},
		reason:   "workers and rules compare claims in the same way, and the rules are pure",
	},
	{
		packages: []string{"./quota"},
		may:      []string{"std", "."},
		never:    []string{"log/...", "net/...", "os/..."},
		reason:   "counting is apart from reading what is counted",
	},
	{
		packages: []string{"./internal/pattern"},
		may:      []string{"regexp", "sync"},
		reason:   "it may be imported by all who may import the standard library",
	},
	{
		packages: []string{"./internal/redact/..."},
		may:      []string{"std"},
		never:    []string{"log/...", "net/...", "os/..."},
		reason:   "what sees every secret keeps it to itself",
	},
	{
		packages: []string{"./agent/sandbox"},
		may:      []string{"std", "golang.org/x/net/bpf", "golang.org/x/sys/unix", "./agent/sandbox"},
		reason:   "it runs as the first process of every command, before anything else of this program is of use",
	},
	{
		packages: []string{"./bus/subjects"},
		may:      []string{"std", "."},
		reason:   "what a subject looks like is known without a connection, and without the wire format",
	},
	{
		packages: []string{"./bus/access"},
		may:      []string{"std", ".", "./bus/subjects", "./bus/internal/streams", "github.com/nats-io/nkeys"},
		never:    []string{"net/...", "os/..."},
		reason:   "who may what is a table that is read without a connection",
	},
	{
		packages: []string{"./git"},
		may:      []string{"std", "golang.org/x/sys/unix"},
		reason:   "it runs git and names what git works on; every package below stands on it",
	},
	{
		packages: []string{"./git/objects"},
		may:      []string{"std", "./git", "./git/internal/disk", "./internal/patchid", "./internal/term"},
		reason:   "objects have no refs, working trees or origins",
	},
	{
		packages: []string{"./git/worktree"},
		may:      []string{"std", "./git", "./git/internal/disk", "./git/objects"},
		reason:   "the person's repository knows nothing of agents and their checkouts",
	},
	{
		packages: []string{"./services/runner/flow/..."},
		may: []string{
			"std", ".", "./messages", "./services/runner/flow/...", "./verdict",
			"./internal/pathpattern", "./internal/rules", "./internal/schedules", "./internal/words",
		},
		never:  []string{"crypto/rand", "log/...", "math/rand/...", "net/...", "os/...", "sync/...", "syscall"},
		reason: "the rules are a pure function of state and event: no clock, no randomness, no I/O, no goroutines",
	},
	{
		packages: []string{"./services/runner/flow/..."},
		may: []string{
			"std", ".", "./messages", "./services/runner/flow/...", "./verdict", "./internal/pathpattern", "./internal/rules",
			"./internal/schedules", "./internal/words", "./internal/testsize", "./internal/claimtest",
			"github.com/cockroachdb/datadriven", "github.com/google/go-cmp/...", "github.com/rogpeppe/go-internal/...", "pgregory.net/rapid",
		},
		never:  []string{"net/...", "os/exec"},
		tests:  true,
		reason: "the rules are tested without a server, a repository or an agent",
	},
	{
		packages: []string{"./internal/rules"},
		may:      []string{"std", "."},
		never:    []string{"log/...", "net/...", "os/..."},
		reason:   "what reads records and what decides know the same versions of the rules, and neither needs the other for that",
	},
	{
		packages: []string{"./proof"},
		may: []string{
			"std", ".", "./internal/redact", "golang.org/x/crypto/ssh", "github.com/hiddeco/sshsig",
			"github.com/secure-systems-lab/go-securesystemslib/dsse",
		},
		never:  []string{"net/...", "os/exec"},
		reason: "what is believed follows from a commit, its proofs and the trusted keys alone: no server, no repository, no configuration",
	},
	{
		packages: []string{"./document"},
		may:      []string{"std", "."},
		never:    []string{"log/...", "net/...", "os/..."},
		reason:   "the names that people and systems rely on; every reader and writer imports it, so it imports none of them",
	},
	{
		packages: []string{"./forgedir/layout"},
		may:      []string{"std", "."},
		never:    []string{"os/..."},
		reason:   "whoever needs the name of a file gets nothing else with it",
	},
	{
		packages: []string{"./forgedir/disk"},
		may:      []string{"std", "golang.org/x/sys/unix", "./forgedir/layout"},
		reason:   "moving files safely is the same whatever they hold",
	},
	{
		packages: []string{"./forgedir/drafts"},
		may: []string{
			"std", ".", "golang.org/x/text/unicode/norm", "./config", "./document", "./internal/slug", "./internal/strictyaml",
			"./forgedir/disk", "./forgedir/layout", "./forgedir/person",
		},
		reason: "what a draft asks for does not depend on what was written here before",
	},
	{
		packages: []string{"./forgedir/projection"},
		may: []string{
			"std", ".", "./document", "./internal/strictyaml", "./internal/unpack", "./forgedir/disk", "./forgedir/layout", "./forgedir/person",
		},
		reason: "whose version a file holds is known by its digest, not by its meaning",
	},
	{
		packages: []string{"./forgedir/edits", "./forgedir/goals", "./forgedir/records"},
		may: []string{
			"std", ".", "./document", "./git", "./internal/strictyaml", "./internal/term", "./internal/transcript",
			"./forgedir/disk", "./forgedir/layout", "./forgedir/person", "./forgedir/projection",
		},
		reason: "the kinds of files know nothing of each other; forgedir puts them together",
	},
	{
		packages: []string{"./cmd/pfl-forge/internal/cli/kit"},
		may: []string{
			"std", ".", "./internal/term", "./cmd/pfl-forge/internal/console", "./cmd/pfl-forge/internal/render",
			"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term",
		},
		reason: "every command is made with it; it knows none of them, and no server",
	},
	{
		packages: []string{"./cmd/pfl-forge/internal/cli/document"},
		may: []string{
			"std", ".", "./internal/term", "./internal/transcript", "./document", "./cmd/pfl-forge/internal/render", "./cmd/pfl-forge/internal/cli/kit",
		},
		reason: "a document is made of what was read; it reads nothing itself, and no command prints in its own words what another one prints, too",
	},
	{
		packages: []string{"./cmd/pfl-forge/internal/cli/pending"},
		may: []string{
			"std", ".", "./config", "./document", "./verdict", "./services/gateway/concealed", "./cmd/pfl-forge/internal/render",
			"./cmd/pfl-forge/internal/cli/kit", "./cmd/pfl-forge/internal/cli/target", "./cmd/pfl-forge/internal/cli/document",
		},
		reason: "there is one model of a pending decision, whichever command or view offers it",
	},
	{
		packages: []string{"./services/gateway/console"},
		may: []string{
			"std", ".", "./document", "./document/figures", "./document/setup", "./internal/term", "./internal/together", "./services/gateway/api",
			"./services/gateway/concealed",
			"./services/gateway/console/audits", "./services/gateway/console/board",
			"./services/gateway/console/costs", "./services/gateway/console/download", "./services/gateway/console/files",
			"./services/gateway/console/folds", "./services/gateway/console/gantt",
			"./services/gateway/console/health", "./services/gateway/console/login", "./services/gateway/console/others",
			"./services/gateway/console/phrase", "./services/gateway/console/proof", "./services/gateway/console/room",
			"./services/gateway/console/session", "./services/gateway/console/settings",
			"./services/gateway/console/tries", "./services/gateway/console/turns", "./services/gateway/console/visible",
			"./services/gateway/tokens",
			"github.com/nats-io/nuid",
		},
		never:  []string{"os/exec", "text/template"},
		reason: "pages ask the API as everybody does: they have no bus, and no template whose values are not escaped",
	},
}

var restrictions = []restriction{
	{
		// What a test runs as another system knows NATS, and nothing of ours.
		imports:  []string{"github.com/nats-io/nats.go/..."},
		packages: []string{"./bus/...", "./natsd/...", "./deploy/k8s/internal/testpod"},
		reason:   "subjects, headers and acknowledgements are decided once, in bus",
	},
	{
		// The runner's benchmark compares itself with a bare loop over JetStream, and
		// an end-to-end test sends garbage that bus would not.
		imports:  []string{"github.com/nats-io/nats.go/..."},
		packages: []string{"./bus/...", "./natsd/...", "./services/runner", "./cmd/pfl-forge/internal/e2e", "./deploy/k8s/internal/testpod"},
		tests:    true,
		reason:   "subjects, headers and acknowledgements are decided once, in bus",
	},
	{
		imports:  []string{"github.com/nats-io/nats-server/..."},
		packages: []string{"./natsd/...", "./bus/bustest/..."},
		reason:   "the services do not carry a server",
	},
	{
		imports:  []string{"github.com/nats-io/nats-server/..."},
		packages: []string{"./natsd/...", "./bus/..."},
		tests:    true,
		reason:   "tests get their server from bustest",
	},
	{
		// The tests of what is exported read it as a collector does, and those
		// of the simulator what earlier versions wrote.
		imports:  []string{"./proto/...", "google.golang.org/protobuf/..."},
		packages: []string{"./bus/...", "./proto/...", "./internal/telemetry/otlptest", "./deploy/k8s/internal/testpod", "./services/runner/sim"},
		tests:    true,
		reason:   "the wire ends in the codec; everything inside speaks the vocabulary",
	},
	{
		imports:  []string{"github.com/hiddeco/sshsig", "github.com/secure-systems-lab/go-securesystemslib/..."},
		packages: []string{"./proof"},
		tests:    true,
		reason:   "signatures and envelopes are made and read in one place",
	},
	{
		imports:  []string{"gopkg.in/yaml.v3"},
		packages: []string{"./internal/strictyaml/...", "./agent/pods"}, // the operator's pod, which may have any shape
		tests:    true,
		reason:   "YAML that a person or an agent wrote is read within limits, and an error names its line",
	},
	{
		imports:  []string{"os/exec"},
		packages: []string{"./git", "./git/gittest", "./agent/...", "./cmd/pfl-forge/internal/console/consoletest", "./deploy/images", "./internal/testbuild"},
		reason:   "processes are started where their arguments, environment and end are looked after",
	},
	{
		imports: []string{"./internal/wait", "./internal/testdir", "./internal/testport", "./internal/testoutput", "./internal/testsize", "./internal/testbuild"},
		packages: []string{
			"./internal/testdir", "./internal/testbuild",
			"./agent/agenttest/...", "./agent/prompt/prompttest", "./bus/bustest", "./git/gittest", "./jobs/repotest",
			"./agent/process/executortest", "./agent/remote/remotetest",
			"./cmd/pfl-forge/internal/console/consoletest", "./services/gateway/forges/forgetest/person",
		},
		reason: "they are for tests and for what tests share",
	},
	{
		imports:  []string{"./agent/sandbox"},
		packages: []string{"./agent/...", "./jobs/...", "./cmd/pfl-forge/..."},
		reason:   "what a command sees of the machine is decided in one place, where calls are started",
	},
	{
		imports:  []string{"./agent/gateway"},
		packages: []string{"./jobs/...", "./cmd/pfl-forge/..."},
		reason:   "back ends get a token and an address, whoever made them; none of them sees a key",
	},
	{
		imports:  []string{"github.com/santhosh-tekuri/jsonschema/..."},
		packages: []string{"./forgedir/schematest"},
		tests:    true,
		reason:   "the program goes by its types; the schemas that are made of them are for others, and checked in one place",
	},
	{
		imports:  []string{"./forgedir/schematest"},
		packages: []string{"./forgedir/schematest"},
		reason:   "it is for tests",
	},
	{
		imports:  []string{"./forgedir/disk", "./forgedir/edits", "./forgedir/goals", "./forgedir/person", "./forgedir/projection"},
		packages: []string{"./forgedir/..."},
		tests:    true,
		reason:   "others go through forgedir.Dir, which holds the lock",
	},
	{
		imports:  []string{"github.com/google/go-containerregistry/...", "golang.org/x/crypto/x509roots/..."},
		packages: []string{"./deploy/images"},
		tests:    true,
		reason:   "what makes images is in none of them",
	},
	{
		imports:  []string{"go.opentelemetry.io/...", "github.com/prometheus/..."},
		packages: []string{"./internal/telemetry/...", "./deploy/k8s/internal/testpod", "./deploy/monitoring/adapter"},
		reason:   "names, attributes and their bounds are decided once; others say what happened",
	},
	{
		imports:  []string{"go.opentelemetry.io/otel/sdk/...", "go.opentelemetry.io/otel/exporters/...", "github.com/prometheus/..."},
		packages: []string{"./internal/telemetry/export", "./deploy/monitoring/adapter"},
		reason:   "recording needs the API alone; where it goes is decided in one place",
	},
	{
		imports:  []string{"./internal/telemetry/export"},
		packages: []string{"./service"},
		reason:   "only the mains of services export; a test may too",
	},
	{
		imports:  []string{"github.com/prometheus/prometheus/..."},
		packages: []string{"./deploy/monitoring", "./deploy/monitoring/adapter"},
		tests:    true,
		reason:   "the server's engine is for trying the alerts and autoscalers, and in no service",
	},
	{
		imports:  []string{"k8s.io/...", "sigs.k8s.io/..."},
		packages: []string{"./deploy/k8s"},
		tests:    true,
		reason:   "services do not know that they run in a cluster; manifests and their tests do",
	},
	{
		imports:  []string{"github.com/testcontainers/testcontainers-go/...", "github.com/moby/moby/..."},
		packages: []string{"./deploy/containers"},
		tests:    true,
		reason:   "one module drives Docker, so that all others can be tested without it",
	},
	{
		imports:  []string{"github.com/chromedp/..."},
		packages: []string{"./cmd/pfl-forge/internal/outside", "./deploy/k8s"},
		tests:    true,
		reason:   "a browser is driven where the pages meet the real services, and by no program",
	},
	isolatedModule("./services/analyzer/..."),
	isolatedModule("./services/gateway/..."),
	isolatedModule("./services/implementer/..."),
	isolatedModule("./services/reflector/..."),
	isolatedModule("./services/reviewer/..."),
	isolatedModule("./services/runner/..."),
	isolatedModule("./cmd/pfl-forge/..."),
}

// isolatedModule returns the restriction that only the module itself and the command
// that links all services import the module.
func isolatedModule(module string) restriction {
	return restriction{
		imports:  []string{module},
		packages: []string{module, "./cmd/pfl-forge/..."},
		tests:    true,
		reason:   "the modules are a star: a service sees the root module only, and only cmd/pfl-forge sees the services",
	}
}
