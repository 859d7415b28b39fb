package telemetry

// InstrumentKind says how the values of a metric are made.
type InstrumentKind string

// The kinds of instruments.
const (
	Counter   InstrumentKind = "counter"   // it only grows; a restart begins at 0
	Histogram InstrumentKind = "histogram" // how often a value was in which range, and the sum
	Gauge     InstrumentKind = "gauge"     // the present value
)

// Combination says how the values of several replicas make one.
type Combination string

// The combinations.
const (
	// Sum: each replica counts what it did itself.
	Sum Combination = "sum"
	// Max: every runner shows the whole, as it last read it from the server. Adding them up
	// would count everything as often as there are runners.
	Max Combination = "max"
	// Each: the value is about the replica itself.
	Each Combination = "each"
)

// Instrument is a row of the table of metrics.
type Instrument struct {
	// Name follows the semantic conventions of OpenTelemetry. [Instrument.Prometheus] is the
	// name at /metrics.
	// It is never changed: dashboards and alerts of others name it.
	Name string
	Kind InstrumentKind
	// Unit is that of UCUM; one in braces is only a note.
	Unit string
	// By names the services that record it: runner, workers, gateway, or all.
	By string
	// Across says how to combine replicas.
	// A query that combines them otherwise is wrong by the number of runners.
	Across Combination
	// Attributes are all that a series can have. There are at most as many series as the product
	// of their bounds.
	Attributes []*Attribute
	// Buckets are the upper bounds of a histogram.
	Buckets []float64
	// Text says what is measured, for operators.
	Text string
}

// Who records a metric: see [Instrument.By].
const (
	// byRunner: what follows from decisions, or is true of the whole.
	byRunner = "runner"
	// byWorkers: what a replica does with a command.
	byWorkers = "workers"
	// byGateway: requests from the outside.
	byGateway = "gateway"
	// byAll: what is the same in every process.
	byAll = "all"
)

var (
	// seconds are the bounds for what takes from a moment to hours.
	seconds = []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200}
	// moments are the bounds for a write.
	moments = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}
	// answers are the bounds that the semantic conventions want of answers by HTTP.
	answers = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	// tokens are the bounds that the semantic conventions want.
	tokens = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

// The instruments. Those of a runner that show the whole are observed, see [Snapshot].
var (
	intents = &Instrument{
		"forge.intents", Gauge, "{intent}", byRunner, Max,
		[]*Attribute{attrProject, attrStatus},
		nil,
		"intents there are, by status",
	}
	waiting = &Instrument{
		"forge.intents.waiting", Gauge, "{intent}", byRunner, Max,
		[]*Attribute{attrProject, attrWaiting},
		nil,
		"intents that wait for a person: the inbox",
	}
	oldest = &Instrument{
		"forge.intent.oldest.age", Gauge, "s", byRunner, Max,
		[]*Attribute{attrProject, attrFor},
		nil,
		"time since the oldest intent was submitted that has not ended, or waits for a person; 0 without one",
	}
	queueDepth = &Instrument{
		"forge.step.queue.depth", Gauge, "{command}", byRunner, Max,
		[]*Attribute{attrStep},
		nil,
		"commands that no worker has taken yet, those included that wait for their turn",
	}
	queueActive = &Instrument{
		"forge.step.active", Gauge, "{command}", byRunner, Max,
		[]*Attribute{attrStep},
		nil,
		"commands that a worker has taken and not finished",
	}
	mergeQueue = &Instrument{
		"forge.merge.queue.length", Gauge, "{change}", byRunner, Max,
		[]*Attribute{attrProject},
		nil,
		"changes in the merge queue, the one under way included",
	}
	facts = &Instrument{
		"forge.project.facts", Gauge, "{fact}", byRunner, Max,
		[]*Attribute{attrProject, attrFact},
		nil,
		"what keeps work of a project waiting and is the fault of no intent",
	}
	budgetLeft = &Instrument{
		"forge.budget.remaining", Gauge, "{USD}", byRunner, Max,
		[]*Attribute{attrProject, attrScope},
		nil,
		"US dollars that are left of a budget; only where there is one",
	}
	deadLetters = &Instrument{
		"forge.dead_letters", Gauge, "{message}", byRunner, Max, nil, nil,
		"messages that could not be handled, of the last 90 days and the newest 1,000: `pfl-forge doctor` lists them",
	}
	copiesMissing = &Instrument{
		"forge.nats.copies.missing", Gauge, "{copy}", byRunner, Max, nil, nil,
		"copies of streams whose server is away or has not caught up; 0 with a single server, which keeps none",
	}
	decisions = &Instrument{
		"forge.decisions", Counter, "{event}", byRunner, Sum,
		[]*Attribute{attrDecision},
		nil,
		"events that were decided on",
	}
	journalWrite = &Instrument{
		"forge.journal.append.duration", Histogram, "s", byRunner, Sum,
		[]*Attribute{attrOutcome},
		moments,
		"how long it took to write a decision down durably; `failed` is a decision that another runner was faster with",
	}
	merges = &Instrument{
		"forge.merges", Counter, "{merge}", byRunner, Sum,
		[]*Attribute{attrProject, attrMerge},
		nil,
		"merges that were tried",
	}
	tokenUsage = &Instrument{
		"gen_ai.client.token.usage", Histogram, "{token}", byRunner, Sum,
		[]*Attribute{attrProject, attrStep, attrAgent, attrProvider, attrModel, attrOperates, attrTokens},
		tokens,
		"tokens of an attempt, all its calls together",
	}
	cost = &Instrument{
		"forge.agent.cost", Counter, "{USD}", byRunner, Sum,
		[]*Attribute{attrProject, attrStep, attrAgent, attrModel},
		nil,
		"US dollars that agents cost",
	}
	readsRefused = &Instrument{
		"forge.reads.refused", Counter, "{read}", byRunner, Sum,
		[]*Attribute{attrReadRefusal},
		nil,
		"reads of people that were refused: many of `busy` may be a flood, of `request` an attempt to read what is not theirs",
	}
	overQuota = &Instrument{
		"forge.submissions.over_quota", Counter, "{submission}", byRunner, Sum,
		[]*Attribute{attrProject, attrQuota},
		nil,
		"submissions that were refused because as many intents are open as may be: the sender is told to try again",
	}
	attempts = &Instrument{
		"forge.attempts", Counter, "{attempt}", byWorkers, Sum,
		[]*Attribute{attrProject, attrStep, attrOutcome, attrReason},
		nil,
		"attempts that ended",
	}
	attemptDuration = &Instrument{
		"forge.attempt.duration", Histogram, "s", byWorkers, Sum,
		[]*Attribute{attrStep, attrOutcome},
		seconds,
		"how long attempts took; those of step `merge` are the merges",
	}
	stepWait = &Instrument{
		"forge.step.wait", Histogram, "s", byWorkers, Sum,
		[]*Attribute{attrStep},
		seconds,
		"time from the issue of a command to the beginning of its attempt, former deliveries included",
	}
	verifyDuration = &Instrument{
		"forge.verify.duration", Histogram, "s", byWorkers, Sum,
		[]*Attribute{attrProject, attrOutcome},
		seconds,
		"how long a project's verify commands took, set-up included; `failed`: one of them failed",
	}
	leasesLost = &Instrument{
		"forge.leases.lost", Counter, "{lease}", byWorkers, Sum,
		[]*Attribute{attrStep},
		nil,
		"attempts that ended because their replica was cut off, or another one took over",
	}
	podsActive = &Instrument{
		"forge.pods.active", Gauge, "{pod}", byWorkers, Sum, nil, nil,
		"pods that commands have, where each gets one of its own (`--pod-template`), those that start included",
	}
	podStart = &Instrument{
		"forge.pod.start.duration", Histogram, "s", byWorkers, Sum, nil, seconds,
		"time from the request for a pod to the first byte that it sent",
	}
	podsLost = &Instrument{
		"forge.pods.lost", Counter, "{pod}", byWorkers, Sum,
		[]*Attribute{attrLoss},
		nil,
		"pods that ended before their command, or did not start in time; the command is done again",
	}
	podsRefused = &Instrument{
		"forge.pods.refused", Counter, "{pod}", byWorkers, Sum,
		[]*Attribute{attrRefusal},
		nil,
		"pods that could not be made, or whose container can never start",
	}
	requests = &Instrument{
		"http.server.request.duration", Histogram, "s", byGateway, Sum,
		[]*Attribute{attrMethod, attrRoute, attrHTTP},
		answers,
		"how long answers took by [HTTP](guide-api.md), hooks among them; of those who follow, how long they did",
	}
	redeliveries = &Instrument{
		"forge.redeliveries", Counter, "{message}", byAll, Sum,
		[]*Attribute{attrKind},
		nil,
		"messages that were delivered again, because their receiver failed, ended or had to wait",
	}
	unready = &Instrument{
		"forge.service.unready", Gauge, "", byAll, Each,
		[]*Attribute{attrCheck},
		nil,
		"1 while a copy of a service lacks something, so that it takes no work: `/readyz?verbose` says since when, and why",
	}
	build = &Instrument{
		"forge.build.info", Gauge, "1", byAll, Each,
		[]*Attribute{attrVersion, attrRevision, attrRuntime},
		nil,
		"always 1; its attributes say what runs",
	}
)

// Instruments returns the table of all metrics.
func Instruments() []*Instrument {
	return []*Instrument{
		intents, waiting, oldest, queueDepth, queueActive, mergeQueue, facts, budgetLeft, deadLetters, copiesMissing,
		decisions, journalWrite, merges, tokenUsage, cost,
		readsRefused, overQuota, attempts, attemptDuration, stepWait, verifyDuration, leasesLost, podsActive, podStart, podsLost, podsRefused,
		requests, redeliveries, unready, build,
	}
}

// Attributes returns every attribute that a metric can have, in the order of the table.
func Attributes() []*Attribute {
	var list []*Attribute
	seen := map[*Attribute]bool{}
	for _, i := range Instruments() {
		for _, a := range i.Attributes {
			if !seen[a] {
				seen[a] = true
				list = append(list, a)
			}
		}
	}
	return list
}
