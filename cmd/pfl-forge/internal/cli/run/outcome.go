package run

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/status"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// Outcome returns the exit code of a run as an error, nil for ExitOK. It follows
// from how things stand and not from what the run did: if nothing changes,
// another run gives the same. One that failed counts more than any number that
// wait. A file that was refused counts as waiting, as a person has to correct it.
func Outcome(o *local.Outcome) error {
	if o.Interrupted {
		return kit.ExitInterrupted
	}
	code := kit.ExitOK
	if len(o.Problems) > 0 {
		code = kit.ExitWaiting
	}
	for i := range o.Intents {
		s := &o.Intents[i]
		switch {
		case s.Status.Failed():
			return kit.ExitFailed
		case pending.Waits(s):
			code = kit.ExitWaiting
		}
	}
	if code == kit.ExitOK {
		return nil
	}
	return code
}

// SayInterrupted says what becomes of the work after Ctrl-C.
// Who only watched another process has stopped nothing, and is told so.
func SayInterrupted(a *kit.App, o *local.Outcome) {
	if o.Joined {
		a.Say("Stopped watching; the other process is still running.")
	} else {
		a.Say("Interrupted. Nothing is lost; `pfl-forge run` continues.")
	}
}

// conclude prints how things stand at the end of a run, and returns its exit
// code. A person gets a table of the intents that wait, and the count of all; a
// program gets the document of status, without the parts that are of the store.
func conclude(a *kit.App, o *local.Outcome, format render.Format) error {
	if o.Interrupted {
		SayInterrupted(a, o)
		return Outcome(o)
	}
	if format.Data() {
		doc := status.Document{Intents: document.Items(o.Intents), Counts: render.CountIntents(o.Intents)}
		if len(o.Intents) > 0 {
			doc.Project = o.Intents[0].Key.Project
		}
		if err := format.Write(a.Out, doc); err != nil {
			return err
		}
		return Outcome(o)
	}
	var open []forge.Summary
	for i := range o.Intents {
		if pending.Waits(&o.Intents[i]) {
			open = append(open, o.Intents[i])
		}
	}
	if len(open) > 0 {
		if err := status.Table(a, open, nil, false); err != nil {
			return err
		}
	}
	fmt.Fprintln(a.Out, render.Tally(o.Intents))
	if len(open) > 0 {
		a.Say("next: pfl-forge inbox")
	}
	return Outcome(o)
}
