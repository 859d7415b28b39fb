package bus

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
)

// ErrReplicas says that a single server was to keep a stream more than once.
var ErrReplicas = errors.New("the server is not part of a cluster")

// Ensure makes the streams that are missing, and changes those that differ from
// what this version declares. It also makes the consumers that the replicas of a worker
// share, so that commands are counted for each step before its first worker is there.
func (b *Bus) Ensure(ctx context.Context) error {
	for _, cfg := range streams.All(b.conn.Replicas) {
		if err := b.ensureStream(ctx, cfg); err != nil {
			if hasCode(err, replicasUnsupported) {
				err = fmt.Errorf("%w, and cannot keep %d copies: %w", ErrReplicas, cfg.Replicas, err)
			}
			return fmt.Errorf("ensure stream %s: %w", cfg.Name, err)
		}
	}
	return b.Commands.Ensure(ctx, b.groups)
}

// isFinal reports whether an error of Ensure stays until a person does something. The
// server's answers that a request is wrong are final; that no server has room is not, since
// others may be about to join.
func isFinal(err error) bool {
	var refused *jetstream.APIError
	return errors.Is(err, ErrNotAllowed) || errors.Is(err, ErrReplicas) ||
		errors.As(err, &refused) && refused.Code == 400 && refused.ErrorCode != noSuitablePeers
}

// hasCode reports whether an error is an answer of the server with a code.
func hasCode(err error, code jetstream.ErrorCode) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) && refused.ErrorCode == code
}

// ensureStream makes a stream that is missing, and brings one that is there up
// to date. Bounds that an operator has set stay: see merged.
func (b *Bus) ensureStream(ctx context.Context, cfg jetstream.StreamConfig) error {
	ctx, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
	defer cancel()
	s, err := b.stream(ctx, cfg.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = b.createStream(ctx, cfg)
		if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return err
		}
		s, err = b.stream(ctx, cfg.Name) // another one was faster
	}
	if err != nil {
		return err
	}
	have := s.CachedInfo().Config
	if want := merged(have, cfg); !reflect.DeepEqual(have, want) {
		err = b.conn.Permitted(ctx, "$JS.API.STREAM.UPDATE."+cfg.Name, func(ctx context.Context) error {
			_, err := b.conn.JS.UpdateStream(ctx, want)
			return err
		})
	}
	return err
}

// stream looks a stream up.
func (b *Bus) stream(ctx context.Context, name string) (s jetstream.Stream, err error) {
	err = b.conn.Permitted(ctx, "$JS.API.STREAM.INFO."+name, func(ctx context.Context) (err error) {
		s, err = b.conn.JS.Stream(ctx, name)
		return err
	})
	return s, err
}

// leastBytes is how far the bound of a stream is lowered, in bytes, where the server has
// no room for it: what is bounded is nothing that work depends on, transcripts that have
// ended least of all.
func leastBytes(stream string) int64 {
	if stream == streams.BucketTranscripts.Stream() {
		return 4 << 20
	}
	return 64 << 20
}

// createStream makes a stream, with a lower bound where the server has too
// little room.
func (b *Bus) createStream(ctx context.Context, cfg jetstream.StreamConfig) error {
	least := leastBytes(cfg.Name)
	for {
		err := b.conn.Permitted(ctx, "$JS.API.STREAM.CREATE."+cfg.Name, func(ctx context.Context) error {
			_, err := b.conn.JS.CreateStream(ctx, cfg)
			return err
		})
		small := hasCode(err, storageExceeded) || hasCode(err, accountExceeded)
		if !small || cfg.MaxBytes <= least {
			return err
		}
		cfg.MaxBytes = max(cfg.MaxBytes/2, least)
		b.conn.Log.WarnContext(ctx, "the server has little room; a stream gets less", "stream", cfg.Name, "max_bytes", cfg.MaxBytes)
	}
}

const (
	// storageExceeded and accountExceeded are the server's codes for a stream whose bound is
	// more than what it may still use.
	storageExceeded = 10047
	accountExceeded = 10002
	// noSuitablePeers is the code for a stream that needs more servers than are there.
	noSuitablePeers = 10005
	// replicasUnsupported is the code for copies on a server that is in no cluster.
	replicasUnsupported = 10074
)

// merged is a stream's config with what is declared put over it; what is not
// declared, such as limits that an operator chose, stays.
func merged(have, cfg jetstream.StreamConfig) jetstream.StreamConfig {
	want := have
	want.Description, want.Subjects, want.MaxAge = cfg.Description, cfg.Subjects, cfg.MaxAge
	want.AllowDirect, want.DenyDelete, want.DenyPurge = cfg.AllowDirect, cfg.DenyDelete, cfg.DenyPurge
	want.AllowMsgSchedules = cfg.AllowMsgSchedules
	want.AllowMsgTTL = have.AllowMsgTTL || cfg.AllowMsgTTL // it cannot be taken back
	if cfg.Duplicates != 0 {
		want.Duplicates = cfg.Duplicates
	}
	if cfg.Replicas != 0 {
		want.Replicas = cfg.Replicas
	}
	if have.PersistMode == jetstream.AsyncPersistMode {
		want.Replicas = have.Replicas // the server has them on one server only
	}
	return want
}
