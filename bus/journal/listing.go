package journal

import (
	"context"
	"fmt"
	"maps"
	"slices"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
)

// leastBehind is how many messages are read behind a list at least, before the last one
// of each journal is read instead: so many as the list has intents, if these are more.
const leastBehind = 1000

// Listing has the last summary of every intent, and the list that the next call starts from.
type Listing struct {
	// Summaries are those of every intent of the project, in the order of their keys.
	Summaries []forge.Summary
	// Sequences has that of the last message of each journal.
	Sequences map[forge.IntentID]uint64
	// Kept is for the next ListSince; nil if that would start from the same
	// bytes as this one, or if there is nothing to keep.
	Kept []byte
	// Whole says that the last record of every journal was read.
	Whole bool
}

// ListSince is List for who lists a project again and again: it reads what the
// journals have since the list that is kept, if the stream has the very message that
// the list was made at and has lost none since. Any bytes may be given as kept.
func (j *Journal) ListSince(ctx context.Context, project forge.ProjectID, kept []byte) (Listing, error) {
	now, err := j.newest(ctx)
	if err != nil {
		return Listing{}, fmt.Errorf("list intents: %w", err)
	}
	return j.listAsOf(ctx, project, now, kept)
}

// listAsOf is ListSince for a list that is kept as one of the newest message.
func (j *Journal) listAsOf(ctx context.Context, project forge.ProjectID, newest Open, kept []byte) (Listing, error) {
	l := listing{journal: j, project: project, now: newest}
	if err := l.since(ctx, kept); err != nil {
		if ctx.Err() != nil {
			return Listing{}, ctx.Err()
		}
		if err := l.all(ctx); err != nil { // whatever it was, the journals have all that the list has
			return Listing{}, err
		}
	}
	return l.result()
}

// listing is one call of ListSince.
type listing struct {
	journal *Journal
	project forge.ProjectID
	now     Open
	// intents has the summaries; nil where no record can be read.
	intents map[forge.IntentID]*forge.Summary
	last    map[forge.IntentID]uint64
	// bytes are those of summaries that are as they were kept.
	bytes map[forge.IntentID][]byte
	// same says that nothing was read, and whole that everything was.
	same, whole bool
}

// since goes on from a list. It returns an error if the list is not of this
// project and stream, or is behind by much.
func (l *listing) since(ctx context.Context, kept []byte) error {
	before, err := wire.UnmarshalListing(kept)
	if err != nil {
		return err
	}
	if before.Project != l.project {
		return errNotThere
	}
	l.clear(len(before.Intents))
	for i := range before.Intents {
		one := &before.Intents[i]
		l.last[one.ID] = one.Seq
		if len(one.Summary) == 0 {
			continue
		}
		s, err := wire.Summaries.Unmarshal(one.Summary)
		if err != nil {
			return err
		}
		l.intents[one.ID], l.bytes[one.ID] = &s, one.Summary
	}
	from := Open{Seq: before.Seq, Hash: before.Hash, At: before.At, Gone: before.Gone}
	found, strange, err := newsSince(ctx, l.journal, &from, &l.now, uint64(max(leastBehind, len(before.Intents))))
	if err != nil {
		return err
	}
	if strange {
		return errNotThere // a look at all says so
	}
	l.same = len(found) == 0
	for key, n := range found {
		switch {
		case key.Project != l.project:
		case n.newer:
			return errNotThere
		default:
			l.intents[key.Intent], l.last[key.Intent] = n.summary, n.seq
			delete(l.bytes, key.Intent)
		}
	}
	return nil
}

// clear has the listing know nothing, with room for so many intents.
func (l *listing) clear(size int) {
	l.intents, l.last, l.bytes = make(map[forge.IntentID]*forge.Summary, size), make(map[forge.IntentID]uint64, size), make(map[forge.IntentID][]byte, size)
}

// all reads the last message of each journal.
func (l *listing) all(ctx context.Context) error {
	list, last, err := l.journal.List(ctx, l.project)
	if err != nil {
		return err
	}
	l.clear(len(list))
	l.last, l.same, l.whole = last, false, true
	for i := range list {
		l.intents[list[i].Key.Intent] = &list[i]
	}
	return nil
}

// result returns the list, sorted, and as it is to be kept. A list that has
// more than the journals had when it was begun is not kept: a server that loses
// what it stored last has no other sign of it.
func (l *listing) result() (Listing, error) {
	r := Listing{Sequences: l.last, Whole: l.whole, Summaries: make([]forge.Summary, 0, len(l.intents))}
	for _, id := range slices.Sorted(maps.Keys(l.intents)) {
		if s := l.intents[id]; s != nil {
			r.Summaries = append(r.Summaries, *s)
		}
	}
	if l.same || l.now.At.IsZero() { // with no message to go on from
		return r, nil
	}
	next := wire.Listing{Project: l.project, Seq: l.now.Seq, Hash: l.now.Hash, At: l.now.At, Gone: l.now.Gone}
	for id, seq := range l.last {
		if seq > l.now.Seq {
			return r, nil
		}
		one := wire.Listed{ID: id, Seq: seq, Summary: l.bytes[id]}
		if s := l.intents[id]; s != nil && one.Summary == nil {
			var err error
			if one.Summary, err = wire.Summaries.Marshal(s); err != nil {
				return r, fmt.Errorf("keep the list of intents: %w", err)
			}
		}
		next.Intents = append(next.Intents, one)
	}
	r.Kept = next.Marshal()
	return r, nil
}
