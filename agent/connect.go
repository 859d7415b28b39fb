package agent

import (
	"context"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Connect opens the way to the model for one call, such as a token and an address of
// package gateway that are valid for this call alone. An error is a *Failure.
type Connect func(ctx context.Context, call Call) (Connection, error)

// Connection is one call's way to its model.
type Connection struct {
	// Env has KEY=VALUE variables for the CLI. They override those of the back end's
	// options.
	Env []string
	// Usage returns the tokens and the cost counted on the way to the model so far,
	// more exactly than the CLI reports them. Nil if the connection does not count.
	Usage func() forge.Usage
	// Limited returns until when the model refuses calls, as its last refusal said;
	// zero if it did not refuse or did not say. May be nil.
	Limited func() time.Time
	// Spent reports whether a request was refused because what is left of the call's budget
	// could not pay for it. May be nil.
	Spent func() bool
	// Close ends the connection. Usage, Limited and Spent can still be called. May be nil, but
	// not in the result of Connect.Open.
	Close func()
}

// Open returns the call's connection. A nil Connect returns one that adds nothing, so
// that the CLI uses the credentials of its options.
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
