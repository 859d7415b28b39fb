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
	p, err := stored(ctx, b, key, made, "attempt")
	if err != nil {
		return d, err
	}
	planned := plans(&view, made.Attempt.Task)
	if req.Since == 0 {
		d.Files, err = p.Files(planned)
	} else {
		err = since(ctx, b, key, all, made, req.Since, p, planned, &d)
	}
	if errors.Is(err, patch.ErrDamaged) {
		return d, refused(http.StatusConflict, "attempt", "%s is not shown: %v", name(made.Attempt), err)
	}
	if err != nil {
		return d, err
	}
	d.FileCount, d.LeftOut = len(d.Files)+p.LeftOut, p.LeftOut
	if d.Proven = d.Note == "" && p.Proves(); !p.Proves() {
		d.Note = fmt.Sprintf("a part of the change is not stored: %s; so what is shown cannot be proven to be of this change", &p.About)
	}
	for i := range d.Files {
		d.Added += d.Files[i].Added
		d.Deleted += d.Files[i].Deleted
	}
	if req.Whitespace == document.WhitespaceOff {
		d.Hidden = patch.LeaveOutSpace(d.Files)
	}
	return d, nil
}

// stored returns the change of an attempt, if it is the one that the journal names. Its
// refusals are about a field of the request.
func stored(ctx context.Context, b *bus.Bus, key forge.Key, m report.Made, field string) (*patch.Patch, error) {
	p, err := patch.Read(ctx, b.Objects, key, m.Attempt, patch.About{Base: m.Base, Head: m.Head, PatchID: m.PatchID})
	switch {
	case m.PatchID == "", errors.Is(err, bus.ErrNotFound):
		return nil, refused(http.StatusNotFound, field, "%s is known, and its change is not stored: it may have made room for newer ones", name(m.Attempt))
	case errors.Is(err, patch.ErrOther), errors.Is(err, patch.ErrDamaged):
		return nil, refused(http.StatusConflict, field, "%s is not shown: %v", name(m.Attempt), err)
	}
	return p, err
}

// plans returns the paths that the plan of a task names.
func plans(v *forge.View, task forge.TaskID) []string {
	for i := range v.Tasks {
		if v.Tasks[i].ID == task {
			return v.Tasks[i].RelevantFiles
		}
	}
	return nil
}

// since fills in what the change of an attempt and that of a former one do not have in common.
// Both have to be those that the journal names: a comparison with another one would say that
// lines are new which are not, or the reverse.
func since(
	ctx context.Context, b *bus.Bus, key forge.Key, all []report.Made, made report.Made, number int, p *patch.Patch, planned []string, d *document.Diff,
) error {
	at := made.Attempt
	at.Number = number
	if number >= made.Attempt.Number {
		return refused(http.StatusBadRequest, "since", "is %d; what is compared with %s has to be before it", number, name(made.Attempt))
	}
	former, err := choose(all, document.DiffRequest{Task: at.Task, Step: at.Step, Attempt: number})
	if err != nil {
		return refused(http.StatusNotFound, "since", "%s did not end with a change", name(at))
	}
	before, err := stored(ctx, b, key, former, "since")
	if err != nil {
		return err
	}
	d.Since = &document.DiffSince{Attempt: number, Base: former.Base, Head: former.Head, PatchID: former.PatchID, Rebased: former.Base != made.Base}
	if d.Files, d.Since.Same, err = p.Since(before, planned); err == nil && !before.Proves() {
		d.Note = fmt.Sprintf("a part of the former change is not stored: %s; so lines that are shown as new may have been in it", &before.About)
	}
	return err
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

// name names an attempt for people, as in "implement 2 of login-001".
func name(a forge.Attempt) string {
	if a.Task == "" {
		return fmt.Sprintf("%s %d", a.Step, a.Number)
	}
	return fmt.Sprintf("%s %d of %s", a.Step, a.Number, a.Task)
}

// refused returns the refusal of a request by one of its fields, with a status of HTTP.
func refused(code int, field, format string, args ...any) error {
	return &requests.RequestError{Code: code, Fields: []requests.RefusedField{{Field: field, Reason: fmt.Sprintf(format, args...)}}}
}
