package setup

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Schedule has an intent submitted again and again, as a project has it in force. The
// texts of the intent are not told: whoever may look at the settings of a project
// sees that something is done each night, and reads in the repository what that is.
type Schedule struct {
	Name string `json:"name" yaml:"name"`
	// Cron says when it is due, by the clock of Zone.
	Cron string `json:"cron" yaml:"cron"`
	Zone string `json:"zone" yaml:"zone"`
	// Missed is once or skip: what becomes of the times at which nothing was running.
	Missed string `json:"missed" yaml:"missed"`
	// Title is that of its intents.
	Title string `json:"title" yaml:"title"`
	// SetBy is the person who applied it last as it is, and so the requester of its intents.
	SetBy string `json:"set_by" yaml:"set_by"`
	// Paused says whether a person has paused it, and Reason why; left out unless it is.
	Paused bool   `json:"paused,omitempty" yaml:"paused,omitempty"`
	Reason string `json:"reason,omitempty" yaml:"reason,omitempty"`
	// NextAt is when it is due; left out while it is paused.
	NextAt *time.Time `json:"next_at,omitempty" yaml:"next_at,omitempty"`
	// LastAt is the newest time that it was due; left out if there was none.
	LastAt *time.Time `json:"last_at,omitempty" yaml:"last_at,omitempty"`
	// LastIntent is the intent that was submitted then; where there was none, Skipped says why.
	LastIntent forge.IntentID `json:"last_intent,omitempty" yaml:"last_intent,omitempty"`
	Skipped    string         `json:"skipped,omitempty"     yaml:"skipped,omitempty"`
}

// SchedulesOf returns the schedules of a project, in the order in which they were set; never nil.
func SchedulesOf(p *forge.ProjectSummary) []Schedule {
	list := []Schedule{}
	if p == nil {
		return list
	}
	for i := range p.Schedules {
		s := &p.Schedules[i]
		list = append(list, Schedule{
			Name: s.Name, Cron: s.Cron, Zone: s.Zone, Missed: s.Missed, Title: s.Title, SetBy: s.SetBy, Paused: s.Paused, Reason: s.Reason,
			NextAt: known(s.NextAt), LastAt: known(s.LastAt), LastIntent: s.LastIntent, Skipped: s.Skipped,
		})
	}
	return list
}

// known returns a time in UTC; nil for none.
func known(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return new(at.UTC())
}
