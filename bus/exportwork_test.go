package bus

import (
	"context"
	"time"
)

// Renew renews a lease now.
func (l *Lease) Renew(ctx context.Context) error { return l.renew(ctx) }

// Age makes a lease look as if it was renewed last so long ago.
func (l *Lease) Age(d time.Duration) { l.renewed = time.Now().Add(-d) }
