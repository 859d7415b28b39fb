package server

import (
	"fmt"
	"time"
)

// unwell is a failure of a replica, as programs read it.
type unwell struct {
	Why   string    `json:"why"   yaml:"why"`   // in its own words
	Since time.Time `json:"since" yaml:"since"` // when it noticed
}

// checkUnwell names the replicas that can do no work, or not all, with since when and why.
//
// It is a warning while another replica of the service and group is well, which does the work meanwhile, and broken where none is (ADR-0149). Times
// are those of this machine's zone.
func checkUnwell(replicas []replica) []finding {
	type kind struct{ service, group string }
	well := map[kind]bool{}
	for i := range replicas {
		if r := &replicas[i]; r.Unwell == nil {
			well[kind{r.Service, r.Group}] = true
		}
	}
	var found []finding
	for i := range replicas {
		r := &replicas[i]
		if r.Unwell == nil {
			continue
		}
		f := finding{
			r.Service, broken, fmt.Sprintf("%s is not well since %s: %s; no other %s is", r.Replica, r.Unwell.Since.Local().Format(time.DateTime), r.Unwell.Why, r.Service),
			"its /readyz?verbose and its log say more; it works again by itself as soon as that is fixed",
		}
		if well[kind{r.Service, r.Group}] {
			f.Health, f.Detail = warning, fmt.Sprintf("%s is not well since %s: %s; others do its work",
				r.Replica, r.Unwell.Since.Local().Format(time.DateTime), r.Unwell.Why)
		}
		found = append(found, f)
	}
	return found
}
