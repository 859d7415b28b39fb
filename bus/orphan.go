package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
)

// Unattended returns the commands of a step that are addressed to other replicas than
// this one, and on which nobody works just now: a replica may not have got there yet,
// or be gone for good. Nobody else is told that they are done with.
func (b *Bus) Unattended(ctx context.Context, step forge.Step, me forge.ReplicaID) ([]*Job, error) {
	subjects, err := b.addressed(ctx, step)
	if err != nil {
		return nil, fmt.Errorf("look for commands that nobody works on: %w", err)
	}
	var list []*Job
	for s := range subjects {
		c, err := parseCommandSubject(s)
		if err != nil || c.Replica == me {
			continue
		}
		attended, err := b.attended(ctx, &c)
		if err != nil {
			return nil, err
		}
		if attended {
			continue
		}
		m, err := b.last(ctx, streamCommands, s)
		if errors.Is(err, ErrNotFound) {
			continue // its intent has ended
		}
		if err != nil {
			return nil, err
		}
		if c, err = parseCommand(s, m.Data); err == nil { // what cannot be read is for the replica to tell
			list = append(list, &Job{Command: c, Attempt: 1, bus: b, free: func() {}})
		}
	}
	return list, nil
}

// addressed lists the subjects of the commands of a step that are for one replica.
func (b *Bus) addressed(ctx context.Context, step forge.Step) (map[string]uint64, error) {
	filter, err := commandsFor(step, "")
	if err != nil {
		return nil, err
	}
	filter = filter[:len(filter)-len("any.>")] + "on.>"
	var subjects map[string]uint64
	err = patiently(ctx, func(ctx context.Context) error {
		s, err := b.js.Stream(ctx, streamCommands)
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
func (b *Bus) attended(ctx context.Context, c *forge.Command) (bool, error) {
	subject, err := leaseSubject(c.To, c.Attempt.Task, c.Attempt.Step)
	if err != nil {
		return false, err
	}
	l := &Lease{bus: b, subject: subject}
	free, err := l.look(ctx, LeaseHolder{})
	return !free, err
}
