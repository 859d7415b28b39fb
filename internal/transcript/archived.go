package transcript

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Archived is the transcript of an attempt in the object store.
type Archived struct {
	// To is the intent of the attempt.
	To forge.Key
	// Attempt is the attempt without a claim: the transcript is that of all its claims.
	Attempt forge.Attempt
	// Began and Until are the times of the first and the last line.
	Began, Until time.Time

	name  objects.Name
	about about
}

// FindArchived returns the archived transcripts that match a filter and of which the stream
// may have lost the beginning or all, the oldest first. Others can be read from the stream.
func FindArchived(ctx context.Context, b *bus.Bus, like subjects.TranscriptFilter) ([]*Archived, error) {
	first, stored, err := b.Transcripts.Oldest(ctx, like.Project)
	if err != nil {
		return nil, fmt.Errorf("look for transcripts: %w", err)
	}
	all, err := b.Objects.List(ctx, objects.Name{Project: like.Project, Intent: like.Intent, Task: like.Task, Kind: objects.Transcript})
	if err != nil {
		return nil, err
	}
	var list []*Archived
	for _, o := range all {
		a, ok := o.Attempt()
		if !ok || like.Step != "" && a.Step != like.Step || like.Number > 0 && a.Number != like.Number {
			continue
		}
		k := &Archived{To: forge.Key{Project: o.Project, Intent: o.Intent}, Attempt: a, name: o.Name}
		if k.about, err = parseAbout(o.About); err != nil {
			continue // another program's
		}
		k.Began, k.Until = k.about.Began, k.about.Until
		// A stream that was made again counts from 1: only the time tells.
		if first == 0 || k.about.First < first || k.about.Stored.Before(stored) {
			list = append(list, k)
		}
	}
	slices.SortStableFunc(list, func(a, b *Archived) int { return a.Began.Compare(b.Began) })
	return list, nil
}

// Read returns the lines. They may be more than when the transcript was found, because another
// claim of the attempt ended meanwhile; from then on Has answers for just these lines. The
// error is bus.ErrNotFound if the transcript had to make room for newer ones.
func (k *Archived) Read(ctx context.Context, b *bus.Bus) ([]Line, error) {
	o, err := b.Objects.Read(ctx, k.name)
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

// Has reports whether the transcript has the lines of a batch of the stream, by the batch's id.
// So lines that are in both places are shown once.
func (k *Archived) Has(id string) bool { return k.about.has(id) }
