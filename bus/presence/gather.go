package presence

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/nats-io/nuid"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Whoever may listen on $SRV.> can answer, with anything. So that no answer does harm, all
// of them are bounded, and what is no id is left out.
const (
	maxAnswers  = 2000      // that are looked at
	maxAnswer   = 128 << 10 // bytes of one
	maxBytes    = 32 << 20  // of all
	maxProjects = 5000      // of a replica
	maxNames    = 1_000_000 // of projects, of all
	maxAgents   = 50        // of a replica
	maxVersion  = 100       // characters
	maxReason   = 300       // characters
)

// Gather asks all replicas who they are, and returns those that answer before ctx ends or
// enough, which may be nil, returns true for one of them: by service, id and start, each
// process once. An empty list is no error.
func (s *Services) Gather(ctx context.Context, enough func(*Replica) bool) ([]Replica, error) {
	subject, err := micro.ControlSubject(micro.InfoVerb, "", "")
	if err != nil {
		return nil, err
	}
	inbox := access.PresenceInbox() + "." + nuid.Next() // services may answer there, and in no other inbox of a runner
	var list []Replica
	err = s.conn.Permitted(ctx, inbox, func(ctx context.Context) error {
		list, err = s.ask(ctx, subject, inbox, enough)
		return err
	})
	if err != nil {
		return nil, err
	}
	return once(list), nil
}

// ask asks on a subject and returns the answers that come to an inbox, until enough says so
// or ctx ends.
func (s *Services) ask(ctx context.Context, subject, inbox string, enough func(*Replica) bool) ([]Replica, error) {
	sub, err := s.conn.NC.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("gather services: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := sub.SetPendingLimits(maxAnswers, maxBytes); err != nil {
		return nil, fmt.Errorf("gather services: %w", err)
	}
	var list []Replica
	err = s.conn.Permitted(ctx, subject, func(ctx context.Context) error {
		if err := s.conn.NC.PublishRequest(subject, inbox, nil); err != nil {
			return err
		}
		names := 0
		for n, size := 0, 0; n < maxAnswers && size < maxBytes && names < maxNames; n++ {
			m, err := sub.NextMsgWithContext(ctx)
			if errors.Is(err, nats.ErrSlowConsumer) {
				continue // some answers are lost
			}
			if err != nil {
				return err
			}
			if m.Header.Get("Status") == "503" {
				return nats.ErrNoResponders
			}
			size += len(m.Data)
			r, ok := read(m.Data)
			if !ok {
				continue
			}
			names += len(r.Projects)
			list = append(list, r)
			if enough != nil && enough(&r) {
				return nil
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, conn.ErrNotAllowed):
		return nil, err
	case err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("gather services: %w", err)
	}
	return list, nil
}

// once sorts replicas and removes those that are the same process.
func once(list []Replica) []Replica {
	order := func(a, b Replica) int {
		return cmp.Or(strings.Compare(a.Service, b.Service), strings.Compare(string(a.ID), string(b.ID)), a.Started.Compare(b.Started),
			len(b.Agents)-len(a.Agents))
	}
	slices.SortStableFunc(list, order)
	return slices.CompactFunc(list, func(a, b Replica) bool {
		return a.Service == b.Service && a.ID == b.ID && a.Started.Equal(b.Started)
	})
}

// name matches the names that services and agents may have.
var name = pattern.New(`^[a-z][a-z0-9-]{0,39}$`)

// image and runtimeClass match less than Kubernetes takes for them, and no text for people.
var (
	image        = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$`)
	runtimeClass = pattern.New(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
)

// readExecutor returns the executor that metadata describes, with the fields that its kind has,
// or a zero one if metadata names none of the known executors.
func readExecutor(metadata map[string]string) (e Executor) {
	switch name := forge.Executor(metadata[metaExecutor]); name {
	case forge.ExecutorPods:
		if s := metadata[metaImage]; image.MatchString(s) {
			e.Image = s
		}
		if s := metadata[metaRuntimeClass]; runtimeClass.MatchString(s) {
			e.RuntimeClass = s
		}
		e.Name = name
	case forge.ExecutorNamespaces:
		e.Name = name
	case forge.ExecutorNone:
		e.Name, e.Reason = name, term.Short(metadata[metaReason], maxReason)
	default:
		return e
	}
	e.Required = metadata[metaRequired] == "true"
	return e
}

// isService reports whether a name is that of one of our services.
func isService(name string) bool {
	return name == runner || slices.ContainsFunc(forge.Steps(), func(s forge.Step) bool { return s.Service() == name })
}

// read returns the replica that an answer describes, without what it cannot truly say. It
// is not ok if the answer is of another program's service, or none at all.
func read(data []byte) (r Replica, ok bool) {
	var info struct {
		Name     string            `json:"name"`
		Metadata map[string]string `json:"metadata"`
	}
	if len(data) > maxAnswer || json.Unmarshal(data, &info) != nil {
		return r, false
	}
	service, ours := strings.CutPrefix(info.Name, namePrefix)
	id, err := forge.ParseReplicaID(info.Metadata[metaReplica])
	if !ours || !isService(service) || err != nil {
		return r, false
	}
	r = Replica{Service: service, ID: id, Version: term.Short(info.Metadata[metaVersion], maxVersion), Executor: readExecutor(info.Metadata)}
	if group, err := subjects.ParseGroup(info.Metadata[metaGroup]); err == nil {
		r.Group = group
	}
	if at, err := time.Parse(time.RFC3339Nano, info.Metadata[metaStarted]); err == nil {
		r.Started = at.UTC()
	}
	r.readHealth(info.Metadata)
	if n, err := strconv.Atoi(info.Metadata[metaRules]); err == nil && n > 0 && service == runner {
		r.Rules = rules.Version(n)
	}
	r.Together = service == runner && info.Metadata[metaTogether] == "true"
	r.Settings = service == runner && info.Metadata[metaSettings] == "true"
	for text := range strings.SplitSeq(info.Metadata[metaProjects], ",") {
		if p, err := forge.ParseProjectID(text); err == nil && len(r.Projects) < maxProjects {
			r.Projects = append(r.Projects, p)
		}
	}
	slices.Sort(r.Projects)
	r.Projects = slices.Compact(r.Projects)
	for text := range strings.SplitSeq(info.Metadata[metaAgents], ",") {
		if name.MatchString(text) && len(r.Agents) < maxAgents {
			r.Agents = append(r.Agents, text)
		}
	}
	return r, true
}

// readHealth takes why the replica is not well, and since when. A time that
// cannot be read stays zero.
func (r *Replica) readHealth(metadata map[string]string) {
	if r.Unwell = term.Short(metadata[metaUnwell], maxReason); r.Unwell == "" {
		return
	}
	if at, err := time.Parse(time.RFC3339, metadata[metaSince]); err == nil {
		r.Since = at.UTC()
	}
}
