package journal

import (
	"context"
	"fmt"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Standing is the little of a machine's summary that is needed to count it.
type Standing struct {
	Key       forge.Key
	Status    forge.Status
	Waiting   forge.Waiting
	CreatedAt time.Time
	// System is the one that submitted the intent; empty: none did.
	System string
	// Project is nil for an intent.
	Project *forge.ProjectSummary
}

// Overview knows how far all machines are. Refresh reads only those anew whose journal has
// gone on. It is used by one goroutine.
type Overview struct {
	intents, projects *lasts[Standing]
}

// NewOverview returns an Overview that knows nothing yet.
func (j *Journal) NewOverview() *Overview {
	intents, _ := subjects.IntentJournals("") // of all projects: no name is refused
	projects, _ := subjects.ProjectJournals("")
	return &Overview{newLasts(j, intents, standing), newLasts(j, projects, standing)}
}

// standing returns the Standing of a machine.
func standing(s *forge.Summary) Standing {
	one := Standing{Key: s.Key, Status: s.Status, Waiting: s.Waiting, CreatedAt: s.CreatedAt, Project: s.Project}
	if s.Source == forge.SourceSystem && s.Parent == "" { // its parts are the plan's, not the system's
		one.System = s.Requester
	}
	return one
}

// Refresh reads the machines that have changed. After an error, some of them may be read
// by the next call only.
func (o *Overview) Refresh(ctx context.Context) error {
	for _, one := range []*lasts[Standing]{o.intents, o.projects} {
		if err := one.refresh(ctx); err != nil {
			return fmt.Errorf("refresh %s: %w", one.filter, err)
		}
	}
	return nil
}

// Knows reports whether a machine had a journal when it was refreshed, whoever understands it.
func (o *Overview) Knows(key forge.Key) bool {
	subject, err := subjects.Journal(key)
	_, intent := o.intents.known[subject]
	_, project := o.projects.known[subject]
	return err == nil && (intent || project)
}

// All returns the machines that this version understands, in no order.
func (o *Overview) All() []Standing {
	list := make([]Standing, 0, len(o.intents.known)+len(o.projects.known))
	for _, known := range []map[string]lastOf[Standing]{o.intents.known, o.projects.known} {
		for _, one := range known {
			if one.err == nil {
				list = append(list, one.value)
			}
		}
	}
	return list
}
