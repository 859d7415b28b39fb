package entries

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
)

// lookTime bounds looking for what the stream of transcripts has lost: an account may
// not have the right to.
const lookTime = 5 * time.Second

// lost names the transcripts that the stream no longer has and the object store has, and
// how far they were read. found says that the search was done, so a Reader that reads again
// does not search again. err is the last error, and nil while everything could be read.
type lost struct {
	found bool
	// Of todo none is read yet; the oldest comes first.
	todo []*transcript.Archived
	read map[place]*transcript.Archived
	err  error
}

// place names an attempt, whichever claim of it: an archived transcript has the
// lines of all.
type place struct {
	to      forge.Key
	attempt forge.Attempt // without a claim
}

// has reports whether lines of the stream were read from the object store.
// id is that of a batch of lines in the stream (ADR-0025).
func (l *lost) has(to forge.Key, a forge.Attempt, id string) bool {
	a.Claim = 0
	k := l.read[place{to, a}]
	return k != nil && k.Has(id)
}

// Incomplete returns why the beginning of some transcripts may be missing, or nil.
// It is to be asked after Read.
func (r *Reader) Incomplete() error {
	if r.lost.err == nil {
		return nil
	}
	return fmt.Errorf("some transcripts were lost by the store and are not shown: %w", r.lost.err)
}

// readLost reads the transcripts that the stream has lost, all or in part, one at a time:
// each waits for its time. It goes on where it was cut off. What cannot be read is missing,
// and Incomplete says so.
func (r *Reader) readLost(ctx context.Context, b *bus.Bus) {
	l := &r.lost
	if !l.found {
		look, cancel := context.WithTimeout(ctx, lookTime)
		defer cancel()
		var err error
		if l.todo, err = transcript.FindArchived(look, b, r.query.filter()); err != nil {
			if ctx.Err() == nil {
				l.err = err
			}
			return
		}
		l.found, l.err, l.read = true, nil, map[place]*transcript.Archived{}
	}
	for len(l.todo) > 0 {
		k := l.todo[0]
		if !k.Until.Before(r.query.Since) {
			lines, err := k.Read(ctx, b)
			if ctx.Err() != nil {
				return
			}
			switch {
			case err == nil:
				r.takeKept(k, lines)
				l.read[place{k.To, k.Attempt}] = k
			case !errors.Is(err, bus.ErrNotFound): // that one had to make room
				l.err = err
			}
		}
		l.todo = l.todo[1:]
	}
}

// takeKept has the lines of an archived transcript shown in their time. Only what waits
// from before the transcript began can be shown now: later ones may come from the stream.
func (r *Reader) takeKept(k *transcript.Archived, lines []transcript.Line) {
	var list []Entry
	for _, l := range lines {
		if e := (Entry{Line: l}); r.query.wants(&e) {
			list = append(list, e)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.showUntil(k.Began) // those that come after this one begin later
	r.waiting.add(list)
}
