package auditlog

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// line is an event with its place in the order of decisions.
type line struct {
	// decided is the time of the decision, and not before that of any record before it in its stream:
	// the clocks of two runners may differ, and the order of a journal counts.
	decided time.Time
	// intent says that it is of the stream of the intents' journals, and not of the projects'.
	intent int
	// event is the whole CloudEvent.
	event changes.CloudEvent[Event]
}

// export prints the events of a scope.
func export(ctx context.Context, a *kit.App, s scope, f *exportFlags) error {
	now := time.Now()
	since, err := kit.ParseSince(f.since, now)
	if err != nil {
		return kit.Usage(fmt.Errorf("--since: %w", err))
	}
	until, err := kit.ParseSince(f.until, now)
	if err != nil {
		return kit.Usage(fmt.Errorf("--until: %w", err))
	}
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	if t.Bus == nil {
		a.Say("no intents yet")
		return nil
	}
	key := s.key(t)
	c := collection{audit: newAudit(key), wants: func(at time.Time) bool { return !at.Before(since) && (until.IsZero() || at.Before(until)) }}
	if err := t.Bus.Journal.Each(ctx, key, c.add); err != nil {
		return err
	}
	if key.Intent != "" {
		if !c.seen[key.Intent] {
			return fmt.Errorf("project %s has no intent %s", key.Project, key.Intent)
		}
		c.lines = slices.DeleteFunc(c.lines, func(l line) bool { return l.event.Data.Intent != key.Intent })
	}
	if err := c.print(a); err != nil {
		return err
	}
	if c.newer > 0 {
		a.Say("%d records of a newer version are left out; export with that version", c.newer)
	}
	for _, f := range c.audit.Findings() {
		if f.Breaks() {
			a.Say("the journals are not whole, such as %s message %d: %s; see `pfl-forge audit-log verify`", kit.Safe(f.Journal), f.Seq, kit.Safe(f.Detail))
			return kit.ExitError
		}
	}
	return nil
}

// print prints the lines in the order of the decisions.
func (c *collection) print(a *kit.App) error {
	slices.SortStableFunc(c.lines, func(x, y line) int {
		return cmp.Or(x.decided.Compare(y.decided), cmp.Compare(x.intent, y.intent))
	})
	out := bufio.NewWriter(a.Out)
	for i := range c.lines {
		text, err := json.Marshal(&c.lines[i].event)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(term.ASCII(text), '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}
