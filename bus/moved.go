package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// withdrawMoved removes the commands that are for another group than that of their project now:
// no replica that has the project would take them. It reports whether there were any; whoever
// issues commands then issues them again. What a replica has begun already goes on under its
// lease, and its result counts.
func (b *Bus) withdrawMoved(ctx context.Context) (bool, error) {
	filter := subjects.InGroups
	if len(b.groups) > 0 {
		filter = subjects.EveryCommand
	}
	var there map[string]uint64
	err := conn.Patiently(ctx, func(ctx context.Context) error {
		s, err := b.conn.JS.Stream(ctx, streams.Commands)
		if err != nil {
			return err
		}
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
		if err == nil {
			there = info.State.Subjects
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("look for commands of projects that have moved: %w", err)
	}
	moved := false
	for subject := range there {
		c, err := subjects.ParseCommand(subject)
		if err != nil || c.Replica != "" {
			continue // of a newer version, or for one replica, whatever its group
		}
		if now, err := b.groups.Command(&c); err != nil || now == subject {
			continue
		}
		var done struct{}
		if err := b.conn.API(ctx, "STREAM.PURGE."+streams.Commands, map[string]string{"filter": subject}, &done); err != nil {
			return moved, fmt.Errorf("withdraw a command of project %s, which has moved to another group: %w", c.To.Project, err)
		}
		moved = true
	}
	return moved, nil
}
