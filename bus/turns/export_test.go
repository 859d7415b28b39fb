package turns

import (
	"context"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Believe has the process believe, since a look that was long ago, that so many
// commands may be stored for the workers of a line.
func (t *Turns) Believe(line subjects.Line, room int) {
	l := t.view(line)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.room, l.away = room, least
}

// Take takes the turn of a project, and returns a function that stores a
// message for the workers as who has it, and reports whether it was stored.
func (t *Turns) Take(ctx context.Context, project forge.ProjectID) (store func(subject string) (bool, error), err error) {
	c, err := t.count(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := c.take(ctx, project); err != nil {
		return nil, err
	}
	return func(subject string) (bool, error) {
		m, err := t.conn.Message(subject, []byte("x"))
		if err != nil {
			return false, err
		}
		did, _, err := c.store(ctx, project, m)
		return did == moves, err
	}, nil
}

// Held has a command wait for its turn, whatever there is room for.
func (t *Turns) Held(ctx context.Context, c *forge.Command) error {
	subject, err := t.groups.Hold(c)
	if err != nil {
		return err
	}
	t.view(t.groups.LineOf(c)).add(c.To.Project)
	m, err := t.conn.Message(subject, []byte("x"))
	if err != nil {
		return err
	}
	_, err = t.conn.Publish(ctx, m)
	return err
}

// LookBy has a line looked at by the connection of another process.
func (t *Turns) LookBy(line subjects.Line, other *Turns) { t.view(line).conn = other.conn }

// Round moves commands on once.
func (t *Turns) Round(ctx context.Context) (int, error) { return t.round(ctx) }

// Waiting returns the subjects of all commands that wait for their turn.
func (t *Turns) Waiting(ctx context.Context) ([]string, error) {
	return t.list(ctx, subjects.EveryHeld)
}
