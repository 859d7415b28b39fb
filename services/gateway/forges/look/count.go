package look

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/intakes"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// counter knows the entries of a forge, those of this gateway and of others,
// and stores one before its intent is submitted.
type counter struct {
	stream *intakes.Stream
	forge  string
	now    func() time.Time
	tally  intake.Tally
	// last is the last entry that was read, and own one that was stored here
	// and not read yet; 0 if there is none.
	last, own uint64
	// skew is the time by which the clock of the server is ahead of ours: that
	// of the server says which day it is.
	skew time.Duration
}

// maxCounts is how often an intent is counted that other gateways are in the way of, or midnight.
const maxCounts = 10

// time returns the time of the server, as far as it is known.
func (c *counter) time() time.Time { return c.now().Add(c.skew) }

// read takes the entries that were stored since the last time.
func (c *counter) read(ctx context.Context) error {
	return c.stream.After(ctx, c.forge, c.last, func(e intakes.Entry) error {
		counts := make([]intake.Count, len(e.Counts))
		for i, n := range e.Counts {
			counts[i] = intake.Count(n)
		}
		c.tally.Add(e.Event, e.At, counts)
		// It is no earlier at the server than when it stored this, and just
		// that late when it stored our own one.
		if e.Seq == c.own || e.At.After(c.time()) {
			c.skew, c.own = e.At.Sub(c.now()), 0
		}
		c.last = e.Seq
		return nil
	})
}

// add notes that an event takes its places. Whether it has them, the next read tells.
func (c *counter) add(ctx context.Context, event string, counts []intake.Count) error {
	e := intakes.Entry{Event: event, Counts: make([]intakes.Count, len(counts))}
	for i, n := range counts {
		e.Counts[i] = intakes.Count(n)
	}
	seq, err := c.stream.Add(ctx, c.forge, e, c.last)
	if errors.Is(err, intakes.ErrBehind) {
		// Another one was there first, or the stream is not the one that was read:
		// it is read from its beginning, and what is known besides goes on to count.
		c.last = 0
		return nil
	}
	c.own = seq
	return err
}

// decide asks the rules about the n-th trigger of an issue: the operator's, and those of the
// repository, which can only make them stricter. What was let in on the day is read if a limit
// counts this. If it cannot be read, the decision refuses, and there is an error that says so.
func (w *Watcher) decide(ctx context.Context, s *seen, t *intake.Trigger, n int) (intake.Decision, error) {
	event, err := intake.EventID(w.cfg.Name, s.Repository.ID, s.Number, n)
	if err != nil {
		return intake.Decision{}, err
	}
	d := w.cfg.Rules.Decide(t, s.own, nil, w.counter.time())
	if !d.Uncounted {
		return d, nil
	}
	if err := w.counter.read(ctx); err != nil {
		return d, fmt.Errorf("%s: %w", d.Refused, err)
	}
	return w.cfg.Rules.Decide(t, s.own, w.counter.tally.Used(event), w.counter.time()), nil
}

// count has the n-th intent of an issue take its places in limits before it is submitted,
// if a limit counts it. Each time that its entry was stored behind another one's, or on
// another day than was thought, it is decided anew; the decision may refuse it then.
func (w *Watcher) count(ctx context.Context, s *seen, t *intake.Trigger, n int, d *intake.Decision) error {
	event, err := intake.EventID(w.cfg.Name, s.Repository.ID, s.Number, n)
	if err != nil {
		return err
	}
	for range maxCounts {
		if !d.Limited || d.Do == intake.Ignore || d.Refused != "" || w.counter.tally.Has(event, d.Counts) {
			return nil
		}
		if err := w.counter.add(ctx, event, d.Counts); err != nil {
			return fmt.Errorf("a limit counts this, and it cannot be counted now; it is tried again: %w", err)
		}
		if *d, err = w.decide(ctx, s, t, n); err != nil {
			return err
		}
	}
	return errors.New("a limit counts this, and other gateways were in the way each time; it is tried again")
}
