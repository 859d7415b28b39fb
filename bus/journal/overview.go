package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
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
	journal *Journal
	// known has the machines by the subjects of their journals.
	known map[string]standing
	// seen has the state of each stream that was read.
	seen map[string]jetstream.StreamState
}

// standing is a Standing, and when to read it anew.
type standing struct {
	Standing
	// records counts those of its journal.
	records uint64
	// legible is false if this version does not understand the last one.
	legible bool
}

// NewOverview returns an Overview that knows nothing yet.
func (j *Journal) NewOverview() *Overview {
	return &Overview{journal: j, known: map[string]standing{}, seen: map[string]jetstream.StreamState{}}
}

// Refresh reads the machines that have changed. After an error, some of them may be read
// by the next call only.
func (o *Overview) Refresh(ctx context.Context) error {
	intents, err := subjects.IntentJournals("")
	if err != nil {
		return fmt.Errorf("refresh: %w", err)
	}
	projects, err := subjects.ProjectJournals("")
	if err != nil {
		return fmt.Errorf("refresh: %w", err)
	}
	there := map[string]bool{}
	for _, filter := range []string{intents, projects} {
		if err := o.refresh(ctx, filter, there); err != nil {
			return fmt.Errorf("refresh %s: %w", filter, err)
		}
	}
	for subject := range o.known { // somebody has deleted the stream
		if !there[subject] {
			delete(o.known, subject)
		}
	}
	return nil
}

// refresh reads the machines of a filter, and notes whose journals are there. Where nothing was written since the last time,
// it does not even ask which journals there are: that answer is as long as the list of all intents.
func (o *Overview) refresh(ctx context.Context, filter string, there map[string]bool) error {
	stream := journalStream(filter)
	state, err := o.journal.conn.State(ctx, stream)
	if err != nil {
		return err
	}
	if seen := o.seen[stream]; seen.LastSeq == state.LastSeq && seen.Msgs == state.Msgs && seen.FirstSeq == state.FirstSeq {
		for subject := range o.known {
			there[subject] = there[subject] || journalStream(subject) == stream
		}
		return nil
	}
	counts, err := o.journal.conn.Counts(ctx, journalStream(filter), filter)
	if err != nil {
		return err
	}
	for subject := range counts {
		there[subject] = true
	}
	changed := func(subject string) bool { return counts[subject] != o.known[subject].records }
	found, err := o.journal.conn.LastsWhere(ctx, journalStream(filter), filter, changed)
	if err != nil {
		return err
	}
	for _, m := range found {
		s, err := o.journal.summaryOf(ctx, m)
		_, newer := errors.AsType[*wire.UnknownError](err)
		if err != nil && !newer && !errors.Is(err, conn.ErrNotFound) {
			return err
		}
		one := Standing{Key: s.Key, Status: s.Status, Waiting: s.Waiting, CreatedAt: s.CreatedAt, Project: s.Project}
		if s.Source == forge.SourceSystem && s.Parent == "" { // its parts are the plan's, not the system's
			one.System = s.Requester
		}
		o.known[m.Subject] = standing{records: counts[m.Subject], legible: err == nil, Standing: one}
	}
	o.seen[stream] = state
	return nil
}

// Knows reports whether a machine had a journal when it was refreshed, whoever understands it.
func (o *Overview) Knows(key forge.Key) bool {
	subject, err := subjects.Journal(key)
	_, known := o.known[subject]
	return err == nil && known
}

// All returns the machines that this version understands, in no order.
func (o *Overview) All() []Standing {
	list := make([]Standing, 0, len(o.known))
	for _, one := range o.known {
		if one.legible {
			list = append(list, one.Standing)
		}
	}
	return list
}
