package document_test

import (
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

func TestFilter(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	intent := &forge.Summary{
		Type: "fix", Status: forge.StatusProposed, Waiting: forge.WaitingApproval, UpdatedAt: at, Requester: "ci",
		Requesters: []forge.Identity{{Name: "ada", Proven: true}}, Attributes: forge.Attributes{Labels: []string{"api", "urgent"}, Priority: 2},
	}
	two, three, below := 2, 3, -1
	for _, c := range []struct {
		name   string
		filter document.Filter
		want   bool
	}{
		{"all", document.Filter{}, true},
		{"status", document.Filter{Status: []string{"done", "proposed"}}, true},
		{"another status", document.Filter{Status: []string{"done"}}, false},
		{"waiting", document.Filter{Waiting: []string{"approval"}}, true},
		{"another decision", document.Filter{Waiting: []string{"budget"}}, false},
		{"type", document.Filter{Type: []string{"fix", "feature"}}, true},
		{"another type", document.Filter{Type: []string{"feature"}}, false},
		{"both labels", document.Filter{Labels: []string{"urgent", "api"}}, true},
		{"a label more", document.Filter{Labels: []string{"urgent", "ui"}}, false},
		{"part of a label", document.Filter{Labels: []string{"urg"}}, false},
		{"publisher", document.Filter{Requester: "ci"}, true},
		{"whose words", document.Filter{Requester: "ada"}, true},
		{"another person", document.Filter{Requester: "bob"}, false},
		{"at that moment", document.Filter{Since: at}, true},
		{"priority", document.Filter{Priority: &two}, true},
		{"a lower one", document.Filter{Priority: &below}, true},
		{"a higher one", document.Filter{Priority: &three}, false},
		{"later", document.Filter{Since: at.Add(time.Nanosecond)}, false},
		{"one of two does not match", document.Filter{Type: []string{"fix"}, Requester: "bob"}, false},
	} {
		if got := c.filter.Selects(intent); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
		if zero := c.name == "all"; c.filter.IsZero() != zero {
			t.Errorf("%s: IsZero is %t", c.name, !zero)
		}
	}
	wrong := document.Filter{Status: []string{"done", "finished", "over"}, Waiting: []string{"lunch"}}
	got := wrong.Check()
	if len(got) != 2 || got[0].Field != "status" || got[1].Field != "waiting" {
		t.Errorf("wrong values: %v", got)
	}
}
