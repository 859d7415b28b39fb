package journal

import (
	"context"
	"fmt"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Counted is the little of a machine's summary that is needed to count it.
type Counted struct {
	Key       forge.Key
	Status    forge.Status
	Waiting   forge.Waiting
	CreatedAt time.Time
	// System is the one that submitted the intent; empty: none did.
	System string
	// Project is nil for an intent.
	Project *forge.ProjectSummary
}

// Overview knows how far all machines are. The first Refresh reads the last record of every
// journal, and those after it only what the journals have since. It is used by one goroutine.
type Overview struct {
	journal *Journal
	// at is the place up to which the journals of intents were read.
	at      Open
	intents map[forge.Key]Counted
	// late are the intents that were read behind that place. A server that
	// fails may lose just that, without another sign of it.
	late     map[forge.Key]bool
	projects *lasts[Counted]
}

// NewOverview returns an Overview that knows nothing yet.
func (j *Journal) NewOverview() *Overview {
	projects, _ := subjects.ProjectJournals("") // of all projects: no name is refused
	return &Overview{journal: j, projects: newLasts(j, projects, counted)}
}

// counted returns the Counted of a machine.
func counted(s *forge.Summary) Counted {
	one := Counted{Key: s.Key, Status: s.Status, Waiting: s.Waiting, CreatedAt: s.CreatedAt, Project: s.Project}
	if s.Source == forge.SourceSystem && s.Parent == "" { // its parts are the plan's, not the system's
		one.System = s.Requester
	}
	return one
}

// Refresh reads the machines that have changed. After an error, some of them may be read
// by the next call only.
func (o *Overview) Refresh(ctx context.Context) error {
	if err := o.refresh(ctx); err != nil {
		return fmt.Errorf("refresh intents: %w", err)
	}
	if err := o.projects.refresh(ctx); err != nil {
		return fmt.Errorf("refresh projects: %w", err)
	}
	return nil
}

// refresh reads the intents that have changed.
func (o *Overview) refresh(ctx context.Context) error {
	now, err := o.journal.newest(ctx)
	if err != nil {
		return err
	}
	if now.Seq == o.at.Seq && now.Hash == o.at.Hash && now.At.Equal(o.at.At) && now.Gone == o.at.Gone && len(o.late) == 0 {
		return nil
	}
	found, _, err := newsSince(ctx, o.journal, &o.at, &now, mostSince)
	for key := range o.late {
		if _, there := found[key]; !there {
			err = errNotThere // lost
		}
	}
	if err != nil {
		if found, err = newsOfAll(ctx, o.journal); err != nil {
			return err
		}
		o.intents = nil
	}
	if o.intents == nil {
		o.intents = make(map[forge.Key]Counted, len(found))
	}
	o.at, o.late = now, map[forge.Key]bool{}
	for key, n := range found {
		if n.seq > now.Seq {
			o.late[key] = true
		}
		if n.summary == nil {
			delete(o.intents, key) // not what is in the record before: that is not how far it is
			continue
		}
		o.intents[key] = counted(n.summary)
	}
	return nil
}

// All returns the machines that this version understands, in no order.
func (o *Overview) All() []Counted {
	list := make([]Counted, 0, len(o.intents)+len(o.projects.known))
	for _, one := range o.intents {
		list = append(list, one)
	}
	for _, one := range o.projects.known {
		if one.err == nil {
			list = append(list, one.value)
		}
	}
	return list
}
