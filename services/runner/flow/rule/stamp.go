package rule

import (
	"errors"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

// Stamp says when the newest event was applied to a machine, and by which rules. Its state has one.
type Stamp struct {
	// UpdatedAt is when the newest event was applied.
	UpdatedAt time.Time
	// DecidedBy is the version of the rules that decide, or decided last.
	DecidedBy rules.Version
}

// Rules returns the version of the rules that the newest event was applied by, 0 before the first.
func (s *Stamp) Rules() rules.Version { return s.DecidedBy }

// Ruling returns the answer to the sender of an event.
func Ruling(of forge.Key, ev *forge.Event, d forge.Decision, err error) forge.Ruling {
	r := forge.Ruling{EventID: ev.ID, Decision: d, Intent: of.Intent}
	if err != nil {
		r.Reason = err.Error()
	}
	if f, ok := errors.AsType[*forge.FieldError](err); ok {
		r.Field = f.Field
	}
	return r
}
