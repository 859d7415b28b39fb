package logs

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/logs/entries"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
)

// PrintIntent prints the log of an intent until now, decisions and transcripts.
// It opens a target of its own and closes it. The inbox and the live view call it for their key l.
func PrintIntent(ctx context.Context, a *kit.App, id forge.IntentID) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	out := newOutput(a, formatLines)
	if t.ByHTTP() {
		return entries.ReadHTTP(ctx, t, &entries.Query{Project: t.Project, Intent: id}, out.show)
	}
	r := entries.New(entries.Query{Project: t.Project, Intent: id}, out.show)
	if err := r.Read(ctx, t.Bus, false); err != nil {
		return err
	}
	sayIncomplete(a, r)
	return nil
}

// sayIncomplete says on standard error what of the transcripts could not be read. The rest was
// printed, so it is no error.
func sayIncomplete(a *kit.App, r *entries.Reader) {
	if err := r.Incomplete(); err != nil {
		a.Say("%s", kit.Safe(err.Error()))
	}
}

// Timeline prints the decisions on an intent, as the section of a description.
// It prints no transcripts, since a description is read at once. short returns a line without what
// the description has said already.
func Timeline(ctx context.Context, a *kit.App, t *target.Target, id forge.IntentID, short func(string) string) error {
	list, err := entries.Decisions(ctx, t, id)
	if err != nil {
		return err
	}
	a.Heading("history")
	out := newOutput(a, formatLines)
	for _, e := range list {
		e.Text = short(e.Text)
		out.show(e)
	}
	return nil
}
