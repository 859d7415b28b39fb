package analyzer

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// The first analysis of an intent waits for what is still coming; a later one
// is told at once. Both are told what is active then.
func TestActiveWhenItRuns(t *testing.T) {
	asked := 0
	summary := func(id forge.IntentID, s forge.Status) forge.Summary {
		return forge.Summary{Key: forge.Key{Project: "web", Intent: id}, Status: s}
	}
	all := []forge.Summary{
		summary("itself", forge.StatusProposed), summary("first", forge.StatusExecuting), summary("over", forge.StatusDone), summary("late", forge.StatusProposed),
	}
	a := &Analyzer{others: func(_ context.Context, p forge.ProjectID) ([]forge.Summary, error) {
		asked++
		if p != "web" {
			return nil, errors.New("of another project")
		}
		return slices.Clone(all[:min(asked+1, len(all))]), nil // one more comes from one look to the next
	}}
	j := &jobs.Job{Command: &forge.Command{To: forge.Key{Project: "web", Intent: "itself"}, Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: 1}}}
	told := func() (ids []forge.IntentID) {
		t.Helper()
		list, err := a.active(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			ids = append(ids, list[i].Key.Intent)
		}
		return ids
	}
	for _, c := range []struct {
		number int
		resume bool
		want   []forge.IntentID
		looks  int
	}{
		{1, false, []forge.IntentID{"first", "late"}, 4},
		{2, false, []forge.IntentID{"first", "late"}, 4}, // the first one only read the policy
		{2, true, []forge.IntentID{"first"}, 1},
		{3, false, []forge.IntentID{"first"}, 1},
	} {
		j.Command.Attempt.Number, j.Command.Resume, asked = c.number, c.resume, 0
		if got := told(); !slices.Equal(got, c.want) || asked != c.looks {
			t.Errorf("attempt %d: told of %q after %d looks", c.number, got, asked)
		}
	}
	j.Command.To.Project = "shop"
	if _, err := a.active(t.Context(), j); err == nil {
		t.Error("an error was lost")
	}
}
