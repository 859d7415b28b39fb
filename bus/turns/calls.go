package turns

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// calls counts the calls of projects for one round, where they are bounded.
type calls struct {
	turns *Turns
	// bound is that of each project; 0: nothing is counted.
	bound int
	// seen has how many there were of each project at the beginning of the round. It may be
	// too many by now, and where others move commands too few: who has the turn counts again.
	seen map[forge.ProjectID]int
	// mine are the turns that this process took in the round.
	mine map[forge.ProjectID]*turn
}

// turn is the right to move commands of one project on.
type turn struct {
	// mark is the sequence of the mark that makes it this process's. The server
	// stores no command with an older one.
	mark uint64
	// there are the commands at the workers, as they were when the mark was there or later.
	there map[string]bool
	// lost says that another process has the turn now.
	lost bool
}

// count counts the calls of all projects. Without a bound nothing is counted.
func (t *Turns) count(ctx context.Context) (*calls, error) {
	_, bound := t.settings()
	c := &calls{turns: t, bound: bound, seen: map[forge.ProjectID]int{}, mine: map[forge.ProjectID]*turn{}}
	if bound == 0 {
		return c, nil
	}
	return c, t.atWorkers(ctx, subjects.EveryAtWorkers(), func(cmd *forge.Command, _ string) { c.seen[cmd.To.Project]++ })
}

// atWorkers lists the calls among the commands that filters match.
func (t *Turns) atWorkers(ctx context.Context, filters []string, do func(c *forge.Command, subject string)) error {
	for _, filter := range filters {
		list, err := t.list(ctx, filter)
		if err != nil {
			return fmt.Errorf("count calls: %w", err)
		}
		for _, subject := range list {
			if c, err := subjects.ParseCommand(subject); err == nil && Takes(c.Attempt.Step) {
				do(&c, subject)
			}
		}
	}
	return nil
}

// full reports whether no command of a project may be moved on in this round.
func (c *calls) full(project forge.ProjectID) bool {
	if c.bound == 0 {
		return false
	}
	if t := c.mine[project]; t != nil {
		return t.lost || len(t.there) >= c.bound
	}
	return c.seen[project] >= c.bound
}

// store stores a command for the workers, if it is not there.
func (c *calls) store(ctx context.Context, project forge.ProjectID, m *nats.Msg) (outcome, uint64, error) {
	if c.bound == 0 {
		m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, "0")
		seq, err := publish(ctx, c.turns.conn, m)
		return outcomeOf(seq, isEmpty), seq, err
	}
	t, err := c.take(ctx, project)
	if err != nil || t.there[m.Subject] {
		return isEmpty, 0, err
	}
	if len(t.there) >= c.bound {
		return isFull, 0, nil
	}
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, fmt.Sprint(t.mark))
	m.Header.Set(jetstream.ExpectedLastSubjSeqSubjHeader, subjects.Turn(project))
	seq, err := publish(ctx, c.turns.conn, m)
	if seq > 0 {
		t.there[m.Subject] = true
	}
	// Also after an error: the command may be stored, so nothing is sure any
	// more before the next count.
	t.lost = seq == 0
	return outcomeOf(seq, isFull), seq, err
}

// outcomeOf is moves for a message that was stored with a sequence.
func outcomeOf(seq uint64, otherwise outcome) outcome {
	if seq > 0 {
		return moves
	}
	return otherwise
}

// take takes the turn of a project for this round. Whoever had it before can
// store nothing any more; what it stored is counted.
func (c *calls) take(ctx context.Context, project forge.ProjectID) (*turn, error) {
	if t := c.mine[project]; t != nil {
		return t, nil
	}
	m, err := c.turns.conn.Message(subjects.Turn(project), nil)
	if err != nil {
		return nil, err
	}
	ack, err := c.turns.conn.Publish(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("take the turn of project %s: %w", project, err)
	}
	t := &turn{mark: ack.Sequence, there: map[string]bool{}}
	err = c.turns.atWorkers(ctx, subjects.AtWorkers(project), func(_ *forge.Command, subject string) { t.there[subject] = true })
	if err != nil {
		return nil, err
	}
	// Marks are messages that no one takes, so older ones are removed.
	var done struct{}
	older := map[string]any{"filter": subjects.Turn(project), "keep": 1}
	if err := c.turns.conn.API(ctx, "STREAM.PURGE."+streams.Commands, older, &done); err != nil {
		return nil, err
	}
	c.mine[project] = t
	return t, nil
}
