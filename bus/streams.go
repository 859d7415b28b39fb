package bus

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
)

// The streams.
const (
	streamIntents  = "FORGE_INTENTS"
	streamJournal  = "FORGE_JOURNAL"
	streamProjects = "FORGE_PROJECTS"
	streamCommands = "FORGE_COMMANDS"
	streamWakes    = "FORGE_WAKES"
	streamLeases   = "FORGE_LEASES"
	streamDead     = "FORGE_DEAD"
)

const (
	epochCommands = "forge.epoch.commands"
	epochWakes    = "forge.epoch.wakes"
)

const (
	day = 24 * time.Hour
	// duplicates is how long a message id is remembered. It spares work; it is
	// not what correctness rests on.
	duplicates = 10 * time.Minute
	// ackWait is after how long a message counts as lost with its consumer.
	ackWait = 30 * time.Second
	// forgetReplica is after how long a replica that is gone loses its consumer.
	// Its commands were given to others long before.
	forgetReplica = day
)

// streams declares every stream.
func streams(replicas int) []jetstream.StreamConfig {
	list := []jetstream.StreamConfig{
		{
			Name:        streamIntents,
			Description: "what people and other systems want",
			Subjects:    []string{"forge.intent.*.submit", "forge.intent.*.from.*.submit", "forge.intent.*.by.*.*"},
			MaxAge:      90 * day,
			Duplicates:  duplicates,
		},
		{
			Name:        streamJournal,
			Description: "every decision on an intent, in order: the truth",
			Subjects:    []string{everyJournal},
			AllowDirect: true,
		},
		{
			Name:        streamProjects, // what a project decides waits for no intent's turn to be written
			Description: "every decision of a project, in order: the truth, too",
			Subjects:    []string{everyProject},
			AllowDirect: true,
		},
		{
			Name:        streamCommands,
			Description: "what workers have to do; rebuilt from the journal when lost",
			Subjects:    []string{"forge.command.>", epochCommands},
			Storage:     jetstream.MemoryStorage,
			Retention:   jetstream.WorkQueuePolicy, // a command goes when its worker is done with it
			MaxAge:      90 * day,
		},
		{
			Name:              streamWakes,
			Description:       "timers, and events between machines; rebuilt from the journal when lost",
			Subjects:          []string{"forge.wake.>", "forge.timer.>", epochWakes},
			Storage:           jetstream.MemoryStorage,
			Retention:         jetstream.WorkQueuePolicy,
			AllowMsgSchedules: true, // so nobody but runners may publish here: a schedule can write to any of its subjects
		},
		{
			Name:              streamLeases,
			Description:       "which replica works on what just now",
			Subjects:          []string{"forge.lease.*.*.*.*"},
			MaxAge:            day,
			MaxMsgsPerSubject: 1,
			AllowMsgTTL:       true,
			AllowDirect:       true,
		},
		{
			Name:        streamDead,
			Description: "what nobody could handle",
			Subjects:    append(advisories(), "forge.dead.*"),
			MaxAge:      90 * day,
			Duplicates:  day,
			AllowDirect: true,
		},
		publications(replicas),
		refusals(),
		{
			Name:        streamTranscripts,
			Description: "what agents and commands did, line by line, for people",
			Subjects:    []string{"forge.transcript.*.*.*.*.*.*"},
			MaxAge:      keepTranscripts,
			MaxBytes:    maxTranscripts, // the oldest goes first
			Duplicates:  duplicates,
			DenyDelete:  true, // workers may publish here, and must not be able to do more
			DenyPurge:   true,
			AllowDirect: true,
		},
		objects(),
		storedTranscripts(),
	}
	for i := range list {
		list[i].Replicas = replicas
	}
	return list
}

// advisories are what the server says about messages that were given up.
func advisories() []string {
	var subjects []string
	for _, s := range []string{streamIntents, streamCommands, streamWakes} {
		subjects = append(subjects,
			"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES."+s+".*",
			"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED."+s+".*")
	}
	return subjects
}

// eventConsumer is the one that all runners share.
func eventConsumer(filter string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       "runner",
		FilterSubject: filter,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       ackWait,
		MaxDeliver:    -1, // a runner counts failures itself, because a retry that it asks for is none
		MaxAckPending: 2000,
	}
}

// commandConsumer is the one that all replicas of a step share; with a replica,
// that replica's own.
func commandConsumer(step forge.Step, replica forge.ReplicaID, limit int) (jetstream.ConsumerConfig, error) {
	filter, err := commandsFor(step, replica)
	cfg := jetstream.ConsumerConfig{
		Durable:       string(step),
		FilterSubject: filter,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       ackWait,
		MaxDeliver:    -1,
		MaxAckPending: limit,
	}
	if replica != "" {
		cfg.Durable += "-on-" + string(replica)
		cfg.InactiveThreshold = forgetReplica
	}
	return cfg, err
}

// Ensure makes the streams that are missing, and changes those that differ from
// what this version declares.
func (b *Bus) Ensure(ctx context.Context) error {
	for _, cfg := range streams(b.replicas) {
		if err := b.ensureStream(ctx, cfg); err != nil {
			return fmt.Errorf("ensure stream %s: %w", cfg.Name, err)
		}
	}
	return nil
}

func (b *Bus) ensureStream(ctx context.Context, cfg jetstream.StreamConfig) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	s, err := b.js.Stream(ctx, cfg.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = b.createStream(ctx, cfg)
		if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return err
		}
		s, err = b.js.Stream(ctx, cfg.Name) // another one was faster
	}
	if err != nil {
		return err
	}
	have := s.CachedInfo().Config
	if want := merged(have, cfg); !reflect.DeepEqual(have, want) {
		_, err = b.js.UpdateStream(ctx, want)
	}
	return err
}

// leastBytes is how far the bound of a stream is lowered, in bytes, where the server has
// no room for it: what is bounded is nothing that work depends on, transcripts that have
// ended least of all.
func leastBytes(stream string) int64 {
	if stream == bucketTranscripts.stream() {
		return 4 << 20
	}
	return 64 << 20
}

func (b *Bus) createStream(ctx context.Context, cfg jetstream.StreamConfig) error {
	least := leastBytes(cfg.Name)
	for {
		_, err := b.js.CreateStream(ctx, cfg)
		var refused *jetstream.APIError
		small := errors.As(err, &refused) && (refused.ErrorCode == storageExceeded || refused.ErrorCode == accountExceeded)
		if !small || cfg.MaxBytes <= least {
			return err
		}
		cfg.MaxBytes = max(cfg.MaxBytes/2, least)
		b.log.Warn("the server has little room; a stream gets less", "stream", cfg.Name, "max_bytes", cfg.MaxBytes)
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
