package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
)

// Results are stored nowhere but in the journal: a worker asks a runner to decide
// on its result, and keeps the result until the runner answers that the decision is
// journaled. An answer has one of headerDecided, headerAgain and headerReason, which
// says that nobody will ever decide on it.
const (
	headerDelivery = "Forge-Delivery" // of a result: how often it was sent, counted from 1
	headerDecided  = "Forge-Decided"  // the decision is journaled, and its effects are dispatched
	headerAgain    = "Forge-Again"    // not decided; send it again after this long
)

// answerTimeout is how long the first answer may take. Under load the next ones may
// take longer.
const answerTimeout = 5 * time.Second

// RefusedError says that a runner cannot decide on a result, ever. It is among the
// dead letters.
type RefusedError struct{ Reason string }

// Results hands results of workers to runners.
type Results struct {
	conn *Conn
}

func (e *RefusedError) Error() string { return "the runner refuses the result: " + e.Reason }

// Publish hands a worker's result to a runner, and returns when what it
// decided is journaled. It tries for as long as that takes or until ctx ends; doing
// it again changes nothing. Errors besides ctx's: *TooLargeError, *RefusedError, and
// what is wrong with the result itself.
func (rs *Results) Publish(ctx context.Context, r forge.Result) error {
	return rs.report(ctx, &r, 1)
}

// Republish is Publish for a result that may have been published
// before: what a runner that was killed left undone then is done.
func (rs *Results) Republish(ctx context.Context, r forge.Result) error {
	return rs.report(ctx, &r, 2)
}

// MarshalResult returns a result's bytes, to be kept until it is published.
func MarshalResult(r forge.Result) ([]byte, error) { return results.Marshal(&r) }

// UnmarshalResult is the inverse of MarshalResult.
func UnmarshalResult(data []byte) (forge.Result, error) { return results.Unmarshal(data) }

func (rs *Results) resultMessage(r *forge.Result) (*nats.Msg, error) {
	subject, err := resultSubject(r)
	if err != nil {
		return nil, fmt.Errorf("publish result: %w", err)
	}
	data, err := results.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("publish result: %w", err)
	}
	m, err := rs.conn.message(subject, data)
	if err != nil {
		return nil, fmt.Errorf("publish result: %w", err)
	}
	return m, nil
}

func (rs *Results) report(ctx context.Context, r *forge.Result, delivery int) error {
	m, err := rs.resultMessage(r)
	if err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		m.Header.Set(headerDelivery, strconv.Itoa(delivery))
		answer, err := rs.conn.ask(ctx, m, min(rs.conn.answerTimeout<<min(attempt, 3), ackWait))
		pause := backoff(attempt)
		switch {
		case err == nil:
			if reason := answer.Header.Get(headerReason); reason != "" {
				return &RefusedError{reason}
			}
			if answer.Header.Get(headerDecided) != "" {
				return nil
			}
			if again, badErr := time.ParseDuration(answer.Header.Get(headerAgain)); badErr == nil {
				pause = again
			} // else somebody else answers, such as a stream on the same subject
			err = errors.New("it is not decided yet")
		case errors.Is(err, nats.ErrConnectionClosed), ctx.Err() != nil:
			return fmt.Errorf("publish result: %w", err)
		}
		if !errors.Is(err, nats.ErrNoResponders) { // otherwise nobody has got it
			delivery++
		}
		if attempt%30 == 0 {
			rs.conn.log.Warn("a result waits for a runner; trying again", "subject", m.Subject, "error", err)
		}
		if sleep(ctx, pause) != nil {
			return fmt.Errorf("publish result: %w", err)
		}
	}
}

// ask sends a request and returns its answer. It waits for a connection, and fails
// when that is lost, since the answer may be lost with it.
func (c *Conn) ask(ctx context.Context, m *nats.Msg, timeout time.Duration) (*nats.Msg, error) {
	connection := c.connection.Load()
	if !c.nc.IsConnected() {
		select {
		case <-connection.Done():
			connection = c.connection.Load()
		case <-c.closed:
			return nil, nats.ErrConnectionClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer context.AfterFunc(connection, cancel)()
	return c.nc.RequestMsgWithContext(ctx, m)
}

// connection ends when the bus has connected anew.
type connection struct {
	context.Context //nolint:containedctx // its end is all that it is
	end             context.CancelFunc
}

func newConnection() *connection {
	ctx, cancel := context.WithCancel(context.Background())
	return &connection{ctx, cancel}
}

// reconnected begins a new connection and ends the one before.
func (c *Conn) reconnected() { c.connection.Swap(newConnection()).end() }
