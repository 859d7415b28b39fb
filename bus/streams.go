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

// Ensure makes the streams that are missing, and changes those that differ from
// what this version declares.
func (b *Bus) Ensure(ctx context.Context) error {
	for _, cfg := range streams.All(b.conn.Replicas) {
		if err := b.ensureStream(ctx, cfg); err != nil {
			return fmt.Errorf("ensure stream %s: %w", cfg.Name, err)
		}
	}
	return nil
}

// ensureStream makes a stream that is missing, and brings one that is there up
// to date. Bounds that an operator has set stay: see merged.
func (b *Bus) ensureStream(ctx context.Context, cfg jetstream.StreamConfig) error {
	ctx, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
	defer cancel()
	s, err := b.conn.JS.Stream(ctx, cfg.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = b.createStream(ctx, cfg)
		if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return err
		}
		s, err = b.conn.JS.Stream(ctx, cfg.Name) // another one was faster
	}
	if err != nil {
		return err
	}
	have := s.CachedInfo().Config
	if want := merged(have, cfg); !reflect.DeepEqual(have, want) {
		_, err = b.conn.JS.UpdateStream(ctx, want)
	}
	return err
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
		_, err := b.conn.JS.CreateStream(ctx, cfg)
		var refused *jetstream.APIError
		small := errors.As(err, &refused) && (refused.ErrorCode == storageExceeded || refused.ErrorCode == accountExceeded)
		if !small || cfg.MaxBytes <= least {
			return err
		}
		cfg.MaxBytes = max(cfg.MaxBytes/2, least)
		b.conn.Log.Warn("the server has little room; a stream gets less", "stream", cfg.Name, "max_bytes", cfg.MaxBytes)
	}
}

// The server's codes for a stream whose bound is more than what it may still use.
const (
	storageExceeded = 10047
	accountExceeded = 10002
)

// merged is a stream's config with what is declared put over it; what is not
// declared, such as limits that an operator chose, stays.
func merged(have, cfg jetstream.StreamConfig) jetstream.StreamConfig {
	want := have
	want.Description, want.Subjects, want.MaxAge = cfg.Description, cfg.Subjects, cfg.MaxAge
	want.AllowDirect, want.DenyDelete, want.DenyPurge = cfg.AllowDirect, cfg.DenyDelete, cfg.DenyPurge
	want.AllowMsgSchedules = cfg.AllowMsgSchedules
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
