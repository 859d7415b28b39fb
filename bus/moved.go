package bus

import (
	"context"
	"fmt"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// withdrawMoved removes the commands that are for another group than that of their project now:
// no replica that has the project would take them. It reports whether there were any; whoever
// issues commands then issues them again. What a replica has begun already goes on under its
// lease, and its result counts.
func (b *Bus) withdrawMoved(ctx context.Context) (bool, error) {
	filters := []string{subjects.InGroups, subjects.EveryHeld}
	if len(b.groups) > 0 {
		filters = []string{subjects.EveryCommand}
	}
	var there []string
	for _, filter := range filters {
		list, err := b.conn.Subjects(ctx, streams.Commands, filter)
		if err != nil {
			return false, fmt.Errorf("look for commands of projects that have moved: %w", err)
		}
		there = append(there, list...)
	}
	moved := false
	for _, subject := range there {
		c, now, err := b.placeOf(subject)
		if err != nil || now == subject {
			continue // of a newer version, for one replica, whatever its group, or where it belongs
		}
		var done struct{}
		if err := b.conn.API(ctx, "STREAM.PURGE."+streams.Commands, map[string]string{"filter": subject}, &done); err != nil {
			return moved, fmt.Errorf("withdraw a command of project %s, which has moved to another group: %w", c.To.Project, err)
		}
		moved = true
	}
	return moved, nil
}

// placeOf returns the subject on which the command belongs that is stored on
// one, at the workers or waiting for its turn.
func (b *Bus) placeOf(subject string) (c forge.Command, now string, err error) {
	if _, c, err = subjects.ParseHeld(subject); err == nil {
		now, err = b.groups.Hold(&c)
		return c, now, err
	}
	if c, err = subjects.ParseCommand(subject); err != nil || c.Replica != "" {
		return c, subject, err
	}
	now, err = b.groups.Command(&c)
	return c, now, err
}
