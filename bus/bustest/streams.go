package bustest

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// DeleteStream deletes a stream, as somebody might. The next Connect makes it again, empty.
func (s *Server) DeleteStream(t testing.TB, stream string) {
	t.Helper()
	s.jetstream(t, func(ctx context.Context, js jetstream.JetStream) error { return js.DeleteStream(ctx, stream) })
}

// Forget makes a stream lose all but its newest messages.
func (s *Server) Forget(t testing.TB, stream string, keep int64) {
	t.Helper()
	for _, most := range []int64{keep, -1} {
		s.change(t, stream, func(cfg *jetstream.StreamConfig) { cfg.MaxMsgs = most })
	}
}

// Fill makes a stream take nothing more.
func (s *Server) Fill(t testing.TB, stream string) {
	t.Helper()
	s.change(t, stream, func(cfg *jetstream.StreamConfig) { cfg.MaxBytes, cfg.Discard = 1, jetstream.DiscardNew })
}

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
