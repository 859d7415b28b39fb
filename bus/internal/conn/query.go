package conn

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// Answer holds the end of a reply that has several messages.
type Answer struct {
	// Last is the sequence of the last message; 0 if there was none.
	Last uint64
	// More says that messages are left.
	More bool
	// upTo answers requests for last messages: the sequence up to which the
	// replica has the stream.
	upTo uint64
}

// Query asks for stored messages: for those on a subject or filter from a place
// on, in their order, or for the last ones of some subjects.
type Query struct {
	// Seq is the sequence to begin at; or Since the time.
	Seq   uint64     `json:"seq,omitempty"`
	Since *time.Time `json:"start_time,omitempty"`
	// Next is the subject or filter.
	Next string `json:"next_by_subj,omitempty"`
	// Lasts, in place of Next, lists the subjects whose last messages are asked
	// for: those up to the sequence UpTo; 0: all.
	Lasts []string `json:"multi_last,omitempty"`
	UpTo  uint64   `json:"up_to_seq,omitempty"`
	// Batch bounds the messages of one answer, and MaxBytes their bytes, about; 0: answerBytes.
	Batch    int `json:"batch,omitempty"`
	MaxBytes int `json:"max_bytes,omitempty"`

	// last, in place of all of that, is the subject whose last message is asked for.
	last string
}

// MarshalJSON returns the query as the server reads it.
func (q *Query) MarshalJSON() ([]byte, error) {
	if q.last != "" {
		return json.Marshal(map[string]string{"last_by_subj": q.last})
	}
	type plain Query
	return json.Marshal((*plain)(q))
}

// Get asks for several messages at once, and calls do with each. Its answer
// also counts the messages that it passed on before an error. Who reads singly
// is answered by the leader, others by any replica.
func (c *Conn) Get(ctx context.Context, stream string, q *Query, do func(Stored) error) (a Answer, err error) {
	if c.Singly {
		return singly(ctx, c, stream, q, do)
	}
	bounded := *q
	bounded.MaxBytes = cmp.Or(q.MaxBytes, answerBytes)
	data, err := json.Marshal(&bounded)
	if err != nil {
		return a, err
	}
	inbox := c.NC.NewInbox()
	sub, err := c.NC.SubscribeSync(inbox)
	if err != nil {
		return a, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := c.NC.PublishRequest(directGet+stream, inbox, data); err != nil {
		return a, err
	}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return a, err
		}
		if m.Header == nil {
			continue // who stored it wrote headers that cannot be read, and it cannot be told which message it is
		}
		seq := Number(m, "Nats-Sequence")
		status := m.Header.Get("Status")
		if seq > 0 { // a stored message, whatever its publisher wrote
			status = ""
		}
		switch status {
		case "":
		case "204": // the end
			left := Number(m, "Nats-Num-Pending")
			a.More, a.upTo = left > 0, Number(m, "Nats-UpTo-Sequence")
			a.Last = max(a.Last, Number(m, "Nats-Last-Sequence")) // also of those that could not be read
			return a, nil
		case "404":
			return a, nil
		default:
			return a, fmt.Errorf("the server answers %s %s", status, m.Header.Get("Description"))
		}
		if err := do(fetched(m)); err != nil {
			return a, err
		}
		a.Last = seq
	}
}

// fetched returns a stored message that a direct get answers, or a runner: it has the header
// of the server once more than what was stored.
func fetched(m *nats.Msg) Stored {
	return Stored{
		Subject: Stamp(m, "Nats-Subject"), Seq: Number(m, "Nats-Sequence"), Data: m.Data, Header: m.Header,
		Relayed: len(m.Header.Values(relayedBy)) > 1,
	}
}

// Number returns a header that the server sets, as a number; 0 if it is missing
// or none.
func Number(m *nats.Msg, header string) uint64 {
	n, err := strconv.ParseUint(Stamp(m, header), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Stamp returns the value of a header that the server itself set: it comes after what the
// publisher may have put there.
func Stamp(m *nats.Msg, header string) string {
	values := m.Header.Values(header)
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}
