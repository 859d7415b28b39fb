package chat

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
)

// stored is a stream of deliveries in memory, with the time of a test.
type stored struct {
	list []deliveries.Delivery
	now  time.Time
	// lost has the next answer lost after it was stored.
	lost bool
}

// put stores a delivery once.
func (s *stored) put(_ context.Context, d deliveries.Delivery) (bool, error) {
	for _, o := range s.list {
		if o.Hook == d.Hook && o.ID == d.ID {
			return true, nil
		}
	}
	d.At = s.now
	s.list = append(s.list, d)
	if s.lost {
		s.lost = false
		return false, errors.New("the answer is lost")
	}
	return false, nil
}

// gateway returns the ledger of one more gateway, which has read the stream.
func (s *stored) gateway() *ledger {
	l := &ledger{name: "work", lease: time.Minute, now: func() time.Time { return s.now }, store: s.put, things: map[string]*thing{}}
	l.readAll(s)
	return l
}

// readAll has a ledger read the stream.
func (l *ledger) readAll(s *stored) {
	for i := range s.list {
		l.take(&s.list[i])
	}
}

// TestLedger: a thing is done by one gateway at a time, tried again by whoever
// comes after the lease, and not again once it was done.
func TestLedger(t *testing.T) {
	ctx := t.Context()
	s := &stored{now: time.Unix(1000, 0)}
	a, b := s.gateway(), s.gateway()
	done := 0
	do := func() error { done++; return nil }
	failing := errors.New("it fails")
	if err := a.once(ctx, "x", func() error { return failing }); !errors.Is(err, failing) {
		t.Fatal(err)
	}
	// b has not read of the claim yet, and finds it all the same.
	held, ok := errors.AsType[*heldError](b.once(ctx, "x", do))
	if !ok || done != 0 || !held.until.Equal(s.now.Add(time.Minute)) {
		t.Fatalf("b is held until %v, and it was done %d times", held, done)
	}
	// a tries again within the first half of its lease, and not after it.
	s.now = s.now.Add(40 * time.Second)
	if _, held := errors.AsType[*heldError](a.once(ctx, "x", do)); !held || done != 0 {
		t.Fatal("a tries again when its lease is about to end")
	}
	s.now = s.now.Add(21 * time.Second)
	if err := b.once(ctx, "x", do); err != nil || done != 1 {
		t.Fatalf("after the lease: %v, done %d times", err, done)
	}
	a.readAll(s)
	for _, l := range []*ledger{a, b, s.gateway()} {
		s.now = s.now.Add(time.Hour)
		if err := l.once(ctx, "x", do); err != nil || done != 1 {
			t.Fatalf("again: %v, done %d times", err, done)
		}
	}
}

// TestLedgerOfRefusals: what fails all day is claimed more and more seldom,
// since each claim takes room from the deliveries beside it.
func TestLedgerOfRefusals(t *testing.T) {
	s := &stored{now: time.Unix(1000, 0)}
	a, b := s.gateway(), s.gateway()
	for range 24 * 60 {
		for _, l := range []*ledger{a, b} {
			if err := l.once(t.Context(), "x", func() error { return errors.New("refused") }); err == nil {
				t.Fatal("it was done")
			}
			l.readAll(s)
		}
		s.now = s.now.Add(time.Minute)
	}
	if n := len(s.list); n < 24 || n > 100 {
		t.Errorf("%d claims were stored in a day", n)
	}
}

// TestLedgerOfLostAnswers: a claim whose answer was lost holds its own gateway
// up for a lease; a mark whose answer was lost does not have the thing done
// again by a gateway that has read the stream.
func TestLedgerOfLostAnswers(t *testing.T) {
	ctx := t.Context()
	s := &stored{now: time.Unix(1000, 0), lost: true}
	a, done := s.gateway(), 0
	do := func() error { done++; s.lost = done == 1; return nil }
	if err := a.once(ctx, "x", do); err == nil || done != 0 {
		t.Fatalf("%v, done %d times", err, done)
	}
	if _, held := errors.AsType[*heldError](a.once(ctx, "x", do)); !held {
		t.Fatal("it was not held up")
	}
	s.now = s.now.Add(61 * time.Second)
	if err := a.once(ctx, "x", do); err == nil || done != 1 {
		t.Fatalf("%v, done %d times", err, done)
	}
	s.now = s.now.Add(61 * time.Second)
	a.readAll(s)
	if err := a.once(ctx, "x", do); err != nil || done != 1 {
		t.Fatalf("%v, done %d times", err, done)
	}
}

// TestLedgerOfStrangers: an entry under another name, or another event, is
// none; entries that the stream has dropped are forgotten.
func TestLedgerOfStrangers(t *testing.T) {
	s := &stored{now: time.Unix(1000, 0)}
	l := s.gateway()
	for _, d := range []deliveries.Delivery{
		{Hook: "presses", ID: "x#done", Event: entryDone}, {Hook: "work", ID: "x#done", Event: Socket}, {Hook: "work", ID: "x#done", Event: "interaction"},
	} {
		if l.take(&d) {
			t.Errorf("%+v is an entry", d)
		}
	}
	l.take(&deliveries.Delivery{Hook: "work", ID: "x#done", Event: entryDone, At: s.now})
	l.take(&deliveries.Delivery{Hook: "work", ID: "y#no-number", Event: entryClaim, At: s.now})
	if !l.things["x"].done || l.things["y"].claims != 0 {
		t.Errorf("there are %+v", l.things)
	}
	s.now = s.now.Add(9 * 24 * time.Hour)
	if l.forget(); len(l.things) != 0 {
		t.Errorf("remembered are %+v", l.things)
	}
}

// TestParkedBesideHeld: a chat that wants to be left alone is, although another
// channel of the same intent only waits for its turn.
func TestParkedBesideHeld(t *testing.T) {
	now := time.Unix(1000, 0)
	one := newPoster(&Config{Log: slog.New(slog.DiscardHandler)}, nil, nil)
	held, parked := &heldError{now.Add(time.Second)}, &forges.ParkedError{Until: now.Add(time.Minute)}
	one.failed(t.Context(), held, "", "")
	if !one.parked.IsZero() {
		t.Errorf("a claim parks until %s", one.parked)
	}
	if one.failed(t.Context(), errors.Join(held, parked), "", ""); !one.parked.Equal(parked.Until) {
		t.Errorf("it is parked until %s", one.parked)
	}
}
