package work

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// longestAnswer is the longest time for which one answer of a runner is waited for before the
// result is sent again.
const longestAnswer = 30 * time.Second

// RefusedError says that no runner can decide on a result, ever. The result is
// among the dead letters; Reason is for people.
type RefusedError struct{ Reason string }

// Results hands results of workers to runners. It is safe for concurrent use.
type Results struct {
	conn *conn.Conn

	// settings is when the last runner that answered said that all runners read
	// settings, in nanoseconds since 1970; 0 if it did not.
	settings atomic.Int64
}

// confirmedFor is for how long the word of a runner counts: whoever hears
// nothing for longer may next meet an older one.
const confirmedFor = 30 * time.Second

// NewResults returns the Results of a connection.
func NewResults(c *conn.Conn) *Results {
	return &Results{conn: c}
}

func (e *RefusedError) Error() string { return "the runner refuses the result: " + e.Reason }

// Publish hands a worker's result to a runner, and returns when the decision on
// it is journaled. It tries for as long as that takes or until ctx ends; doing
// it again changes nothing. Errors besides ctx's: *TooLargeError,
// *RefusedError, and those of a malformed result.
func (rs *Results) Publish(ctx context.Context, r forge.Result) error {
	return rs.report(ctx, &r, 1)
}

// Republish is Publish for a result that may have been published before: then
// effects that a killed runner left undone are dispatched.
func (rs *Results) Republish(ctx context.Context, r forge.Result) error {
	return rs.report(ctx, &r, 2)
}

// MarshalResult returns a result's bytes, to be kept until it is published.
func MarshalResult(r forge.Result) ([]byte, error) { return wire.Results.Marshal(&r) }

// UnmarshalResult is the inverse of MarshalResult.
func UnmarshalResult(data []byte) (forge.Result, error) { return wire.Results.Unmarshal(data) }

// resultMessage returns a result as a message.
func (rs *Results) resultMessage(r *forge.Result) (*nats.Msg, error) {
	subject, err := subjects.Result(r)
	if err != nil {
		return nil, fmt.Errorf("publish result: %w", err)
	}
	data, err := wire.Results.Marshal(rs.readable(r))
	if err != nil {
		return nil, fmt.Errorf("publish result: %w", err)
	}
	m, err := rs.conn.Message(subject, data)
	if err != nil {
		return nil, fmt.Errorf("publish result: %w", err)
	}
	return m, nil
}

// readable returns a result as all runners can read it: until one has said that
// they read the settings of a policy, it has none, which are for people alone.
// Otherwise an older runner could not go on with the intent.
func (rs *Results) readable(r *forge.Result) *forge.Result {
	if rs.reads() {
		return r
	}
	without := *r
	without.Policy = withoutSettings(r.Policy)
	if a := forge.As[*forge.Analysis](r.Output); a != nil {
		found := *a
		found.Policy = withoutSettings(a.Policy)
		without.Output = &found
	}
	return &without
}

// reads reports whether a runner has said lately that all runners read settings.
func (rs *Results) reads() bool {
	at := rs.settings.Load()
	return at != 0 && time.Since(time.Unix(0, at)) < confirmedFor
}

// listen has a runner answer before a result with settings is sent, where none
// has lately: it is told once more that the attempt has begun, which changes
// nothing. Otherwise the first analysis of a project would tell none.
func (rs *Results) listen(ctx context.Context, r *forge.Result) {
	if rs.readable(r) == r || !hasSettings(r) {
		return
	}
	begun := *r
	begun.Output, begun.Policy, begun.Usage = &forge.Started{}, nil, forge.Usage{}
	if m, err := rs.resultMessage(&begun); err == nil {
		_, _ = rs.ask(ctx, m, false, false, rs.conn.AnswerTimeout) // without an answer the settings are left out
	}
}

// hasSettings reports whether a result has settings.
func hasSettings(r *forge.Result) bool {
	a := forge.As[*forge.Analysis](r.Output)
	return r.Policy != nil && len(r.Policy.Settings) > 0 || a != nil && a.Policy != nil && len(a.Policy.Settings) > 0
}

// withoutSettings returns a policy without its settings.
func withoutSettings(p *forge.Policy) *forge.Policy {
	if p == nil || len(p.Settings) == 0 {
		return p
	}
	without := *p
	without.Settings = nil
	return &without
}

// ask signs a result and sends it. It is signed each time: by the key that the account
// has now, at the time at which it is sent, however long it waited for a runner; alone, if it
// was refused with others.
func (rs *Results) ask(ctx context.Context, m *nats.Msg, urgent, alone bool, timeout time.Duration) (*nats.Msg, error) {
	var answered func()
	var err error
	if alone {
		answered, err = rs.conn.Signer.SignAlone(m)
	} else {
		answered, err = rs.conn.Signer.Sign(m, urgent)
	}
	if err != nil {
		return nil, err
	}
	defer answered()
	answer, err := rs.conn.Ask(ctx, m, timeout)
	if err == nil {
		rs.conn.Signer.Answered(answer.Header)
		at := int64(0)
		if answer.Header.Get(wire.HeaderSettings) != "" {
			at = time.Now().UnixNano()
		}
		rs.settings.Store(at)
	}
	return answer, err
}

// report sends a result until it is decided. delivery counts how often a runner
// may have got it; it does not grow where no runner was there.
func (rs *Results) report(ctx context.Context, r *forge.Result, delivery int) error {
	rs.listen(ctx, r)
	refused := false
	for attempt := 0; ; attempt++ {
		m, err := rs.resultMessage(r) // anew each time: what the runners can read may be less by now
		if err != nil {
			return err
		}
		m.Header.Set(wire.HeaderDelivery, strconv.Itoa(delivery))
		answer, err := rs.ask(ctx, m, r.Attempt.Step.OfProject(), refused, min(rs.conn.AnswerTimeout<<min(attempt, 3), longestAnswer))
		pause := conn.Backoff(attempt)
		switch {
		case err == nil:
			if reason := answer.Header.Get(wire.HeaderReason); reason != "" {
				// An older runner may have come that cannot read this signature.
				// So the next one is of this result alone, also if a newer runner,
				// which has not seen the older one, answers others meanwhile.
				if !refused && signed.Together(m.Header.Get(signed.Header)) {
					refused = true
					continue
				}
				return &RefusedError{reason}
			}
			if answer.Header.Get(wire.HeaderDecided) != "" {
				return nil
			}
			if again, badErr := time.ParseDuration(answer.Header.Get(wire.HeaderAgain)); badErr == nil {
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
			rs.conn.Log.WarnContext(ctx, "a result waits for a runner; trying again", "subject", m.Subject, "error", err)
		}
		if conn.Sleep(ctx, pause) != nil {
			return fmt.Errorf("publish result: %w", err)
		}
	}
}
