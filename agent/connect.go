package agent

import (
	"context"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Connect opens a way to the model for one call, such as a token and an address of a
// gateway that are good for this call alone. An error is a *Failure.
type Connect func(ctx context.Context, call Call) (Connection, error)

// Connection is a call's way to its model. Its variables win over those of the back
// end's options.
type Connection struct {
	Env     []string           // KEY=VALUE, for the CLI
	Usage   func() forge.Usage // what the model has counted so far, exactly, with its cost; nil if nobody counts
	Limited func() time.Time   // until when the model refuses calls, as its last refusal said; zero if it did not; may be nil
	Close   func()             // ends it; Usage and Limited can be called afterwards; may be nil
}

// Open returns the call's connection. A nil Connect leaves the CLI its own way.
func (c Connect) Open(ctx context.Context, call Call) (Connection, error) {
	conn := Connection{}
	if c != nil {
		var err error
		if conn, err = c(ctx, call); err != nil {
			return Connection{}, AsFailure(err)
		}
	}
	if conn.Close == nil {
		conn.Close = func() {}
	}
	return conn, nil
}
