package clean

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// cleanRemote asks an organisation's implementers to clean, and prints what they answer. A request
// names as many intents as one may (requests.MaxClean); without ids one request is about all, and
// is repeated from where the last answer ended until there is nothing left.
//
// If a request fails, what was removed until then is printed before the error. Intents that were
// kept, such as one whose agent still stops, are errors too: the exit code says that something is
// left.
func cleanRemote(ctx context.Context, a *kit.App, t *target.Target, ids []forge.IntentID, before time.Time, f *flags) error {
	if len(ids) > 0 { // all of them can be cleaned, or nothing is begun
		all, err := t.Summaries(ctx)
		if err != nil {
			return err
		}
		over, err := chooseOver(all, ids, before)
		if err != nil {
			return err
		}
		ids = ids[:0]
		for i := range over {
			ids = append(ids, over[i].Key.Intent)
		}
		if len(ids) == 0 {
			return printCleaned(a, f, []cleaned{})
		}
	}
	list := []cleaned{}
	var errs []error
	end := func() error {
		if len(list) > 0 || len(errs) == 0 {
			errs = append(errs, printCleaned(a, f, list))
		}
		return errors.Join(errs...)
	}
	for req := range cleanRequests(ids, before, f.dryRun) {
		for {
			answer, err := t.Bus.Leftovers.Clean(ctx, t.Project, t.Actor, req)
			if err != nil {
				errs = append(errs, err)
				return end()
			}
			for i := range answer.Intents {
				list = append(list, cleanedOf(&answer.Intents[i]))
			}
			for _, k := range answer.Kept {
				errs = append(errs, fmt.Errorf("%s %s", term.Line(string(k.ID)), term.Line(k.Reason)))
			}
			if answer.Next <= req.After { // which grows, whoever answers
				break
			}
			req.After = answer.Next
		}
	}
	return end()
}

// cleanRequests yields the requests for some intents, or one for all. With ids a time says nothing
// more: chooseOver has compared it here, with the same summaries.
func cleanRequests(ids []forge.IntentID, before time.Time, dryRun bool) func(func(requests.CleanRequest) bool) {
	return func(yield func(requests.CleanRequest) bool) {
		if len(ids) == 0 {
			yield(requests.CleanRequest{Before: before, DryRun: dryRun})
			return
		}
		for some := range slices.Chunk(ids, requests.MaxClean) {
			if !yield(requests.CleanRequest{Intents: some, DryRun: dryRun}) {
				return
			}
		}
	}
}

// cleanedOf returns the document of an implementer's answer about one intent. It has no paths:
// those are of a machine that the person does not see.
func cleanedOf(c *requests.CleanedIntent) cleaned {
	return cleaned{
		ID: c.ID, Status: c.Status, EndedAt: c.EndedAt, Refs: c.Refs, Bytes: c.Bytes, Sessions: c.Sessions, Logs: c.Transcripts, Removed: c.Removed,
	}
}
