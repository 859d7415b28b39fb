package bustest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// DeleteStream deletes a stream with its messages and consumers, as an operator
// might by mistake. The next Connect makes it again, empty.
func (s *Server) DeleteStream(t testing.TB, stream string) {
	t.Helper()
	s.jetstream(t, func(ctx context.Context, js jetstream.JetStream) error { return js.DeleteStream(ctx, stream) })
}

// Forget makes a stream drop all but its newest messages, as a limit on its
// size would. Afterwards it has no such limit, and takes new messages as
// before.
func (s *Server) Forget(t testing.TB, stream string, keep int64) {
	t.Helper()
	for _, most := range []int64{keep, -1} {
		s.change(t, stream, func(cfg *jetstream.StreamConfig) { cfg.MaxMsgs = most })
	}
}

// Fill makes a stream refuse every further message, as one at its limit does.
// Stored messages stay.
func (s *Server) Fill(t testing.TB, stream string) {
	t.Helper()
	s.change(t, stream, func(cfg *jetstream.StreamConfig) { cfg.MaxBytes, cfg.Discard = 1, jetstream.DiscardNew })
}

// change updates a stream's configuration in place.
func (s *Server) change(t testing.TB, stream string, change func(*jetstream.StreamConfig)) {
	t.Helper()
	s.jetstream(t, func(ctx context.Context, js jetstream.JetStream) error {
		is, err := js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		cfg := is.CachedInfo().Config
		change(&cfg)
		_, err = js.UpdateStream(ctx, cfg)
		return err
	})
}

// jetstream runs a function on a connection of its own, which is closed
// afterwards. An error fails the test.
func (s *Server) jetstream(t testing.TB, do func(context.Context, jetstream.JetStream) error) {
	t.Helper()
	ctx := wait.Context(t)
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatalf("bustest: %v", err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err == nil {
		err = do(ctx, js)
	}
	if err != nil {
		t.Fatalf("bustest: %v", err)
	}
}

// DeliverAgain has the server deliver a command once more whose worker holds a
// lease, as if that worker had been cut off.
func (s *Server) DeliverAgain(t testing.TB, lease string) {
	t.Helper()
	s.jetstream(t, func(ctx context.Context, js jetstream.JetStream) error {
		in, err := js.Stream(ctx, streams.Leases)
		if err != nil {
			return err
		}
		m, err := in.GetLastMsgForSubject(ctx, lease)
		if err != nil {
			return err
		}
		var held struct{ Ack string }
		if err := json.Unmarshal(m.Data, &held); err != nil {
			return err
		}
		return errors.Join(js.Conn().Publish(held.Ack, []byte("-NAK")), js.Conn().Flush())
	})
}

// Alter writes all messages of a subject anew, the first one that holds a text with
// another one of the same length in its place, as a person with the right to write to
// the stream can. Other subjects stay.
func (s *Server) Alter(t testing.TB, stream, subject, text, other string) {
	t.Helper()
	s.jetstream(t, func(ctx context.Context, js jetstream.JetStream) error {
		in, err := js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		var list [][]byte
		altered := false
		for seq := uint64(1); ; {
			m, err := in.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(subject))
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				break
			}
			if err != nil {
				return err
			}
			data := m.Data
			if !altered {
				data = bytes.ReplaceAll(data, []byte(text), []byte(other))
				altered = !bytes.Equal(data, m.Data)
			}
			list, seq = append(list, data), m.Sequence+1
		}
		if !altered {
			return fmt.Errorf("%q is in none of the %d messages of %s", text, len(list), subject)
		}
		if err := in.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
			return err
		}
		for _, data := range list {
			if _, err := js.Publish(ctx, subject, data); err != nil {
				return err
			}
		}
		return nil
	})
}

// AppendNewer appends a record to a journal as a newer runner may have written
// it: a copy of the last one, chained to it by its hash, with a field that this
// version does not know. It returns the reference of the record.
func (s *Server) AppendNewer(t testing.TB, stream, subject string) (ref chain.Ref) {
	t.Helper()
	s.jetstream(t, func(ctx context.Context, js jetstream.JetStream) error {
		in, err := js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		last, err := in.GetLastMsgForSubject(ctx, subject)
		if err != nil {
			return err
		}
		// Hashes are of one length, so that the new one fits where the old one
		// was: the last field of a record.
		all := regexp.MustCompile("[0-9a-f]{64}").FindAll(last.Data, -1)
		if len(all) == 0 {
			return fmt.Errorf("the last message of %s carries no hash", subject)
		}
		data := bytes.ReplaceAll(last.Data, all[len(all)-1], []byte(chain.Of(subject, last.Data).String()))
		data = append(data, 0xf8, 0x3f, 0x01)
		ack, err := js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: data, Header: nats.Header{wire.HeaderKind: {wire.KindRecord}}})
		if err == nil {
			ref = chain.Ref{Subject: subject, Seq: ack.Sequence, Hash: chain.Of(subject, data)}
		}
		return err
	})
	return ref
}

// Report shows with the test's output what waits in the streams that are emptied
// by their readers, and how far those are: for a test that waits in vain.
func (s *Server) Report(t testing.TB) {
	t.Helper()
	s.jetstream(t, func(ctx context.Context, js jetstream.JetStream) error {
		for _, name := range []string{streams.Intents, streams.Commands, streams.Wakes} {
			stream, err := js.Stream(ctx, name)
			if err != nil {
				return err
			}
			info, err := stream.Info(ctx, jetstream.WithSubjectFilter(">"))
			if err != nil {
				return err
			}
			t.Logf("%s: messages %d to %d, %d there", name, info.State.FirstSeq, info.State.LastSeq, info.State.Msgs)
			if name != streams.Intents { // that one keeps what was read
				for subject, n := range info.State.Subjects {
					t.Logf("  %s %d", subject, n)
				}
			}
			consumers := stream.ListConsumers(ctx)
			for c := range consumers.Info() {
				if c.NumAckPending == 0 && c.NumPending == 0 && c.AckFloor.Stream == 0 {
					continue // its reader was never given a message
				}
				t.Logf("  consumer %s: delivered %d, acknowledged up to %d, %d unacknowledged, %d delivered again, %d to come, %d requests",
					c.Name, c.Delivered.Stream, c.AckFloor.Stream, c.NumAckPending, c.NumRedelivered, c.NumPending, c.NumWaiting)
			}
			if err := consumers.Err(); err != nil {
				return err
			}
		}
		return nil
	})
}
