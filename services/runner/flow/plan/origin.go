package plan

import "github.com/pfl-forge/pfl-forge"

// SameOrigin reports whether two submissions are the same event of the same
// publisher. A publisher that gives its events no ids is never taken to repeat
// itself.
func SameOrigin(a, b forge.Origin) bool {
	return a.EventID != "" && a.System == b.System && a.EventID == b.EventID
}

// Publisher returns who published an intent: a person by the name that the
// server knows, or the system that sent it, whomever that one names.
func Publisher(in *forge.Intent) string {
	for _, p := range in.Requesters {
		if p.Proven && in.Source == forge.SourceHuman {
			return p.Name
		}
	}
	return in.Origin.System
}
