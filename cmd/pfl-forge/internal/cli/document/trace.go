package document

import (
	"cmp"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

// Trace names the trace of a run. There is one if the services export traces,
// and their sampler takes it.
type Trace struct {
	// TraceID is empty if no run has begun.
	TraceID string `json:"trace_id,omitempty" yaml:"trace_id,omitempty"`
	// TraceURL is where a person reads it; empty if --trace-url does not say.
	TraceURL string `json:"trace_url,omitempty" yaml:"trace_url,omitempty"`
}

// Line returns how a person finds the trace: the link, which has the id in it, or else the id. It
// is empty where no services run that could export one.
func (t *Trace) Line(a *kit.App) string {
	if !a.Remote() {
		return ""
	}
	return cmp.Or(t.TraceURL, t.TraceID)
}
