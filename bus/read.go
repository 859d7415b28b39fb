package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// batchSize is how many messages one request reads.
const batchSize = 500

// stored is a message as it is in a stream.
type stored struct {
	Subject string      `json:"subject"`
	Seq     uint64      `json:"seq"`
	Data    []byte      `json:"data"`
	Header  nats.Header `json:"-"` // only of get
}

// api calls the JetStream API, as $JS.API.<name>.
func (b *Bus) api(ctx context.Context, name string, request, response any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	reply, err := b.nc.RequestWithContext(ctx, "$JS.API."+name, data)
	if err != nil {
		return fmt.Errorf("call %s: %w", name, err)
	}
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(reply.Data, &failed); err != nil {
		return fmt.Errorf("call %s: %w", name, err)
	}
	if failed.Error != nil {
		return fmt.Errorf("call %s: %w", name, failed.Error)
	}
	return json.Unmarshal(reply.Data, response)
}

// last returns the last message on a subject, or ErrNotFound. It asks the
// stream's leader: what was acknowledged is seen.
func (b *Bus) last(ctx context.Context, stream, subject string) (stored, error) {
	var reply struct {
		Message stored `json:"message"`
	}
	request := map[string]string{"last_by_subj": subject}
	err := b.api(ctx, "STREAM.MSG.GET."+stream, request, &reply)
	var refused *jetstream.APIError
	if errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeMessageNotFound {
		return stored{}, fmt.Errorf("read %s: %w", subject, ErrNotFound)
	}
	return reply.Message, err
}

// each calls do with every message on a subject, in order. It reads from any
// replica: the newest messages may be missing.
func (b *Bus) each(ctx context.Context, stream, subject string, do func(stored) error) error {
	for from := uint64(1); ; {
		last, more, err := b.get(ctx, stream, map[string]any{"seq": from, "batch": batchSize, "next_by_subj": subject}, do)
		if err != nil || !more {
			return err
		}
		from = last + 1
	}
}

// lasts calls do with the last message of every subject that a filter matches.
func (b *Bus) lasts(ctx context.Context, stream, filter string, do func(stored) error) error {
	ctx, cancel := context.WithTimeout(ctx, 4*requestTimeout)
	defer cancel()
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return err
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return err
	}
	subjects := slices.Sorted(maps.Keys(info.State.Subjects))
	for chunk := range slices.Chunk(subjects, batchSize) {
		if _, _, err := b.get(ctx, stream, map[string]any{"multi_last": chunk, "batch": batchSize}, do); err != nil {
			return err
		}
	}
	return nil
}

// get makes one request for several messages. It returns the last sequence in
// the answer, and whether more messages follow.
func (b *Bus) get(ctx context.Context, stream string, request map[string]any, do func(stored) error) (seq uint64, more bool, err error) {
	data, err := json.Marshal(request)
	if err != nil {
		return 0, false, err
	}
	inbox := b.nc.NewInbox()
	sub, err := b.nc.SubscribeSync(inbox)
	if err != nil {
		return 0, false, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := b.nc.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, data); err != nil {
		return 0, false, err
	}
	for {
		m, err := next(ctx, sub)
		if err != nil {
			return seq, false, err
		}
		switch status := m.Header.Get("Status"); status {
		case "":
		case "204": // the end of the answer
			left, err := strconv.Atoi(m.Header.Get("Nats-Num-Pending"))
			return seq, left > 0, err
		case "404":
			return seq, false, nil
		default:
			return seq, false, fmt.Errorf("the server answers %s %s", status, m.Header.Get("Description"))
		}
		if seq, err = strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64); err != nil {
			return seq, false, err
		}
		if err := do(stored{Subject: m.Header.Get("Nats-Subject"), Seq: seq, Data: m.Data, Header: m.Header}); err != nil {
			return seq, false, err
		}
	}
}

func next(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return sub.NextMsgWithContext(ctx)
}
