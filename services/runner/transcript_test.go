package runner

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// TestWhichAttempt: of the attempts that are meant the newest is shown; a task
// has to be named only where several have some.
func TestWhichAttempt(t *testing.T) {
	t.Parallel()
	analyze := forge.Attempt{Step: forge.StepAnalyze, Number: 2}
	one := forge.Attempt{Task: "fix-001", Step: forge.StepImplement, Number: 1}
	two := forge.Attempt{Task: "fix-002", Step: forge.StepImplement, Number: 1}
	for about, c := range map[string]struct {
		all  []forge.Attempt
		req  document.TranscriptRequest
		want forge.Attempt // none: refused
	}{
		"none":                          {},
		"of the intent alone":           {all: []forge.Attempt{analyze}, want: analyze},
		"of a task and of the intent":   {all: []forge.Attempt{one, analyze}, want: analyze},
		"of the intent and a task":      {all: []forge.Attempt{analyze, one}, want: one},
		"of two tasks":                  {all: []forge.Attempt{one, two}},
		"of two tasks, and one named":   {all: []forge.Attempt{one, two}, req: document.TranscriptRequest{Task: "fix-001"}, want: one},
		"of two tasks, and a step":      {all: []forge.Attempt{one, two, analyze}, req: document.TranscriptRequest{Step: forge.StepAnalyze}, want: analyze},
		"a number that is not there":    {all: []forge.Attempt{one}, req: document.TranscriptRequest{Attempt: 9}},
		"of two tasks, not the newest":  {all: []forge.Attempt{one, two, analyze}},
		"a task that has no such step ": {all: []forge.Attempt{one, analyze}, req: document.TranscriptRequest{Task: "fix-001", Step: forge.StepAnalyze}},
	} {
		got, err := find(c.all, c.req)
		if got != c.want || (err != nil) != (c.want == forge.Attempt{}) {
			t.Errorf("%s: got %+v, %v", about, got, err)
		}
	}
}
