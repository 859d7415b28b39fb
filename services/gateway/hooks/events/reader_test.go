package events

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

// stored is a stream of deliveries, the oldest first.
type stored []deliveries.Delivery

func (s *stored) After(_ context.Context, seq uint64, take func(deliveries.Delivery) error) (last uint64, err error) {
	for _, d := range *s {
		if d.Seq <= seq {
			continue
		}
		if err := take(d); err != nil {
			return last, err
		}
		last = d.Seq
	}
	return last, nil
}

func (*stored) OnDelivery(context.Context, func()) error { return nil }

func (s *stored) Store(_ context.Context, d deliveries.Delivery) (bool, error) {
	d.Seq = uint64(len(*s) + 1)
	*s = append(*s, d)
	return false, nil
}

func (*stored) Bury(context.Context, deliveries.Delivery, string, string) error { return nil }

// TestBodiesAreBounded: deliveries that cannot be submitted are read, and their
// bodies kept up to a bound; those beyond it are read again when their turn
// comes, and one that the stream has lost by then is refused.
func TestBodiesAreBounded(t *testing.T) {
	ctx, s := wait.Context(t), &stored{}
	for n := range 100 {
		if _, err := s.Store(ctx, deliveries.Delivery{Hook: "scanner", ID: fmt.Sprint(n), Body: []byte(strings.Repeat("x", 1000+n))}); err != nil {
			t.Fatal(err)
		}
	}
	r := New(Config{Hooks: []hooks.Hook{{Name: "scanner"}}, Deliveries: s, Held: 10_000})
	if !r.read(ctx) || len(r.open) != 100 {
		t.Fatalf("%d are read", len(r.open))
	}
	held := 0
	for _, p := range r.open {
		held += len(p.Body)
		d, err := r.whole(ctx, p)
		if err != nil || len(d.Body) != 1000+int(d.Seq)-1 {
			t.Errorf("delivery %s has %d bytes, %v", d.ID, len(d.Body), err)
		}
	}
	if held > 10_000 || held < 5_000 || r.held > 10_000 {
		t.Errorf("%d bytes are kept, and counted as %d", held, r.held)
	}
	all := *s
	*s = all[50:]
	lost := 0
	for _, p := range r.open {
		_, err := r.whole(ctx, p)
		if _, gone := errors.AsType[*fieldError](err); gone != (p.left && p.Seq <= 50) {
			t.Errorf("delivery %d: %v", p.Seq, err)
		} else if gone {
			lost++
		}
	}
	if lost == 0 {
		t.Error("none is lost")
	}
	for _, d := range all {
		r.drop(markOf(&d))
	}
	if r.held != 0 || len(r.open) != 0 {
		t.Errorf("of none %d bytes are counted", r.held)
	}
}
