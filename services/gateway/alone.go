package gateway

import (
	"context"
	"crypto/rand"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pfl-forge/pfl-forge/bus/work"
)

// electAgain is after how long a gateway that lost the lease on a forge, or
// could not ask for it, asks again.
const electAgain = 5 * time.Second

// alone returns a loop that has others run as long as this gateway is the one
// that watches a forge. Another one waits meanwhile: it goes on at once when
// this one ends, and after 30 seconds when it is killed or cut off from NATS.
func (g *Gateway) alone(forge string, loops []func(context.Context) error) func(context.Context) error {
	holder := work.LeaseHolder{Replica: g.cfg.Replica, Life: rand.Text()}
	return func(ctx context.Context) error {
		for ctx.Err() == nil {
			err := g.lead(ctx, forge, holder, loops)
			if ctx.Err() != nil {
				return nil //nolint:nilerr // it was ended: the error says no more than that
			}
			g.cfg.Log.WarnContext(ctx, "a forge may be watched by another gateway now; it is asked for again", "forge", forge, "error", err)
			timer := time.NewTimer(electAgain)
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
			timer.Stop()
		}
		return nil
	}
}

// lead waits until no other gateway watches a forge, and has the loops run
// until ctx ends or the lease is lost.
func (g *Gateway) lead(ctx context.Context, forge string, holder work.LeaseHolder, loops []func(context.Context) error) error {
	lease, err := g.cfg.Bus.Leases.AcquireWatch(ctx, forge, holder)
	if err != nil {
		return err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		lease.Release(ending)
	}()
	g.cfg.Log.InfoContext(ctx, "watches a forge", "forge", forge)
	group, held := errgroup.WithContext(ctx)
	group.Go(func() error { return lease.Keep(held, work.LeaseRenewal) })
	for _, run := range loops {
		group.Go(func() error { return g.watch(held, forge, run) })
	}
	return group.Wait()
}
