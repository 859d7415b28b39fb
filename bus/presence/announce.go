package presence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

const (
	// runner is the service whose replicas say which rules they know.
	runner = "runner"
	// namePrefix begins the names of services among a server's micro services.
	namePrefix = "pfl-forge-"
	// protocolVersion is of what an announcement says; a replica's own is in its metadata.
	protocolVersion = "1.0.0"
)

// The keys of an announcement's metadata.
const (
	metaReplica  = "replica"
	metaGroup    = "group"
	metaVersion  = "version"
	metaStarted  = "started"
	metaProjects = "projects"
	metaAgents   = "agents"
	metaRules    = "rules"
	metaTogether = "signed_together"
	metaSettings = "settings_told"
	metaUnwell   = "unwell"
	metaSince    = "unwell_since"

	metaExecutor     = "executor"
	metaImage        = "executor_image"
	metaRuntimeClass = "executor_runtime_class"
	metaReason       = "executor_reason"
	metaRequired     = "executor_required"
)

// Replica describes one running copy of a service, as it announces itself. It is a claim: any
// account that may listen as this service can make it, so nothing is decided by it that would let
// something in.
type Replica struct {
	Service string          // such as "reviewer"
	ID      forge.ReplicaID // the same after a restart
	Group   subjects.Group  // empty: it serves the projects without one
	Version string          // of the program, one line
	// Started tells two processes with the same id apart.
	Started  time.Time
	Projects []forge.ProjectID // that it works on; none of a runner, which takes all
	Agents   []string          // whose programs it has found
	Executor Executor          // of agents and commands; none of a runner
	Rules    rules.Version     // the newest that a runner knows, in an announcement by default that of this program; 0 of others, and where it is not said
	// Together says that a runner reads signatures over several messages. Each
	// of this program does.
	Together bool
	// Settings says that a runner reads a policy with its settings. Each of this program does.
	Settings bool
	// Unwell says why it can do no work, or not all, and since when that is so;
	// empty while it can. One line, in its own words.
	Unwell string
	Since  time.Time
}

// Executor says where a replica runs agents and commands, in its own words.
type Executor struct {
	// Name is empty where the replica runs none, or has not said.
	Name forge.Executor
	// Image and RuntimeClass are those of pods; no RuntimeClass: the cluster's own.
	Image, RuntimeClass string
	// Reason says why there is none; one line.
	Reason string
	// Required says that without one the replica refuses agents and commands.
	Required bool
}

// metadata adds the executor to the metadata of an announcement.
func (e *Executor) metadata(to map[string]string) {
	if e.Name == "" {
		return
	}
	to[metaExecutor], to[metaRequired] = string(e.Name), strconv.FormatBool(e.Required)
	to[metaImage], to[metaRuntimeClass], to[metaReason] = e.Image, e.RuntimeClass, e.Reason
}

// Services announces replicas, and finds those that others announce. It is safe for concurrent
// use.
type Services struct {
	conn *conn.Conn
}

// New returns the Services of a connection, which stays the caller's.
func New(c *conn.Conn) *Services {
	return &Services{conn: c}
}

// Announce makes a replica known to those who ask, until stop is called, which is not nil.
// With an error it may not be known before the connection is made anew; that this account
// lacks the right to listen is ErrNotAllowed.
func (s *Services) Announce(ctx context.Context, r Replica) (stop func(), err error) {
	projects := make([]string, len(r.Projects))
	for i, p := range r.Projects {
		projects[i] = string(p)
	}
	name := namePrefix + r.Service
	metadata := map[string]string{
		metaReplica: string(r.ID), metaGroup: string(r.Group), metaVersion: r.Version, metaStarted: r.Started.UTC().Format(time.RFC3339Nano),
		metaProjects: strings.Join(projects, ","), metaAgents: strings.Join(r.Agents, ","),
	}
	r.Executor.metadata(metadata)
	if r.Unwell != "" {
		metadata[metaUnwell], metadata[metaSince] = r.Unwell, r.Since.UTC().Format(time.RFC3339)
	}
	if r.Service == runner {
		metadata[metaRules] = strconv.Itoa(int(cmp.Or(r.Rules, rules.Newest)))
		metadata[metaTogether], metadata[metaSettings] = "true", "true"
	}
	svc, err := micro.AddService(s.conn.NC, micro.Config{
		Name: name, Version: protocolVersion, Description: "a running " + r.Service, Metadata: metadata,
	})
	if err != nil {
		return func() {}, fmt.Errorf("announce %s: %w", r.Service, err)
	}
	stop = func() {
		if err := svc.Stop(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			s.conn.Log.WarnContext(ctx, "cannot withdraw the announcement of this service", "error", err)
		}
	}
	if err := s.listens(ctx); err != nil {
		return stop, fmt.Errorf("announce %s: %w", r.Service, err)
	}
	return stop, nil
}

// listens returns nil if the server lets this account listen where micro services are asked. The
// server answers a subscription that it refuses with an error on the connection, and the flush is
// answered after that.
func (s *Services) listens(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
	defer cancel()
	if err := s.conn.NC.FlushWithContext(ctx); err != nil {
		return err
	}
	err := s.conn.NC.LastError()
	if errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `Subscription to "`+micro.APIPrefix) {
		return fmt.Errorf("%w: listening on %s.>", conn.ErrNotAllowed, micro.APIPrefix)
	}
	return nil
}
