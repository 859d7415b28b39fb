package conn

import (
	"context"
	"errors"
	"time"
)

// asPerson follows by asking a runner again and again, until one does not answer. What was there
// at the start is known by the last message of then.
func (f *Following) asPerson(ctx context.Context) error {
	p, c := f.Conn.person, f.Conn
	filter := f.Filters[0]
	if !f.reached && f.until == 0 {
		last, err := p.one(ctx, c, Read{What: ReadLast, Subject: filter})
		if err != nil && !errors.Is(err, ErrNotFound) {
			return f.unanswered(err)
		}
		f.until = last.Seq
		at, err := last.At()
		if f.until < f.Next || err != nil || at.Before(f.Since) {
			f.caughtUp(0)
		}
	}
	for quiet := 0; f.failed == nil && ctx.Err() == nil; {
		r := Read{What: ReadNext, Subject: filter, Since: f.Since, Wait: true}
		if f.Next > 0 {
			r.After, r.Since = f.Next-1, time.Time{}
		}
		list, end, err := f.wait(ctx, r)
		if err != nil {
			return err
		}
		f.takeAll(ctx, list)
		if quiet++; len(list) > 0 || end.More {
			quiet = 0
		}
		if quiet == quietReads && !f.reached {
			c.Log.ErrorContext(ctx, "some messages of a stream cannot be read: the store is damaged", "stream", f.Stream, "next", f.Next)
			f.caughtUp(0)
		}
	}
	return f.failed
}

// takeAll takes the messages of an answer, unless one of them fails.
func (f *Following) takeAll(ctx context.Context, list []Stored) {
	for _, m := range list {
		if m.Seq < f.Next {
			continue
		}
		f.Next = m.Seq + 1
		if f.failed = f.Take(ctx, m); f.failed != nil {
			return
		}
		if f.caughtUpWith(m.Seq); f.failed != nil {
			return
		}
	}
}

// caughtUpWith calls ReachedEnd, once, if the message is the last one from before the start.
func (f *Following) caughtUpWith(seq uint64) {
	if seq >= f.until {
		f.caughtUp(0)
	}
}

// Two waits are longer than a replica of the stream is behind the one that answered first.

// quietReads is how many times in a row a runner finds nothing before messages that are to be
// there count as lost.
const quietReads = 2

// wait asks once: Follow repeats it from where it was, whatever went wrong. It waits as
// long as a runner may wait for a message.
func (f *Following) wait(ctx context.Context, r Read) (list []Stored, end ReadEnd, err error) {
	p := f.Conn.person
	ctx, cancel := context.WithTimeout(ctx, ReadWait+readGrace)
	defer cancel()
	err = f.Conn.Permitted(ctx, p.subject, func(ctx context.Context) error {
		list, end, err = p.try(ctx, f.Conn, r)
		return err
	})
	return list, end, p.explained(err)
}

// A command that follows is to say at once that it cannot, and not to wait in silence; one that has
// shown something goes on as soon as it can.

// unanswered ends following where nothing was ever answered: without a runner there is nothing
// to look at. Later on a runner that is away is waited for.
func (f *Following) unanswered(err error) error {
	if errors.Is(err, ErrRunnerDown) || errors.Is(err, ErrNotAllowed) {
		f.failed = err
	}
	return err
}
