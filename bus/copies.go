package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
)

// MissingCopies returns how many copies of streams are not current: the server that keeps
// one is away, or has not caught up with the stream's leader. While one is missing work
// goes on, and the loss of one more server may stop it. A single server keeps no copies.
func (b *Bus) MissingCopies(ctx context.Context) (int, error) {
	missing := 0
	for _, declared := range streams.All(b.conn.Replicas) {
		s, err := b.look(ctx, declared.Name)
		if err != nil {
			return 0, fmt.Errorf("look for the copies of stream %s: %w", declared.Name, err)
		}
		missing += missingCopies(s.CachedInfo())
	}
	return missing, nil
}

// look is stream for a moment, whatever time the caller has: a server that goes
// takes the question with it, and it is not asked again.
func (b *Bus) look(ctx context.Context, name string) (jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
	defer cancel()
	return b.stream(ctx, name)
}

// missingCopies counts for one stream. Its leader answers, and lists the others.
func missingCopies(info *jetstream.StreamInfo) int {
	missing := info.Config.Replicas - 1
	if info.Cluster == nil {
		return max(0, missing)
	}
	for _, peer := range info.Cluster.Replicas {
		if peer.Current && !peer.Offline {
			missing--
		}
	}
	return max(0, missing)
}
