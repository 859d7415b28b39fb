package telemetry

import (
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/quota"
)

// Other is the value of every attribute whose own value is not one of those that it can have.
const Other = "other"

const (
	// maxProjects bounds the projects that a service tells apart.
	maxProjects = 200
	// maxModels bounds the models that a service tells apart, for each agent.
	maxModels = 20
	// maxName bounds the name of a model, in bytes.
	maxName = 64
)

// Attribute is a dimension of a metric.
type Attribute struct {
	// Key is the name, such as forge.step. In Prometheus the dots are underscores.
	Key string
	// Values are all that there can be, besides Other; nil: it is bounded by Most.
	Values []string
	// Most bounds how many values there can be, besides Other.
	Most int
	// Text says what the values are, for operators.
	Text string
}

// closed returns an attribute whose values are known.
func closed[T ~string](key, text string, values ...T) *Attribute {
	a := &Attribute{Key: key, Text: text, Most: len(values)}
	for _, v := range values {
		a.Values = append(a.Values, string(v))
	}
	return a
}

// The values of attributes that no other package names.
const (
	outcomeOK      = "ok"
	outcomeFailed  = "failed"
	outcomeError   = "error"
	outcomeStopped = "stopped"

	forSystem = "system"
	forPerson = "person"

	ofProject = "project"
	ofDay     = "day"
)

// Kind is that of a message.
type Kind string

// The kinds of messages that can be delivered again.
const (
	KindEvent   Kind = "event"   // a runner had it, and did not finish with it
	KindCommand Kind = "command" // a worker had it, and did not finish with it
)

// The attributes. A metric has no other ones.
var (
	attrProject = &Attribute{
		Key: "forge.project", Most: maxProjects,
		Text: "a project that the service is configured with, or, for a runner, that a worker announces",
	}
	attrModel = &Attribute{
		Key: "gen_ai.request.model", Most: maxModels * len(agents),
		Text: "as the agent names it: the first 20 of each agent",
	}
	attrStep    = closed("forge.step", "step, which is also the role of the agent", forge.Steps()...)
	attrStatus  = closed("forge.intent.status", "status of the intent", statuses...)
	attrWaiting = closed("forge.waiting", "what a person has to do", waitings...)
	attrFor     = closed("forge.waits_for", "who has to act next: `system` or `person`", forSystem, forPerson)
	attrReason  = closed("error.type", "why it failed; empty if it did not: [guide-failures.md](guide-failures.md)", append(reasons, "")...)
	attrOutcome = closed("forge.outcome", "`ok`, `failed`, `error` (it could not be tried), `stopped` (not wanted any more, or drained)",
		outcomeOK, outcomeFailed, outcomeError, outcomeStopped)
	attrMerge = closed("forge.merge.outcome", "how the merge ended",
		forge.MergeDone, forge.MergeConflict, forge.MergeVerifyFailed, forge.MergePatchChanged, forge.MergeDirty, forge.MergeTried,
		forge.MergeRefused, forge.MergeOvertaken, forge.MergeProposed, forge.MergeEdited, forge.MergeClosed, forge.MergeChecksFailed, forge.MergeUnwanted,
		forge.MergeDenied, forge.MergeOverdue)
	attrFact = closed("forge.fact",
		"credentials that an agent's account refuses, a quota that is used up, an origin that does not answer, or that refuses pushes",
		projectFacts...)
	attrDecision    = closed("forge.decision", "whether the event changed anything", forge.Applied, forge.Ignored, forge.Refused)
	attrKind        = closed("forge.message.kind", "`event` of a runner, `command` of a worker", KindEvent, KindCommand)
	attrScope       = closed("forge.budget.scope", "`project` or `day`", ofProject, ofDay)
	attrTokens      = closed("gen_ai.token.type", "`input` (not cached), `output`, `cache_read`, `cache_write`", tokenTypes...)
	attrAgent       = closed("forge.agent", "the back end; those of a project's own are `other`", agents...)
	attrProvider    = closed("gen_ai.provider.name", "whose models the back end uses by default", "anthropic", "openai", "gcp.gemini")
	attrOperates    = closed("gen_ai.operation.name", "always `invoke_agent`", invokeAgent)
	attrLoss        = closed("forge.pod.loss", "what ended it, as Kubernetes says; `connection`: nothing but the connection to it", losses...)
	attrReadRefusal = closed("forge.read.refusal",
		"`busy`: too much was read at once; `request`: it asked for something that is none, or not of its project", "busy", "request")
	attrCheck = closed("forge.check", "what a copy of a service needs to work: its connection, streams and consumers, its state directory, repositories and keys",
		"nats", "events", "recovery", "commands", "state", "repositories", "credentials")
	attrQuota   = closed("forge.quota", "the quota of open intents that was reached", quota.OfProject, quota.OfSystem)
	attrRefusal = closed("forge.pod.refusal",
		"`denied` by the API server, `quota` of the namespace, or `template`: its container can never start", refusals...)
	attrMethod = closed("http.request.method", "`GET` or `POST`", "GET", "POST")
	attrRoute  = closed("http.route", "the address with names in the place of its variable parts", httpRoutes...)
	attrHTTP   = closed("http.response.status_code", "what was answered", httpStatuses...)
	// These have one value in a process.
	attrVersion  = &Attribute{Key: "service.version", Most: 1, Text: "version of the program"}
	attrRevision = &Attribute{Key: "vcs.ref.head.revision", Most: 1, Text: "the commit that it was built from"}
	attrRuntime  = &Attribute{Key: "process.runtime.version", Most: 1, Text: "version of Go"}
)

const invokeAgent = "invoke_agent"

// tokenTypes are those of forge.Usage.
var tokenTypes = []string{"input", "output", "cache_read", "cache_write"}

// agents are the back ends that are built in, beside which a project can have its own.
var agents = []string{"claude", "codex", "gemini", "opencode", "recipe"}

// providers has the provider of each agent that calls a model.
var providers = map[string]string{"claude": "anthropic", "codex": "openai", "gemini": "gcp.gemini", "opencode": "anthropic"}

// names are the values that open attributes have had. It is safe for concurrent use.
type names struct {
	mu       sync.RWMutex
	projects map[string]bool
	// models has the known models of each agent.
	models map[string][]string
}

// addProjects makes projects known, as far as there is room.
func (n *names) addProjects(list []forge.ProjectID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.projects == nil {
		n.projects = map[string]bool{}
	}
	for _, p := range list {
		if _, err := forge.ParseProjectID(string(p)); err == nil && len(n.projects) < maxProjects {
			n.projects[string(p)] = true
		}
	}
}

// project returns the attribute for a project.
func (n *names) project(p forge.ProjectID) attribute.KeyValue {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.projects[string(p)] {
		return attribute.String(attrProject.Key, string(p))
	}
	return attribute.String(attrProject.Key, Other)
}

// model returns the attribute for a model that an agent named.
func (n *names) model(agent, model string) attribute.KeyValue {
	if !slices.Contains(agents, agent) {
		agent = Other
	}
	name := cleaned(model)
	n.mu.RLock()
	known := slices.Contains(n.models[agent], name)
	n.mu.RUnlock()
	if !known {
		name = n.addModel(agent, name)
	}
	return attribute.String(attrModel.Key, name)
}

// addModel returns the name, or Other if the agent has named too many.
func (n *names) addModel(agent, name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.models == nil {
		n.models = map[string][]string{}
	}
	switch list := n.models[agent]; {
	case slices.Contains(list, name):
		return name
	case len(list) >= maxModels, name == "":
		return Other
	default:
		n.models[agent] = append(list, name)
		return name
	}
}

// cleaned returns the name of a model without characters that names of models do not have.
func cleaned(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._:/@-", r):
			return r
		}
		return '_'
	}, s[:min(len(s), maxName)])
	return s
}

// of returns a closed attribute with a value, or with Other.
func of[T ~string](a *Attribute, value T) attribute.KeyValue {
	if slices.Contains(a.Values, string(value)) {
		return attribute.String(a.Key, string(value))
	}
	return attribute.String(a.Key, Other)
}
