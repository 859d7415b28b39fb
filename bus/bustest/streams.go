package bustest

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

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
	nc, err := nats.Connect(s.url)
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
