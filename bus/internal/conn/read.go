package conn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

// BatchSize is the number of messages that one request reads, and answerBytes bounds their size,
// about: the server closes a connection over which it cannot bring one answer within ten seconds.
const (
	BatchSize   = 500
	answerBytes = 4 << 20
)

// Stored is a message as it is in a stream.
type Stored struct {
	Subject string `json:"subject"`
	Seq     uint64 `json:"seq"`
	Data    []byte `json:"data"`
	// Header is as the message was stored; what was not delivered by a consumer has after
	// that what the server says of it: Nats-Stream, Nats-Subject, Nats-Sequence, Nats-Time-Stamp.
	Header nats.Header `json:"-"`
	// Relayed says that the server itself put the message there, as the answer to a direct
	// get: see [wire.Relayed].
	Relayed bool `json:"-"`
}

// relayedBy is the header by which a message that the server relayed is told from others.
const relayedBy = "Nats-Stream"

// Record returns the message as a record of a journal. The error is a *wire.GarbageError or a
// *wire.UnknownError.
func (m Stored) Record() (forge.Record, error) {
	if m.Relayed {
		return forge.Record{}, wire.Garbage("Record", "it is a copy from another place, which nobody may send here")
	}
	rec, err := wire.Records.Unmarshal(m.Data)
	if newer := rules.Of(&rec); err == nil && newer > rules.Newest {
		// A fold by the rules of this program would lead to another state than
		// that in which it was decided.
		what := fmt.Sprintf("rules: version %d, and this program has those up to %d", newer, rules.Newest)
		return forge.Record{}, &wire.UnknownError{Message: "Record", What: what}
	}
	return rec, wire.OfKind(err, m.Header, wire.KindRecord)
}

// Summary returns the summary of a message that is a record of a journal, with errors as Record.
func (m Stored) Summary() (forge.Summary, error) {
	if m.Relayed {
		_, err := m.Record()
		return forge.Summary{}, err
	}
	s, err := wire.ReadSummary(m.Data)
	return s, wire.OfKind(err, m.Header, wire.KindRecord)
}

// Patiently calls f, which can be repeated, until it is answered or ctx ends,
// but at most five times: while a stream has no leader, there is no answer.
func Patiently(ctx context.Context, f func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		try, cancel := context.WithTimeout(ctx, time.Duration(attempt)*time.Second)
		err := f(try)
		cancel()
		if err == nil || attempt == 5 || !Unanswered(err) || Sleep(ctx, Backoff(attempt)) != nil {
			return err
		}
	}
}

// patiently is Patiently for a function that publishes on a subject. That it may not is
// told at once.
func (c *Conn) patiently(ctx context.Context, subject string, f func(context.Context) error) error {
	return c.Permitted(ctx, subject, func(ctx context.Context) error { return Patiently(ctx, f) })
}

// directGet begins the subjects on which the messages of a stream are asked for.
const directGet = "$JS.API.DIRECT.GET."

// Unanswered reports whether an error only says that there was no answer.
func Unanswered(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) ||
		errors.Is(err, nats.ErrNoResponders) || errors.As(err, &api) && api.Code == 503
}

// API calls the JetStream API, as $JS.API.<name>. The call has to be one that
// can be repeated.
func (c *Conn) API(ctx context.Context, name string, request, response any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	err = c.patiently(ctx, "$JS.API."+name, func(ctx context.Context) error {
		reply, err := c.NC.RequestWithContext(ctx, "$JS.API."+name, data)
		if err != nil {
			return err
		}
		var failed struct {
			Error *jetstream.APIError `json:"error"`
		}
		if err := json.Unmarshal(reply.Data, &failed); err != nil {
			return err
		}
		if failed.Error != nil {
			return failed.Error
		}
		return json.Unmarshal(reply.Data, response)
	})
	if err != nil {
		return fmt.Errorf("call %s: %w", name, err)
	}
	return nil
}

// Last returns the last message on a subject, or ErrNotFound. It asks the
// stream's leader: what was acknowledged is seen.
func (c *Conn) Last(ctx context.Context, stream, subject string) (Stored, error) {
	if c.person != nil {
		return c.person.one(ctx, c, Read{What: ReadLast, Subject: subject})
	}
	return c.getOne(ctx, stream, subject, &Query{last: subject})
}

// First returns the first message on a subject, or ErrNotFound. It asks the stream's leader.
func (c *Conn) First(ctx context.Context, stream, subject string) (Stored, error) {
	if c.person != nil {
		return c.person.one(ctx, c, Read{What: ReadFirst, Subject: subject})
	}
	return c.getOne(ctx, stream, subject, &Query{Seq: 1, Next: subject})
}

// Next returns the first message on a subject after a sequence, or ErrNotFound.
// It asks the stream's leader.
func Next(ctx context.Context, c *Conn, stream, subject string, after uint64) (Stored, error) {
	return c.getOne(ctx, stream, subject, &Query{Seq: after + 1, Next: subject})
}

// getOne asks the leader of a stream for one message.
func (c *Conn) getOne(ctx context.Context, stream, subject string, q *Query) (Stored, error) {
	var reply struct {
		Message struct {
			Stored

			Header []byte    `json:"hdrs"`
			Time   time.Time `json:"time"`
		} `json:"message"`
	}
	err := c.API(ctx, "STREAM.MSG.GET."+stream, q, &reply)
	var refused *jetstream.APIError
	if errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeMessageNotFound {
		return Stored{}, fmt.Errorf("read %s: %w", subject, ErrNotFound)
	}
	if err != nil {
		return Stored{}, err
	}
	m := reply.Message.Stored
	m.Relayed = bytes.Contains(reply.Message.Header, []byte("\r\n"+relayedBy+":"))
	if len(reply.Message.Header) > 0 {
		if m.Header, err = nats.DecodeHeadersMsg(reply.Message.Header); err != nil { // then nothing in them says whose it is
			m.Header, m.Relayed = nil, true
		}
	}
	return m.stamped(stream, reply.Message.Time), nil
}

// stamped returns the message with what the server says of it in the header, as it does
// itself in the answer to a direct get.
func (m Stored) stamped(stream string, at time.Time) Stored {
	if m.Header == nil {
		m.Header = nats.Header{}
	}
	m.Header.Add(relayedBy, stream)
	m.Header.Add("Nats-Subject", m.Subject)
	m.Header.Add("Nats-Sequence", strconv.FormatUint(m.Seq, 10))
	m.Header.Add("Nats-Time-Stamp", at.UTC().Format(time.RFC3339Nano))
	return m
}

// Stamps returns the header that the server adds to a message, without the one that was stored.
func (m Stored) Stamps() nats.Header {
	h := nats.Header{}
	for _, name := range []string{relayedBy, "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp"} {
		h.Set(name, Stamp(&nats.Msg{Header: m.Header}, name))
	}
	return h
}

// At returns the time at which the server stored a message that has its stamps.
func (m Stored) At() (time.Time, error) {
	return time.Parse(time.RFC3339Nano, Stamp(&nats.Msg{Header: m.Header}, "Nats-Time-Stamp"))
}

// Each calls do with every message on a subject, in order, and returns the last
// sequence. It reads from any replica: the newest messages may be missing.
func (c *Conn) Each(ctx context.Context, stream, subject string, do func(Stored) error) (uint64, error) {
	return c.EachAfter(ctx, 0, stream, subject, do)
}

// EachAfter is Each for the messages after a sequence.
func (c *Conn) EachAfter(ctx context.Context, last uint64, stream, subject string, do func(Stored) error) (uint64, error) {
	if c.person != nil {
		return c.person.each(ctx, c, Read{What: ReadNext, Subject: subject, After: last}, do)
	}
	for {
		var a Answer
		err := c.patiently(ctx, directGet+stream, func(ctx context.Context) (err error) {
			a, err = c.Get(ctx, stream, &Query{Seq: last + 1, Batch: BatchSize, Next: subject}, do)
			last = max(last, a.Last)
			return err
		})
		if err != nil || !a.More {
			return last, err
		}
	}
}

// Lasts returns the last message of every subject that a filter matches, as of
// when it was called, in the order of the subjects. Where no runner has made the
// stream yet, there is none.
func (c *Conn) Lasts(ctx context.Context, stream, filter string) ([]Stored, error) {
	return c.LastsWhere(ctx, stream, filter, func(string) bool { return true })
}

// Subjects returns the subjects of a stream that a filter matches and that have a message,
// sorted. Where no runner has made the stream yet, there is none.
func (c *Conn) Subjects(ctx context.Context, stream, filter string) ([]string, error) {
	state, err := c.state(ctx, stream, filter)
	return slices.Sorted(maps.Keys(state.Subjects)), err
}

// Counts returns how many messages each subject of a stream has that a filter matches. Where
// no runner has made the stream yet, there is none.
func (c *Conn) Counts(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	state, err := c.state(ctx, stream, filter)
	return state.Subjects, err
}

// State returns the bounds and the size of a stream. It is zero where no runner has
// made the stream yet.
func (c *Conn) State(ctx context.Context, stream string) (jetstream.StreamState, error) {
	return c.state(ctx, stream, "")
}

// state returns the state of a stream, with the subjects that a filter matches. It is zero
// where no runner has made the stream yet.
func (c *Conn) state(ctx context.Context, stream, filter string) (state jetstream.StreamState, err error) {
	if c.person != nil {
		return state, fmt.Errorf("%w: looking at stream %s as a whole", ErrNotAllowed, stream)
	}
	err = c.patiently(ctx, "$JS.API.STREAM.INFO."+stream, func(ctx context.Context) error {
		s, err := c.JS.Stream(ctx, stream)
		if err != nil {
			return err
		}
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
		if err == nil {
			state = info.State
		}
		return err
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return jetstream.StreamState{}, nil
	}
	return state, err
}

// LastsWhere is Lasts for the subjects that wanted accepts.
func (c *Conn) LastsWhere(ctx context.Context, stream, filter string, wanted func(subject string) bool) ([]Stored, error) {
	if c.person != nil {
		return c.person.lasts(ctx, c, filter, wanted)
	}
	state, err := c.state(ctx, stream, filter)
	if err != nil {
		return nil, err
	}
	subjects := slices.DeleteFunc(slices.Sorted(maps.Keys(state.Subjects)), func(s string) bool { return !wanted(s) })
	list, err := c.LastsOf(ctx, stream, subjects, state.LastSeq)
	slices.SortFunc(list, func(a, b Stored) int { return strings.Compare(a.Subject, b.Subject) })
	return list, err
}

// LastsOf returns the last message of each subject that has one, from replicas
// that have all messages up to a sequence.
func (c *Conn) LastsOf(ctx context.Context, stream string, subjects []string, upTo uint64) ([]Stored, error) {
	list := make([]Stored, 0, len(subjects))
	for chunk := range slices.Chunk(subjects, BatchSize) {
		part, err := lastOf(ctx, c, stream, chunk, upTo)
		if err != nil {
			return nil, err
		}
		list = append(list, part...)
	}
	return list, nil
}

// LastsPage returns the last messages of at most so many subjects that come after one, and the
// subject to go on after; empty if there are no more.
func (c *Conn) LastsPage(
	ctx context.Context, stream, filter, past string, wanted func(subject string) bool, most int,
) (list []Stored, next string, err error) {
	state, err := c.state(ctx, stream, filter)
	if err != nil {
		return nil, "", err
	}
	page := slices.DeleteFunc(slices.Sorted(maps.Keys(state.Subjects)), func(s string) bool { return s <= past || !wanted(s) })
	if len(page) == 0 {
		return nil, "", nil
	}
	if len(page) > most {
		page = page[:most]
		next = page[most-1]
	}
	list, err = lastOf(ctx, c, stream, page, state.LastSeq)
	return list, next, err
}

// lastOf returns the last message of each subject, from a replica that has all
// messages up to a sequence.
func lastOf(ctx context.Context, c *Conn, stream string, subjects []string, upTo uint64) ([]Stored, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*RequestTimeout)
	defer cancel()
	var list []Stored
	for attempt := 0; ; attempt++ {
		var part []Stored
		var a Answer
		err := c.patiently(ctx, directGet+stream, func(ctx context.Context) (err error) {
			part = nil
			a, err = c.Get(ctx, stream, &Query{Lasts: subjects, Batch: BatchSize}, func(m Stored) error {
				part = append(part, m)
				return nil
			})
			return err
		})
		if err != nil {
			return nil, err
		}
		if a.upTo < upTo { // it answers from behind, or everything was purged
			if err := Sleep(ctx, Backoff(attempt)); err != nil {
				return nil, fmt.Errorf("no replica has message %d: %w", upTo, err)
			}
			continue
		}
		list = append(list, part...)
		if !a.More {
			return list, nil
		}
		subjects = slices.DeleteFunc(slices.Clone(subjects), func(s string) bool {
			return slices.ContainsFunc(part, func(m Stored) bool { return m.Subject == s })
		})
	}
}
