package facts

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

// checkStands returns an error if a change is made again that failed only because it
// could not be verified or reviewed: a retry without words of a person goes on with
// it. It does not judge goals, recipes, and changes that compete with another one.
func checkStands(v *forge.View, journal []forge.Record) error {
	if v.Summary.Goal != nil || v.Intent.Recipe != "" {
		return nil
	}
	made, stands, failed := map[forge.TaskID]bool{}, map[forge.TaskID]bool{}, map[forge.TaskID]bool{}
	for i := range journal {
		rec := &journal[i]
		for _, ev := range rec.Events {
			switch m := ev.Message.(type) {
			case *forge.Result:
				task := m.Attempt.Task
				if im := forge.As[*forge.Implementation](m.Output); im != nil {
					made[task] = im.Commits > 0 && im.Head != im.Base
				}
				if made[task] && !failed[task] && unchecked(rec, m) {
					stands[task] = true
				}
			case *forge.Retry:
				if m.Instructions != "" {
					clear(stands)
				}
			case *forge.Edit, *forge.Cancel, *forge.Reject, *forge.Answer, *forge.RequestChanges:
				clear(stands)
			default:
			}
		}
		for j := range rec.Effects.Commands {
			a := rec.Effects.Commands[j].Attempt
			if a.Step == forge.StepImplement && stands[a.Task] {
				return fmt.Errorf("%s makes the change of %s again, which was only not verified or reviewed to its end", a, a.Task)
			}
			delete(stands, a.Task)
		}
		for j := range rec.Summary.Tasks {
			t := &rec.Summary.Tasks[j]
			failed[t.ID] = t.Status == forge.TaskFailed
		}
	}
	return nil
}

// unchecked reports whether a task has failed by a result and the record of it,
// since its change could not be verified or reviewed.
func unchecked(rec *forge.Record, r *forge.Result) bool {
	checks := r.Attempt.Step == forge.StepRebase || r.Attempt.Step == forge.StepReview
	return r.Failure() != nil && checks && rules.Of(rec).Has(rules.StandingChange) && gaveUp(rec, r.Attempt.Task)
}

// gaveUp reports whether a task has failed by a record.
func gaveUp(rec *forge.Record, task forge.TaskID) bool {
	for i := range rec.Summary.Tasks {
		if t := &rec.Summary.Tasks[i]; t.ID == task {
			return t.Status == forge.TaskFailed
		}
	}
	return false
}
