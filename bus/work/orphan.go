package work

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Unattended returns the commands of a step that are addressed to other
// replicas than this one, and on which no replica works just now: a replica may
// not have got there yet, or be gone for good. The commands stay where they
// are: a Job of the list is carried out, but not taken.
func (cs *Commands) Unattended(ctx context.Context, step forge.Step, me forge.ReplicaID) ([]*Job, error) {
	if subjects.ForAnyone(step) {
		return nil, nil
	}
	waiting, err := cs.addressed(ctx, step)
	if err != nil {
		return nil, fmt.Errorf("look for commands without a worker: %w", err)
	}
	var list []*Job
	for s := range waiting {
		c, err := subjects.ParseCommand(s)
		if err != nil || c.Replica == me {
			continue
		}
		attended, err := cs.leases.attended(ctx, &c)
		if err != nil {
			return nil, err
		}
		if attended {
			continue
		}
		m, err := cs.conn.Last(ctx, streams.Commands, s)
		if errors.Is(err, conn.ErrNotFound) {
			continue // its intent has ended
		}
		if err != nil {
			return nil, err
		}
		if c, err = wire.ParseCommand(s, m.Data); err == nil && !m.Relayed { // what cannot be read is for the replica to tell
			list = append(list, &Job{Command: c, Attempt: 1, commands: cs, free: func() {}})
		}
	}
	return list, nil
}

// addressed returns the subjects of the commands of a step that are for one
// replica.
func (cs *Commands) addressed(ctx context.Context, step forge.Step) (map[string]uint64, error) {
	filter, err := subjects.CommandsFor(step, "", "")
	if err != nil {
		return nil, err
	}
	filter = filter[:len(filter)-len("any.>")] + "on.>"
	var subjects map[string]uint64
	err = conn.Patiently(ctx, func(ctx context.Context) error {
		s, err := cs.conn.JS.Stream(ctx, streams.Commands)
		if err != nil {
			return err
		}
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
		if err == nil {
			subjects = info.State.Subjects
		}
		return err
	})
	return subjects, err
}

// attended reports whether a replica has the lease on what a command is about.
func (ls *Leases) attended(ctx context.Context, c *forge.Command) (bool, error) {
	subject, err := subjects.Lease(c.To, c.Attempt.Task, c.Attempt.Step)
	if err != nil {
		return false, err
	}
	l := &Lease{leases: ls, subject: subject}
	free, err := l.look(ctx, LeaseHolder{})
	return !free, err
}
