package runner

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
	"github.com/pfl-forge/pfl-forge/services/runner/report"
)

// Transcript returns a page of what was done in an attempt. The journal says which attempts
// there are: nothing is looked for that it does not name. Errors: bus.ErrNotFound for an intent
// without a journal, *requests.RequestError.
func Transcript(ctx context.Context, b *bus.Bus, project forge.ProjectID, req document.TranscriptRequest) (document.Transcript, error) {
	key := forge.Key{Project: project, Intent: req.Intent}
	records, _, err := b.Journal.Load(ctx, key)
	if err != nil {
		return document.Transcript{}, err
	}
	if len(records) == 0 {
		return document.Transcript{}, bus.ErrNotFound
	}
	from, err := document.ParsePlace(req.After)
	if err != nil {
		return document.Transcript{}, refused(http.StatusBadRequest, "after", "%v", err)
	}
	ended, open := report.Attempts(key, records)
	a, err := find(append(ended, open...), req)
	if err != nil {
		return document.Transcript{}, err
	}
	page := document.Transcript{Intent: req.Intent, Task: a.Task, Step: a.Step, Attempt: a.Number, Running: slices.Contains(open, a)}
	switch err := transcript.ReadPage(ctx, b, key, a, from, &page); {
	case errors.Is(err, bus.ErrNotFound):
		return page, refused(http.StatusNotFound, "attempt",
			"%s is known, and has no transcript: it did its job and said nothing, or the transcript made room for newer ones", name(a))
	case errors.Is(err, transcript.ErrPlace):
		return page, refused(http.StatusConflict, "after", "names nothing: %v", err)
	case err != nil:
		return page, err
	}
	return page, nil
}

// find returns the newest of the attempts that are meant. Where several tasks have some, the
// request has to name one.
func find(all []forge.Attempt, req document.TranscriptRequest) (forge.Attempt, error) {
	var found []forge.Attempt
	for _, a := range slices.Backward(all) {
		if (req.Task == "" || a.Task == req.Task) && (req.Step == "" || a.Step == req.Step) && (req.Attempt == 0 || a.Number == req.Attempt) {
			found = append(found, a)
		}
	}
	switch {
	case len(found) == 0 && req.Task == "" && req.Step == "" && req.Attempt == 0:
		return forge.Attempt{}, refused(http.StatusNotFound, "intent", "%s has no attempt yet", req.Intent)
	case len(found) == 0:
		return forge.Attempt{}, refused(http.StatusNotFound, "attempt", "there is no such attempt of intent %s", req.Intent)
	case req.Task == "" && tasksOf(found) > 1:
		return forge.Attempt{}, refused(http.StatusBadRequest, "task", "is needed: several tasks have such attempts")
	}
	return found[0], nil
}

// tasksOf returns how many tasks the attempts are of. Some are of none, but of the whole intent.
func tasksOf(attempts []forge.Attempt) int {
	tasks := map[forge.TaskID]bool{}
	for _, a := range attempts {
		if a.Task != "" {
			tasks[a.Task] = true
		}
	}
	return len(tasks)
}
