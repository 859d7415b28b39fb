package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/jsonobject"
	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/bus/turns"
)

const (
	// gatherTime is how long services have to say that they are there. A project that none of
	// them names is called unknown after unknownTime, which is longer: a service that is only
	// slow must not make it so.
	gatherTime  = time.Second
	unknownTime = 2 * time.Second
	// gathersAtOnce bounds the requests for which services are asked at the same time. They
	// take long, so that it leaves room for others among requestsAtOnce.
	gathersAtOnce = requestsAtOnce / 2
	// servicesWait is how long the sender waits for a runner's answer.
	servicesWait = unknownTime + conn.RequestTimeout
	// maxListed bounds the replicas of an answer.
	maxListed = 2000
)

// Services answers the question which services run, and which of them serve a project. It names
// no other project: whoever asks may know of this one only.
type Services struct {
	Project forge.ProjectID `json:"project"`
	// Known says that the project has a journal, or that a service that runs now has it
	// among its projects. Its intents are accepted.
	Known bool `json:"known"`
	// Unproven says that the runner asks for no signatures: only permissions of
	// NATS say who sends what.
	Unproven bool `json:"unproven,omitempty"`
	// Turns says how many calls of the project wait for their turn at the workers; nil: none.
	Turns *turns.State `json:"turns,omitempty"`
	// Services are those that run, sorted; none if only known was asked for.
	Services []Service `json:"services,omitempty"`
}

// Service is one kind of service that runs, in one group of replicas or outside of all.
type Service struct {
	Service  string    `json:"service"`         // such as reviewer
	Group    string    `json:"group,omitempty"` // of replicas that serve a part of the projects
	Running  int       `json:"running"`         // how many replicas
	Serves   bool      `json:"serves"`          // whether one of its replicas has the project; a runner takes all
	Replicas []Replica `json:"replicas"`        // sorted by their ids
}

// Replica is one running copy of a service.
type Replica struct {
	Replica forge.ReplicaID `json:"replica"`
	Version string          `json:"version"`
	Started time.Time       `json:"started"`
	Agents  []string        `json:"agents,omitempty"` // whose programs it has found
	// Executor is where it runs agents and commands; nil of a runner, and of what does not say.
	Executor *Executor `json:"executor,omitempty"`
	// Lacks says that other replicas of the service and group have the project, and this one does
	// not: what it is given of it fails.
	Lacks bool `json:"lacks,omitempty"`
	// Unwell says why it can do no work now, or not all; nil while it can.
	Unwell *Unwell `json:"unwell,omitempty"`
}

// Unwell is a failure of a replica, as it says itself.
type Unwell struct {
	Why   string    `json:"why"`   // one line
	Since time.Time `json:"since"` // when it noticed
}

// Executor is where a replica runs agents and commands, as it says itself.
type Executor struct {
	Name         forge.Executor `json:"name"`                    // pods, namespaces or none
	Image        string         `json:"image,omitempty"`         // of pods
	RuntimeClass string         `json:"runtime_class,omitempty"` // of pods; empty: the cluster's own
	Reason       string         `json:"reason,omitempty"`        // why there is none
	// Required says that without one it refuses agents and commands.
	Required bool `json:"required,omitempty"`
}

// ErrRunnerDown says that no runner answers now.
var ErrRunnerDown = conn.ErrRunnerDown

// ErrNotAllowed says that the server does not let this account do something.
var ErrNotAllowed = conn.ErrNotAllowed

// Services asks a runner, in the name of a person, which services run. With brief,
// Services of the answer is left out, and so it comes as soon as it is sure whether the
// project is known. Errors: ErrRunnerDown, which comes at once, and ErrNotAllowed, with
// the subject.
func (ss *Submissions) Services(ctx context.Context, project forge.ProjectID, person string, brief bool) (Services, error) {
	answer, err := ss.services(ctx, project, person, brief)
	if err != nil {
		return answer, fmt.Errorf("ask which services run: %w", err)
	}
	return answer, nil
}

// services asks the runner of a project which services there are. Where no runner listens, the
// error is one of nats.go that says so.
func (ss *Submissions) services(ctx context.Context, project forge.ProjectID, person string, brief bool) (answer Services, err error) {
	subject, err := subjects.Asked(project, person, subjects.VerbServices)
	if err != nil {
		return answer, err
	}
	data, err := json.Marshal(servicesRequest{Brief: brief})
	if err != nil {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, servicesWait)
	defer cancel()
	m, err := ask(ctx, ss.conn, subject, data)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return answer, ErrRunnerDown
	case errors.Is(err, context.DeadlineExceeded):
		return answer, errors.New("no answer in time")
	case err != nil:
		return answer, err
	case m.Header.Get(micro.ErrorCodeHeader) != "":
		return answer, errors.New(conn.Said(m))
	}
	return answer, json.Unmarshal(m.Data, &answer)
}

// servicesRequest is how it is asked for.
type servicesRequest struct {
	Brief bool `json:"brief,omitempty"`
}

// services tells which services run.
func (e *endpoints) services(ctx context.Context, from subjects.Sender, r micro.Request) (any, error) {
	var brief bool
	err := readRequest(r.Data(), func(o *jsonobject.Object) {
		o.Read("brief", &brief, "true or false")
		o.Only("brief")
	})
	if err != nil {
		return nil, err
	}
	known, err := e.submissions.journal.Projects(ctx)
	if err != nil {
		return nil, err
	}
	answer := Services{Project: from.Project, Known: slices.Contains(known, from.Project), Unproven: e.cfg.Authors == nil}
	var list []presence.Replica
	if !brief || !answer.Known {
		if list, err = e.gather(ctx, &answer, brief); err != nil {
			return nil, err
		}
	}
	if !brief {
		answer.Services = grouped(list, answer.Project)
	}
	if answer.Known && e.cfg.Turns != nil {
		if answer.Turns, err = e.cfg.Turns(ctx, answer.Project); err != nil {
			return nil, err
		}
	}
	answer.bound(int(e.conn.NC.MaxPayload()))
	return answer, nil
}

// gateway is the service that stands before all projects.
const gateway = "gateway"

// gather returns the replicas that run, and notes whether the project is known to one.
func (e *endpoints) gather(ctx context.Context, answer *Services, brief bool) ([]presence.Replica, error) {
	defer e.gathers.Add(-1)
	if e.gathers.Add(1) > gathersAtOnce {
		return nil, &errCode{"500", []RefusedField{{Reason: "too many ask which services run; try again"}}}
	}
	most, known := unknownTime, answer.Known
	if known || !brief {
		most = gatherTime
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	list, err := presence.New(e.conn).Gather(ctx, func(r *presence.Replica) bool {
		// A gateway has the name of a project from its settings, and does no work on it.
		answer.Known = answer.Known || r.Service != gateway && slices.Contains(r.Projects, answer.Project)
		return brief && answer.Known
	})
	if errors.Is(err, ErrNotAllowed) {
		return nil, &errCode{"500", []RefusedField{{Reason: "the runner cannot see which services run: " + err.Error()}}}
	}
	return list, err
}

// grouped returns replicas by their service and group, and says of each whether
// it serves a project. Their other projects are left out.
func grouped(list []presence.Replica, asked forge.ProjectID) []Service {
	key := func(r *presence.Replica) string { return r.Service + " " + string(r.Group) }
	has := func(r *presence.Replica) bool { return slices.Contains(r.Projects, asked) }
	byName := map[string]*Service{}
	for i := range list {
		r := &list[i]
		s := byName[key(r)]
		if s == nil {
			s = &Service{Service: r.Service, Group: string(r.Group)}
			byName[key(r)] = s
		}
		s.Running++
		s.Serves = s.Serves || has(r)
	}
	for i := range list {
		r := &list[i]
		s := byName[key(r)]
		one := Replica{Replica: r.ID, Version: r.Version, Started: r.Started, Agents: r.Agents, Lacks: s.Serves && !has(r)}
		if in := Executor(r.Executor); in.Name != "" {
			one.Executor = &in
		}
		if r.Unwell != "" {
			one.Unwell = &Unwell{r.Unwell, r.Since}
		}
		s.Replicas = append(s.Replicas, one)
	}
	services := []Service{}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		services = append(services, *byName[name])
	}
	return services
}

// bound cuts the lists of an answer until a message of the server's holds it.
func (a *Services) bound(size int) {
	for most := maxListed; most > 0; most /= 2 {
		for i := range a.Services {
			s := &a.Services[i]
			s.Replicas = s.Replicas[:min(len(s.Replicas), most)]
		}
		if data, err := json.Marshal(a); err != nil || len(data) <= size {
			return
		}
	}
}
