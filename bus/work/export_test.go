package work

import (
	"context"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
)

// Renew renews a lease now.
func (l *Lease) Renew(ctx context.Context) error { return l.renew(ctx) }

// Age makes a lease look as if it was renewed last so long ago.
func (l *Lease) Age(d time.Duration) { l.renewed = time.Now().Add(-d) }

// Purge has the server forget every lease.
func (ls *Leases) Purge(ctx context.Context) error {
	s, err := ls.conn.JS.Stream(ctx, streams.Leases)
	if err != nil {
		return err
	}
	return s.Purge(ctx)
}
