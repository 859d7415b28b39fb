package server

import (
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/doctor/diagnosis"
)

// unwell is a failure of a replica, as programs read it.
type unwell struct {
	Why   string    `json:"why"            yaml:"why"`             // in its own words
	Since time.Time `json:"since,omitzero" yaml:"since,omitempty"` // when it noticed; missing if it says nothing that is a time
}

// checkUnwell names the replicas that can do no work, or not all, with since when and why.
//
// It is a warning while another replica of the service and group is well, which does the work
// meanwhile, and broken where none is (ADR-0149). Times are those of this machine's zone.
func checkUnwell(replicas []Replica) []diagnosis.Finding {
	type kind struct{ service, group string }
	well := map[kind]bool{}
	for i := range replicas {
		if r := &replicas[i]; r.Unwell == nil {
			well[kind{r.Service, r.Group}] = true
		}
	}
	var found []diagnosis.Finding
	for i := range replicas {
		r := &replicas[i]
		if r.Unwell == nil {
			continue
		}
		health, others := diagnosis.Broken, fmt.Sprintf("no other %s is", r.Service)
		if well[kind{r.Service, r.Group}] {
			health, others = diagnosis.Warning, "others do its work"
		}
		since := "for a time that it does not say"
		if !r.Unwell.Since.IsZero() {
			since = "since " + r.Unwell.Since.Local().Format(time.DateTime)
		}
		said := fmt.Sprintf("%s has been unwell %s: %s; %s", r.Replica, since, r.Unwell.Why, others)
		found = append(found, diagnosis.New(
			r.Service, health, said, "its /readyz?verbose and its log say more; it works again by itself as soon as that is fixed",
		))
	}
	return found
}
