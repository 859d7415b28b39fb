package work

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// defaultLimit bounds the commands of a step that are under way at the same time.
const defaultLimit = 1000

// Config says which commands a replica of a worker takes.
type Config struct {
	// Step and Replica are required.
	Step    forge.Step
	Replica forge.ReplicaID
	// Group is the replica's; empty: it serves the projects without one.
	Group subjects.Group
	// Parallel bounds the commands at the same time in this replica; 0 means 1.
	Parallel int
	// Limit bounds the commands at the same time in all replicas; 0 means
	// defaultLimit.
	Limit int
	// Drain, when closed, ends the taking of commands. Consume returns
	// when those that were taken are done with.
	Drain <-chan struct{}
}

// Job is a command that a worker has taken. While its handler runs, the bus
// keeps telling the server so.
type Job struct {
	Command forge.Command
	// Attempt counts from 1; more than 1 means that the command was taken
	// before, and not finished.
	Attempt int
	// IssuedAt is when the server stored the command first, for the workers or
	// to wait for its turn.
	IssuedAt time.Time
	commands *Commands
	// ack is the subject on which the server is told about the command.
	ack string
	// free gives the job's slot to the next command, once.
	free func()
}

// Commands gives the commands of a step to the replicas of its worker.
type Commands struct {
	conn    *conn.Conn
	journal *journal.Journal
	results *Results
	leases  *Leases
}

// NewCommands returns the Commands of a connection.
func NewCommands(c *conn.Conn, j *journal.Journal, rs *Results, ls *Leases) *Commands {
	return &Commands{conn: c, journal: j, results: rs, leases: ls}
}

// Free lets the next command begin while this one's handler goes on: the agent
// has ended, and it only waits for a runner to decide on the result. It may be
// called again.
func (j *Job) Free() { j.free() }

// Wanted reports whether the command's result would still be decided on, as the
// journal says. A handler asks before it starts an agent, and now and then
// while one runs.
func (j *Job) Wanted(ctx context.Context) (bool, error) {
	return j.commands.journal.Wanted(ctx, j.Command.To, j.Command.Attempt)
}

// Consume gives a handler the commands of a step: those for any replica, and those for this
// one, unless all commands of the step are for anyone. It returns when Drain is closed, or
// ctx ended, and the last handler has returned. The end of ctx reaches the handlers.
//
// With nil, returned when the result is published, a command is done with. With
// any error it comes again, to any replica that may take it: after a while with
// Retry, after a second otherwise, at once if ctx has ended. With Terminate it
// goes to the dead letters, and a failure is reported in its place.
func (cs *Commands) Consume(ctx context.Context, cfg Config, handle func(context.Context, *Job) error) error {
	if cfg.Parallel == 0 {
		cfg.Parallel = 1
	}
	if cfg.Limit == 0 {
		cfg.Limit = defaultLimit
	}
	if _, err := forge.ParseReplicaID(string(cfg.Replica)); err != nil {
		return fmt.Errorf("consume commands: %w", err)
	}
	anyone := subjects.ForAnyone(cfg.Step)
	if anyone {
		cfg.Group = ""
	}
	shared, err := commandConsumer(cfg.Step, cfg.Group, "", cfg.Limit)
	if err != nil {
		return fmt.Errorf("consume commands: %w", err)
	}
	own, err := commandConsumer(cfg.Step, cfg.Group, cfg.Replica, cfg.Limit)
	if err != nil {
		return fmt.Errorf("consume commands: %w", err)
	}
	w := &worker{commands: cs, cfg: cfg, handle: handle, slots: make(chan struct{}, cfg.Parallel), untaken: make(chan struct{})}
	taking, stop := context.WithCancel(ctx)
	defer stop()
	if cfg.Drain != nil {
		go func() {
			select {
			case <-cfg.Drain:
				stop()
			case <-taking.Done():
			}
		}()
	}
	var pulls sync.WaitGroup
	if !anyone {
		pulls.Go(func() {
			cs.conn.Pull(taking, conn.Source{Stream: streams.Commands, Config: own, Ahead: 1}, func(m jetstream.Msg) { w.takeOwn(ctx, taking.Done(), m) })
		})
	}
	pulls.Go(func() {
		src := conn.Source{Stream: streams.Commands, Config: shared, Ahead: 1, Made: anyone}
		cs.conn.Pull(taking, src, func(m jetstream.Msg) { w.takeShared(ctx, taking.Done(), m) })
	})
	pulls.Wait()
	close(w.untaken)
	w.running.Wait()
	return nil
}

// Ensure makes those consumers that are missing which the replicas of each step's worker
// share, in each group and outside of all, as the workers themselves would: what scales workers
// by the commands that wait for them can count those of a worker that has never run.
func (cs *Commands) Ensure(ctx context.Context, groups subjects.Groups) error {
	all := slices.Sorted(maps.Values(groups))
	for _, group := range slices.Compact(append([]subjects.Group{""}, all...)) {
		for _, step := range forge.Steps() {
			if group != "" && subjects.ForAnyone(step) {
				continue
			}
			shared, err := commandConsumer(step, group, "", defaultLimit)
			if err == nil {
				_, err = cs.conn.EnsureConsumer(ctx, conn.Source{Stream: streams.Commands, Config: shared})
			}
			if err != nil {
				return fmt.Errorf("ensure the consumer of step %s: %w", step, err)
			}
		}
	}
	return nil
}

// Ready returns nil when commands of a step can reach a replica: its consumer
// and the one that all replicas of its group share are there.
func (cs *Commands) Ready(ctx context.Context, step forge.Step, group subjects.Group, replica forge.ReplicaID) error {
	ctx, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
	defer cancel()
	replicas := []forge.ReplicaID{"", replica}
	if subjects.ForAnyone(step) {
		group, replicas = "", replicas[:1]
	}
	for _, r := range replicas {
		cfg, err := commandConsumer(step, group, r, 0)
		if err != nil {
			return err
		}
		if _, err := cs.conn.Consumer(ctx, streams.Commands, cfg.Durable); err != nil {
			return fmt.Errorf("consumer %s: %w", cfg.Durable, err)
		}
	}
	return nil
}

// commandConsumer returns the consumer that all replicas of a step share, outside of all groups
// or in one; with a replica, that replica's own, which the server forgets some time after the
// replica is gone.
func commandConsumer(step forge.Step, group subjects.Group, replica forge.ReplicaID, limit int) (jetstream.ConsumerConfig, error) {
	filter, err := subjects.CommandsFor(step, group, replica)
	cfg := jetstream.ConsumerConfig{
		Durable:       string(step),
		FilterSubject: filter,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       streams.AckWait,
		MaxDeliver:    -1,
		MaxAckPending: limit,
	}
	if replica == "" && group != "" {
		cfg.Durable += "-in-" + string(group)
	}
	if replica != "" {
		cfg.Durable += "-on-" + string(replica)
		cfg.InactiveThreshold = streams.ForgetReplica
	}
	return cfg, err
}
