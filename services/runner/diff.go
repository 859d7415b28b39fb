package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/patch"
	"github.com/pfl-forge/pfl-forge/services/runner/report"
)

// Diff returns the change of an attempt, with all of its files. The journal says which change
// that is, and the store what is in it: one that is not the journal's is never shown. Errors:
// bus.ErrNotFound for an intent without a journal, *requests.RequestError.
func Diff(ctx context.Context, b *bus.Bus, project forge.ProjectID, req document.DiffRequest) (document.Diff, error) {
	key := forge.Key{Project: project, Intent: req.Intent}
	records, _, err := b.Journal.Load(ctx, key)
	if err != nil {
		return document.Diff{}, err
	}
	if len(records) == 0 {
		return document.Diff{}, bus.ErrNotFound
	}
	view, all := report.Changes(key, records)
	made, err := choose(all, req)
	if err != nil {
		return document.Diff{}, err
	}
	d := document.Diff{
		Intent: req.Intent, Task: made.Attempt.Task, Step: made.Attempt.Step, Attempt: made.Attempt.Number,
		Base: made.Base, Head: made.Head, PatchID: made.PatchID,
	}
	p, err := patch.Read(ctx, b.Objects, key, made.Attempt, patch.About{Base: made.Base, Head: made.Head, PatchID: made.PatchID})
	switch {
	case made.PatchID == "", errors.Is(err, bus.ErrNotFound):
		return d, refused(http.StatusNotFound, "attempt", "%s is known, and its change is not stored: it may have made room for newer ones", name(made.Attempt))
	case errors.Is(err, patch.ErrOther), errors.Is(err, patch.ErrDamaged):
		return d, refused(http.StatusConflict, "attempt", "%s is not shown: %v", name(made.Attempt), err)
	case err != nil:
		return d, err
	}
	var planned []string
	for i := range view.Tasks {
		if view.Tasks[i].ID == made.Attempt.Task {
			planned = view.Tasks[i].RelevantFiles
		}
	}
	if d.Files, err = p.Files(func(path string) bool { return slices.Contains(planned, path) }); err != nil {
		return d, refused(http.StatusConflict, "attempt", "%s is not shown: %v", name(made.Attempt), err)
	}
	d.Proven, d.FileCount, d.LeftOut = p.Proves(), len(d.Files)+p.LeftOut, p.LeftOut
	if !d.Proven {
		d.Note = fmt.Sprintf("a part of the change is not stored: %s; so what is shown cannot be proven to be of this change", &p.About)
	}
	for i := range d.Files {
		d.Added += d.Files[i].Added
		d.Deleted += d.Files[i].Deleted
	}
	return d, nil
}

// choose returns the newest of the attempts that are meant. Where several tasks changed
// something, the request has to name one: the newest change of an intent would be that of
// whichever task came last. Its errors name the field that finds nothing.
func choose(all []report.Made, req document.DiffRequest) (report.Made, error) {
	tasks := map[forge.TaskID]bool{}
	for _, m := range slices.Backward(all) {
		tasks[m.Attempt.Task] = true
		if (req.Task == "" || m.Attempt.Task == req.Task) && (req.Step == "" || m.Attempt.Step == req.Step) &&
			(req.Attempt == 0 || m.Attempt.Number == req.Attempt) {
			if req.Task == "" && several(all) {
				return m, refused(http.StatusBadRequest, "task", "is needed: several tasks changed something")
			}
			return m, nil
		}
	}
	switch {
	case req.Task != "" && !tasks[req.Task]:
		return report.Made{}, refused(http.StatusNotFound, "task", "%s of intent %s has no change", req.Task, req.Intent)
	case req.Attempt != 0 || req.Step != "":
		return report.Made{}, refused(http.StatusNotFound, "attempt", "no such attempt of intent %s ended with a change", req.Intent)
	}
	return report.Made{}, refused(http.StatusNotFound, "intent", "%s has no change yet", req.Intent)
}

// several reports whether the attempts are of more than one task.
func several(all []report.Made) bool {
	return slices.ContainsFunc(all, func(m report.Made) bool { return m.Attempt.Task != all[0].Attempt.Task })
}

// name names an attempt for people.
func name(a forge.Attempt) string {
	if a.Task == "" {
		return fmt.Sprintf("%s %d", a.Step, a.Number)
	}
	return fmt.Sprintf("%s %d of %s", a.Step, a.Number, a.Task)
}

// refused returns the refusal of a request by one of its fields.
func refused(code int, field, format string, args ...any) error {
	return &requests.RequestError{Code: code, Fields: []requests.RefusedField{{Field: field, Reason: fmt.Sprintf(format, args...)}}}
}
