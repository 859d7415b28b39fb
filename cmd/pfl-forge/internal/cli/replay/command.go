// Package replay is the command replay: it goes through the journal of an intent record by record.
//
// With --rules HEAD the events of each record are decided once more by the rules
// of this program, and differences are printed. It only reads: the right to read
// a journal is enough, and no runner is involved except to hand it over.
package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/complete"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/runner/report"
)

const help = `Go through the journal of an intent, record by record: which events were decided, in which
state that left the intent, which rules changed the flow, and what was sent because of it: to
workers, to other intents and the project, and as timers.

With --rules HEAD the same events are decided once more by the rules of this program, and each
record says where those would have decided otherwise. That is no damage: rules change. Nothing is
written and nobody is asked.`

// flags are those of the command. A bound of 0 is not given: numbers of records begin with 1.
type flags struct {
	// rules is empty, or HEAD: decide once more by the rules of this program.
	rules string
	// from and to are the numbers of the first and the last record that is shown, both included.
	from, to uint64
	format   render.Format
}

// Command returns the command replay.
func Command(a *kit.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:               "replay <intent>",
		Short:             "go through an intent's journal, and compare with today's rules",
		Long:              help,
		Example:           "  pfl-forge replay reset-link\n  pfl-forge replay reset-link --rules HEAD -o json",
		Args:              kit.Between(1, 1, "the id of an intent"),
		ValidArgsFunction: complete.Intents(a, complete.AnyIntent, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := kit.IntentIDs(args)
			if err != nil {
				return err
			}
			if f.rules != "" && f.rules != "HEAD" {
				return kit.Usage(errors.New("--rules: only HEAD is there, the rules of this program"))
			}
			if f.to > 0 && f.to < f.from {
				return kit.Usage(errors.New("--to: is before --from"))
			}
			return replay(cmd.Context(), a, ids[0], &f)
		},
	}
	set := cmd.Flags()
	set.StringVar(&f.rules, "rules", "", "HEAD: decide once more by the rules of this program, and say what differs")
	set.Uint64Var(&f.from, "from", 0, "show records from this `number` on, from 1")
	set.Uint64Var(&f.to, "to", 0, "show records up to this `number`")
	kit.OutputFlag(cmd, &f.format)
	return cmd
}

// replay prints the records of an intent. The whole journal is read whatever --from says: the
// state of an intent at a record follows from all records before it. An intent without records is
// an error, as is a repository without a store.
func replay(ctx context.Context, a *kit.App, id forge.IntentID, f *flags) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	if t.Empty() {
		return fmt.Errorf("there is no intent %s: nothing was ever submitted here", id)
	}
	all, err := read(ctx, t, id, f)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("project %s has no intent %s", t.Project, id)
	}
	shown := all[:0:0]
	for _, r := range all {
		if number := uint64(r.Number); number >= f.from && (f.to == 0 || number <= f.to) {
			shown = append(shown, r)
		}
	}
	return a.Print(f.format, map[string]any{"intent": id, "records": shown}, nil, func() error { return text(a, shown, f.rules != "") })
}

// read returns the records of an intent in words, in their order and without gaps. At NATS and in
// a repository this program folds the journal itself. By HTTP a runner does, by the rules that
// decided, so there is nothing to compare with: --rules is refused instead of being ignored.
func read(ctx context.Context, t *target.Target, id forge.IntentID, f *flags) ([]document.Record, error) {
	if t.ByHTTP() {
		if f.rules != "" {
			return nil, kit.Usage(errors.New("--rules does not work by HTTP; use an account of NATS (--server tls://...)"))
		}
		return t.Timeline(ctx, id)
	}
	key := t.Key(id)
	film := report.NewFilm(key, f.rules != "")
	// The entries of one intent are asked for; one of another journal, or one that cannot be read
	// and so has no record, is passed over. What cannot be read is for `pfl-forge audit-log
	// verify` to say.
	err := t.Bus.Journal.Each(ctx, key, func(e *journal.Entry) error {
		if e.Key == key && e.Record != nil {
			film.Add(e.Record)
		}
		return nil
	})
	return film.Records, err
}

// text prints the records for a person. A record is a line with its number, time and state, and
// below it a line for each event, rule, effect and difference. Of a text of several lines the
// first is shown; -o json has the whole.
func text(a *kit.App, records []document.Record, compared bool) error {
	var b strings.Builder
	differing := 0
	for i := range records {
		r := &records[i]
		fmt.Fprintf(&b, "%d  %s  %s\n", r.Number, r.At.Local().Format(time.DateTime), r.State)
		for _, part := range []struct {
			mark  string
			lines []string
		}{{"event", r.Events}, {"rule", r.Rules}, {"sent", r.Sent}, {"differs", r.Differs}} {
			for _, line := range part.lines {
				fmt.Fprintf(&b, "   %-8s %s\n", part.mark, kit.Safe(render.FirstLine(line)))
			}
		}
		if len(r.Differs) > 0 {
			differing++
		}
	}
	if compared {
		fmt.Fprintf(&b, "today's rules decide %s of %d otherwise\n", render.Count(differing, "record"), len(records))
	}
	_, err := fmt.Fprint(a.Out, b.String())
	return err
}
