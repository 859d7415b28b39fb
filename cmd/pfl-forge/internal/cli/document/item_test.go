package document_test

import (
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
)

// A task in the merge queue says where it is there, and one that has failed
// says nothing of the kind.
func TestPlacesInTheMergeQueue(t *testing.T) {
	s := forge.Summary{RunSummary: forge.RunSummary{Tasks: []forge.TaskSummary{
		{ID: "a-001", Step: forge.StepMerge},
		{ID: "a-002", Step: forge.StepReview},
		{ID: "a-003", Status: forge.TaskFailed, Detail: "verify failed"},
	}}}
	list := document.Items([]forge.Summary{s})
	queue := map[string]string{"a-001": "third in the merge queue, is tried on top of b-001", "b-001": "is being merged"}
	document.Place([]forge.Summary{{}, {Project: &forge.ProjectSummary{Queue: queue}}}, list)
	var said []string
	for i := range list[0].Active {
		said = append(said, list[0].Active[i].WaitsFor())
	}
	if want := []string{queue["a-001"], "", ""}; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

// Two changes that do not merge are said once, whoever is told of whom.
func TestClashesAreSaidOnce(t *testing.T) {
	task := func(id, other forge.TaskID, files ...string) forge.Summary {
		overlaps := []forge.Overlap{{TaskID: other, Files: files}}
		return forge.Summary{RunSummary: forge.RunSummary{Tasks: []forge.TaskSummary{{ID: id, Overlaps: overlaps}}}}
	}
	list := document.Items([]forge.Summary{task("a-001", "b-001", "x.go", "y.go"), task("b-001", "a-001", "x.go", "y.go"), task("c-001", "a-001", "y.go")})
	want := []string{"a-001 conflicts with b-001: x.go, y.go", "c-001 conflicts with a-001: y.go"}
	if got := document.Clashes(list); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
