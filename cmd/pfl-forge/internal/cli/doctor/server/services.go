package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/connect"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/doctor/diagnosis"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

const (
	// servicesCheck is the check whose finding has the replicas.
	servicesCheck = "services"
	// runner is the service that takes all projects, and gatewayService the one
	// that says of which it watches a forge.
	runner         = "runner"
	gatewayService = "gateway"
)

// Replica is one running copy of a service, as programs read it. It is the word of the
// replica about itself, as a runner has asked for it (ADR-0033), but for Projects.
type Replica struct {
	Service  string            `json:"service"          yaml:"service"`
	Replica  forge.ReplicaID   `json:"replica"          yaml:"replica"`
	Group    string            `json:"group,omitempty"  yaml:"group,omitempty"`
	Version  string            `json:"version"          yaml:"version"`
	Projects []forge.ProjectID `json:"projects"         yaml:"projects"` // the one that was asked about, if it serves that; none of a runner, which takes all
	Agents   []string          `json:"agents,omitempty" yaml:"agents,omitempty"`
	Started  time.Time         `json:"started"          yaml:"started"`

	// Executor is where it runs agents and commands, in its own words; nil of a runner, and of
	// an older version.
	Executor *executor `json:"executor,omitempty" yaml:"executor,omitempty"`
	// Unwell says why it can do no work now, or not all; nil while it can.
	Unwell *unwell `json:"unwell,omitempty" yaml:"unwell,omitempty"`
}

// Entry is a finding as programs read it.
// The replicas are in the same document as the findings, so that a program needs one call.
type Entry struct {
	diagnosis.Finding `yaml:",inline"`
	Replicas          []Replica `json:"replicas,omitempty" yaml:"replicas,omitempty"` // of the check services
}

// Entries returns findings with the replicas at theirs.
func Entries(found []diagnosis.Finding, replicas []Replica) []Entry {
	list := make([]Entry, len(found))
	for i, f := range found {
		list[i].Finding = f
		if f.Check == servicesCheck {
			list[i].Replicas = replicas
		}
	}
	return list
}

// workers are the services that a project needs besides a runner, with what waits where
// none of them runs.
var workers = []struct {
	service, waits string
	health         diagnosis.Health // where none runs
}{
	{"analyzer", "intents wait to be analyzed", diagnosis.Broken},
	{"implementer", "tasks wait to be implemented and merged", diagnosis.Broken},
	{"reviewer", "reviews wait", diagnosis.Broken},
	{"reflector", "reflections and summaries wait", diagnosis.Warning},
}

// checkServices says which services of an organisation run, and what is missing for the
// project.
//
// A runner is asked, which asks all services that run (ADR-0033). A project without
// a replica that serves it is broken even if the service runs. What the runner does
// not know of, such as a service on another server, cannot be found here.
func checkServices(ctx context.Context, t *target.Target) ([]diagnosis.Finding, []Replica) {
	answer, err := t.Bus.Submissions.Services(ctx, t.Project, t.Actor, false)
	switch {
	case errors.Is(err, requests.ErrRunnerDown):
		return []diagnosis.Finding{diagnosis.New(runner, diagnosis.Broken, "no runner is up: intents are accepted, but nothing runs", target.StartRunner)}, nil
	case errors.Is(err, requests.ErrNotAllowed):
		hint := "an operator can add that to what this account may publish on"
		return []diagnosis.Finding{diagnosis.New(servicesCheck, diagnosis.Warning, err.Error(), hint)}, nil
	case err != nil:
		return []diagnosis.Finding{diagnosis.New(servicesCheck, diagnosis.Warning, err.Error(), "")}, nil
	}
	replicas := replicasOf(&answer)
	running, names := 0, map[string]bool{}
	for i := range answer.Services {
		running += answer.Services[i].Running
		names[answer.Services[i].Service] = true
	}
	found := []diagnosis.Finding{diagnosis.New(
		servicesCheck, diagnosis.Healthy,
		render.Count(running, "replica")+" of "+render.Count(len(names), "service"), "",
	)}
	if !answer.Known {
		found = append(found, diagnosis.New("project", diagnosis.Broken, t.Unserved(ctx).Error(), ""))
	}
	if answer.Unproven {
		found = append(found, diagnosis.New(
			"signatures", diagnosis.Warning, "the runner asks for none: nothing proves whose word a request or a result is but the permissions of NATS",
			"`pfl-forge auth init` makes keys; give the runner their file allowed_signers with --trusted-keys",
		))
	}
	for _, w := range workers {
		// Replicas may be in groups, each with projects of its own: one of these has to have it.
		serves := func(s requests.Service) bool { return s.Service == w.service && s.Serves }
		start := fmt.Sprintf("start forge-%s with this server and --project %s=URL", w.service, t.Project)
		switch {
		case !names[w.service]:
			found = append(found, diagnosis.New(w.service, w.health, fmt.Sprintf("no %s runs: %s", w.service, w.waits), start))
		case !answer.Known: // said of all
		case !slices.ContainsFunc(answer.Services, serves):
			found = append(found, diagnosis.New(
				w.service, diagnosis.Broken, fmt.Sprintf("no %s serves project %s: its commands fail there", w.service, t.Project), start,
			))
		}
	}
	found = append(found, checkGateway(t, answer.Services))
	found = append(found, checkUnwell(replicas)...)
	found = append(found, checkExecutors(replicas)...)
	found = append(found, checkLacks(t, &answer)...)
	found = append(found, checkTwice(replicas)...)
	return append(found, checkVersions(replicas)...), replicas
}

// checkGateway says whether a gateway runs, and whether it watches a forge of the
// project: none is needed to work on intents, so that nothing of it is a fault.
func checkGateway(t *target.Target, services []requests.Service) diagnosis.Finding {
	running, serving := 0, 0
	for i := range services {
		s := &services[i]
		if s.Service != gatewayService {
			continue
		}
		running += s.Running
		for _, r := range s.Replicas {
			if s.Serves && !r.Lacks {
				serving++
			}
		}
	}
	switch {
	case running == 0:
		return diagnosis.New(
			gatewayService, diagnosis.Healthy, "no gateway runs: the project has no HTTP API, and its issues, chats and pull requests are not served",
			"start forge-gateway if that is wanted",
		)
	case serving == 0:
		return diagnosis.New(
			gatewayService, diagnosis.Healthy, fmt.Sprintf("%s; no forge of project %s is watched: no issue becomes an intent, and no pull request is opened",
				render.Count(running, "replica"), t.Project),
			"name the project in the rules or in pull_requests of forges.yaml if that is wanted",
		)
	}
	what := fmt.Sprintf("%s, of which %d watch a forge of project %s", render.Count(running, "replica"), serving, t.Project)
	return diagnosis.New(gatewayService, diagnosis.Healthy, what, "")
}

// replicasOf returns the replicas of an answer, a row each. The order is that of the
// answer, in which the replicas of a service follow one another; checkTwice relies on that.
func replicasOf(answer *requests.Services) []Replica {
	var rows []Replica
	for i := range answer.Services {
		s := &answer.Services[i]
		for _, r := range s.Replicas {
			projects := []forge.ProjectID{}
			if s.Serves && !r.Lacks {
				projects = append(projects, answer.Project)
			}
			rows = append(rows, Replica{
				Service: s.Service, Replica: r.Replica, Group: s.Group, Version: r.Version, Projects: projects, Agents: r.Agents, Started: r.Started,
				Executor: (*executor)(r.Executor), Unwell: (*unwell)(r.Unwell),
			})
		}
	}
	return rows
}

// checkLacks names the replicas that do not have the project, although others of
// their service and group do. Work goes to any replica of the group, so that one
// which lacks the project fails now and then, and nothing else would show why.
func checkLacks(t *target.Target, answer *requests.Services) []diagnosis.Finding {
	var found []diagnosis.Finding
	for i := range answer.Services {
		s := &answer.Services[i]
		for _, r := range s.Replicas {
			if !r.Lacks || s.Service == runner || s.Service == gatewayService { // gateways may have forges of their own
				continue
			}
			found = append(found, diagnosis.New(
				s.Service, diagnosis.Broken, fmt.Sprintf("%s does not serve %s, which other copies do: commands of these projects fail there", r.Replica, t.Project),
				"give every copy of forge-"+s.Service+" the same projects, or groups (--project-group, --group)",
			))
		}
	}
	return found
}

// checkTwice names the replicas whose id two processes have.
// Only neighbours are compared: the replicas of a service and group are sorted by their ids.
func checkTwice(replicas []Replica) []diagnosis.Finding {
	var found []diagnosis.Finding
	for i := 1; i < len(replicas); i++ {
		a, b := &replicas[i-1], &replicas[i]
		if a.Service == b.Service && a.Replica == b.Replica {
			found = append(found, diagnosis.New(
				a.Service, diagnosis.Warning, fmt.Sprintf("two processes are replica %s: they take each other's work", a.Replica),
				"give each copy a name of its own with --replica",
			))
		}
	}
	return found
}

// checkVersions names the versions that run beside each other.
// Different versions work together, so it is a warning, and gone when an update is through.
func checkVersions(replicas []Replica) []diagnosis.Finding {
	count := map[string]int{}
	for i := range replicas {
		count[replicas[i].Version]++
	}
	if len(count) < 2 {
		return nil
	}
	var each []string
	for _, v := range slices.Sorted(maps.Keys(count)) {
		each = append(each, fmt.Sprintf("%s (%s)", v, render.Count(count[v], "replica")))
	}
	detail := term.Short("versions differ: "+strings.Join(each, ", "), 400)
	return []diagnosis.Finding{diagnosis.New("versions", diagnosis.Warning, detail, "this is all right while services are replaced one after the other")}
}

// PrintReplicas prints a table of replicas, if there are any.
// It goes to standard output, below the findings. Times are those of this machine's zone.
func PrintReplicas(a *kit.App, replicas []Replica) error {
	if len(replicas) == 0 {
		return nil
	}
	columns := render.Columns{Header: []string{"SERVICE", "REPLICA", "VERSION", "PROJECTS", "AGENTS", "EXECUTOR", "STARTED"}, Shrink: 3, Also: 2}
	for i := range replicas {
		r := &replicas[i]
		projects, started := connect.Listed(r.Projects), ""
		if r.Service == runner {
			projects = "all"
		}
		if !r.Started.IsZero() {
			started = r.Started.Local().Format(time.DateTime)
		}
		columns.Add(r.Service, string(r.Replica), r.Version, projects, strings.Join(r.Agents, ", "), r.Executor.String(), started)
	}
	fmt.Fprintln(a.Out)
	return a.Table(&columns)
}
