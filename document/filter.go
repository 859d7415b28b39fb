package document

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Filter selects the intents of a list. Each field that is set has to match;
// the zero value selects every intent.
type Filter struct {
	// Status, Waiting and Type hold the values of which an intent has one.
	Status, Waiting, Type []string
	// Labels are those that an intent has, all of them.
	Labels []string
	// Requester is a person or system that published an intent, or whose words are in it.
	Requester string
	// Priority is the least that an intent has; nil for any.
	Priority *int
	// Since is when something was last decided on an intent, or before that.
	Since time.Time
}

var (
	// Statuses are the values that a Filter's Status can have.
	Statuses = []string{
		string(forge.StatusProposed), string(forge.StatusApproved), string(forge.StatusExecuting), string(forge.StatusDone),
		string(forge.StatusBlocked), string(forge.StatusError), string(forge.StatusRejected), string(forge.StatusCancelled),
	}
	// Waits are the values that a Filter's Waiting can have.
	Waits = []string{
		string(forge.WaitingApproval), string(forge.WaitingClarification), string(forge.WaitingFailed), string(forge.WaitingDirty),
		string(forge.WaitingBudget), string(forge.WaitingPaused), string(forge.WaitingBase), string(forge.WaitingPull),
	}
)

// Check returns each field whose value no intent can have.
func (f *Filter) Check() []forge.FieldError {
	var wrong []forge.FieldError
	for _, field := range []struct {
		name         string
		values, some []string
	}{{"status", f.Status, Statuses}, {"waiting", f.Waiting, Waits}} {
		for _, v := range field.values {
			if !slices.Contains(field.some, v) {
				wrong = append(wrong, forge.FieldError{Field: field.name, Reason: fmt.Sprintf("is %q; it can be %s", v, strings.Join(field.some, ", "))})
				break
			}
		}
	}
	return wrong
}

// IsZero reports whether the filter selects every intent.
func (f *Filter) IsZero() bool {
	return len(f.Status)+len(f.Waiting)+len(f.Type)+len(f.Labels) == 0 && f.Requester == "" && f.Priority == nil && f.Since.IsZero()
}

// Selects reports whether the filter selects an intent.
func (f *Filter) Selects(s *forge.Summary) bool {
	some := func(wanted []string, is string) bool { return len(wanted) == 0 || slices.Contains(wanted, is) }
	asked := func(r forge.Identity) bool { return r.Name == f.Requester }
	without := func(label string) bool { return !slices.Contains(s.Attributes.Labels, label) }
	return some(f.Status, string(s.Status)) && some(f.Waiting, string(s.Waiting)) && some(f.Type, s.Type) &&
		!slices.ContainsFunc(f.Labels, without) && !s.UpdatedAt.Before(f.Since) &&
		(f.Priority == nil || s.Attributes.Priority >= *f.Priority) &&
		(f.Requester == "" || s.Requester == f.Requester || slices.ContainsFunc(s.Requesters, asked))
}
