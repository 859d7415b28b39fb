package auditlog

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/services/runner/audit"
)

// collection collects the lines of an export.
type collection struct {
	*audit.Reader

	// wants reports whether the time of a decision is asked for.
	wants func(at time.Time) bool
	// lines are in the order in which they were read.
	lines []audit.Line
}

// add adds the events of a record.
func (c *collection) add(e *journal.Entry) error {
	for _, l := range c.Add(e) {
		if c.wants(l.Event.Time) {
			c.lines = append(c.lines, l)
		}
	}
	return nil
}

// export prints the events of a scope.
//
// The lines are kept until all journals are read, since only then their order is
// known. since is part of the time that is asked for, until is not. Records of a
// newer version are counted and left out. Journals that are not whole are printed
// all the same, and make the exit code kit.ExitError: an audit needs what there is.
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
	c := collection{Reader: audit.NewReader(key), wants: func(at time.Time) bool { return !at.Before(since) && (until.IsZero() || at.Before(until)) }}
	if err := t.Bus.Journal.Each(ctx, key, c.add); err != nil {
		return err
	}
	if key.Intent != "" {
		if !c.Has(key) {
			return fmt.Errorf("project %s has no intent %s", key.Project, key.Intent)
		}
		c.lines = slices.DeleteFunc(c.lines, func(l audit.Line) bool { return l.Event.Data.Intent != key.Intent })
	}
	if err := c.print(a); err != nil {
		return err
	}
	if c.Newer > 0 {
		a.Say("%d records of a newer version are left out; export with that version", c.Newer)
	}
	for _, f := range c.Chains.Findings() {
		if f.Breaks() {
			a.Say("the journals are not whole, such as %s message %d: %s; see `pfl-forge audit-log verify`", kit.Safe(f.Journal), f.Seq, kit.Safe(f.Detail))
			return kit.ExitError
		}
	}
	return nil
}

// print prints the lines in the order of the decisions. Every line is JSON in ASCII:
// texts of others steer no terminal, whatever they hold (TestExportSteersNoTerminal).
func (c *collection) print(a *kit.App) error {
	slices.SortFunc(c.lines, func(x, y audit.Line) int { return audit.Compare(x.Place, y.Place) })
	out := bufio.NewWriter(a.Out)
	for i := range c.lines {
		text, err := json.Marshal(&c.lines[i].Event)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(term.ASCII(text), '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}
