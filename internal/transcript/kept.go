package transcript

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
)

// Kept is a whole transcript in the object store.
type Kept struct {
	To      forge.Key
	Attempt forge.Attempt // without a claim: it is of all of them
	Began   time.Time     // of its first line
	Until   time.Time     // of its last one

	name  bus.ObjectName
	about about
}

// Lost returns the whole transcripts that match a filter and of which the stream may
// have lost the beginning or all, the oldest first.
func Lost(ctx context.Context, b *bus.Bus, like bus.TranscriptFilter) ([]*Kept, error) {
	first, stored, err := b.OldestTranscript(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for transcripts: %w", err)
	}
	all, err := b.Objects().List(ctx, bus.ObjectName{Project: like.Project, Intent: like.Intent, Task: like.Task, Kind: bus.ObjectTranscript})
	if err != nil {
		return nil, err
	}
	var list []*Kept
	for _, o := range all {
		a, ok := o.Attempt()
		if !ok || like.Step != "" && a.Step != like.Step || like.Number > 0 && a.Number != like.Number {
			continue
		}
		k := &Kept{To: forge.Key{Project: o.Project, Intent: o.Intent}, Attempt: a, name: o.ObjectName}
		if k.about, err = parseAbout(o.About); err != nil {
			continue // another program's
		}
		k.Began, k.Until = k.about.Began, k.about.Until
		// A stream that was made again counts from 1: only the time tells.
		if first == 0 || k.about.First < first || k.about.Stored.Before(stored) {
			list = append(list, k)
		}
	}
	slices.SortStableFunc(list, func(a, b *Kept) int { return a.Began.Compare(b.Began) })
	return list, nil
}

// Read returns its lines, which may be more than when it was found. From then on Has
// answers for just those. Error: bus.ErrNotFound, when it had to make room meanwhile.
func (k *Kept) Read(ctx context.Context, b *bus.Bus) ([]Line, error) {
	o, err := b.Objects().Read(ctx, k.name)
	if err != nil {
		return nil, err
	}
	text, err := unzip(o.Content)
	if err != nil {
		return nil, err
	}
	if k.about, err = parseAbout(o.About); err != nil {
		return nil, err
	}
	return Parse(text), nil
}

// Has reports whether lines are in it that were appended to the stream under an id.
func (k *Kept) Has(id string) bool { return k.about.has(id) }
