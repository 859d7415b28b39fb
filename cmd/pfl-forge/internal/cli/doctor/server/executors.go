package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/doctor/diagnosis"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// executor is where a replica runs agents and commands, as programs read it.
type executor struct {
	Name forge.Executor `json:"name" yaml:"name"` // pods, namespaces or none

	// Image and RuntimeClass are those of pods; without a RuntimeClass they have the cluster's
	// own.
	Image        string `json:"image,omitempty"         yaml:"image,omitempty"`
	RuntimeClass string `json:"runtime_class,omitempty" yaml:"runtime_class,omitempty"`

	// Reason says why there is none.
	Reason string `json:"reason,omitempty" yaml:"reason,omitempty"`

	// Required says that without one it refuses agents and commands.
	Required bool `json:"required,omitempty" yaml:"required,omitempty"`
}

// String returns the executor as a table has it; empty if it is not known.
func (e *executor) String() string {
	if e == nil {
		return ""
	}
	var of []string
	for _, part := range []string{e.Image, e.RuntimeClass} {
		if part != "" {
			of = append(of, part)
		}
	}
	if len(of) == 0 {
		return string(e.Name)
	}
	return fmt.Sprintf("%s (%s)", e.Name, strings.Join(of, ", "))
}

// maxNamed bounds the replicas that a finding names.
const maxNamed = 5

// checkExecutors names the replicas that have neither pods nor a sandbox, those of a service
// that say the same together: they refuse agents and commands, or run them beside themselves.
//
// Refusing is broken, running beside themselves a warning: whoever started such a replica
// has asked for that (ADR-0052). Findings are in the order in which replicas are listed.
// Replicas of an older version do not say where they run agents, and are passed over.
func checkExecutors(replicas []Replica) []diagnosis.Finding {
	type group struct {
		service, reason string
		required        bool
	}
	var groups []group
	names := map[group][]string{}
	for i := range replicas {
		r := &replicas[i]
		if r.Executor == nil || r.Executor.Name != forge.ExecutorNone {
			continue
		}
		g := group{r.Service, r.Executor.Reason, r.Executor.Required}
		if !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
		names[g] = append(names[g], string(r.Replica))
	}
	var found []diagnosis.Finding
	for _, g := range groups {
		list := names[g]
		who := strings.Join(list[:min(len(list), maxNamed)], ", ")
		if more := len(list) - maxNamed; more > 0 {
			who += " and " + render.Count(more, "other")
		}
		f := diagnosis.Finding{
			Check: g.service, Health: diagnosis.Warning, Detail: fmt.Sprintf("%s: agents and commands run unconfined: %s", who, g.reason),
			Hint: "leave out --sandbox=unconfined (FORGE_SANDBOX); give it --pod-template on Kubernetes, or allow it user namespaces",
		}
		if g.required {
			f.Health, f.Detail = diagnosis.Broken, fmt.Sprintf("%s: agents and commands are refused: %s", who, g.reason)
			f.Hint = "give it --pod-template (FORGE_POD_TEMPLATE) on Kubernetes, or allow it user namespaces"
		}
		found = append(found, f)
	}
	return found
}
