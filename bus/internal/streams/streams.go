package streams

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

const (
	// Events is the stream of changes, for everybody to follow.
	Events = "FORGE_EVENTS"
	// KeepEvents is how long a follower may be away.
	KeepEvents = 30 * day
	// maxEvents bounds them, in bytes, where an operator has not chosen another bound: some
	// 60,000 changes.
	maxEvents = 64 << 20
)

// publications declares the stream of changes. A single server does not wait for the
// disk there: what a power cut takes is published again, because the stream itself says
// how far it has come.
func publications(replicas int) jetstream.StreamConfig {
	cfg := jetstream.StreamConfig{
		Name:        Events,
		Description: "changes of intents, as CloudEvents, for everybody to follow; made from the journals",
		Subjects:    []string{"forge.event.*.*.*"},
		MaxAge:      KeepEvents,
		MaxBytes:    maxEvents, // the oldest goes first
		DenyDelete:  true,
		DenyPurge:   true,
	}
	if replicas <= 1 {
		cfg.PersistMode = jetstream.AsyncPersistMode
	}
	return cfg
}

// refusals declares the stream in which systems are told what was refused. It is none of
// the changes of intents: there is no intent.
func refusals() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        Refusals,
		Description: "submissions of other systems that were refused, as CloudEvents, with the reasons",
		Subjects:    []string{"forge.refusal.*.*"},
		MaxAge:      KeepEvents,
		MaxBytes:    maxRefusals, // the oldest goes first
		Duplicates:  duplicates,
		DenyDelete:  true,
		DenyPurge:   true,
	}
}

// hooks declares the stream of what came through the hooks of the gateway. Each
// delivery has a subject of its own, by which it is known when it comes again.
// It is in no backup: it holds hints, and the forges know the rest.
func hooks() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        Hooks,
		Description: "what forges and chats told the gateway, as it came",
		Subjects:    []string{subjects.EveryDelivery},
		MaxAge:      keepHooks,
		MaxBytes:    maxHooks, // the oldest goes first
		Duplicates:  leastDuplicates,
		DenyDelete:  true,
		DenyPurge:   true,
		AllowDirect: true,
	}
}

// intake declares the stream of what the rules of intake let in. When it is
// full nothing more is stored, so that nothing is forgotten that counts; its
// bound is some 10,000 entries. It is in no backup: limits count one day.
func intake() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        Intake,
		Description: "what the rules of intake let in, by which their limits count",
		Subjects:    []string{subjects.EveryIntake},
		MaxAge:      2 * day,
		MaxBytes:    maxIntake,
		Discard:     jetstream.DiscardNew,
		Duplicates:  leastDuplicates,
		DenyDelete:  true,
		DenyPurge:   true,
	}
}

const (
	// Intake is the stream of what the rules of intake let in.
	Intake = "FORGE_INTAKE"
	// maxIntake bounds it, in bytes.
	maxIntake = 8 << 20
)

const (
	// Hooks is the stream of what came through the hooks of the gateway.
	Hooks = "FORGE_HOOKS"
	// maxHooks bounds them, in bytes, and keepHooks how long a delivery is
	// known when it comes again: forges send one again for three days.
	maxHooks  = 16 << 20
	keepHooks = 7 * day
)

const (
	// Refusals is the stream in which systems are told what was refused.
	Refusals = "FORGE_REFUSALS"
	// maxRefusals bounds them, in bytes.
	maxRefusals = 8 << 20
)

// The streams.
const (
	Intents  = "FORGE_INTENTS"
	Journal  = "FORGE_JOURNAL"
	Projects = "FORGE_PROJECTS"
	Commands = "FORGE_COMMANDS"
	Wakes    = "FORGE_WAKES"
	Leases   = "FORGE_LEASES"
	Dead     = "FORGE_DEAD"
)

const (
	// EpochCommands is the subject of the mark that the stream of commands has been rebuilt.
	EpochCommands = "forge.epoch.commands"
	// EpochWakes is the subject of the mark that the stream of wakes has been rebuilt.
	EpochWakes = "forge.epoch.wakes"
)

const (
	day = 24 * time.Hour
	// duplicates is how long a message id is remembered. It spares work; it is
	// not what correctness rests on.
	duplicates = 10 * time.Minute
	// leastDuplicates is the same where senders of all projects choose their message
	// ids by themselves: the server would drop a message because another sender has
	// used its id. It remembers ids for no less.
	leastDuplicates = 100 * time.Millisecond
	// AckWait is after how long a message counts as lost with the process that has it. It bounds
	// how long work stands still when a process was killed or a connection cut; one that is at
	// work says so in time (conn.Hold).
	AckWait = 8 * time.Second
	// ForgetReplica is after how long a replica that is gone loses its consumer.
	// Its commands were given to others long before.
	ForgetReplica = day
)

// All declares every stream.
func All(replicas int) []jetstream.StreamConfig {
	list := []jetstream.StreamConfig{
		{
			Name:        Intents,
			Description: "what people and other systems want",
			Subjects: []string{
				"forge.intent.*.submit", "forge.intent.*.from.*.submit", "forge.intent.*.by.*.*",
				"forge.intent.*.from.*.via.*.submit", "forge.intent.*.by.*.via.*.*",
			},
			MaxAge:     90 * day,
			Duplicates: leastDuplicates,
		},
		{
			Name:        Journal,
			Description: "every decision on an intent, in order: the truth",
			Subjects:    []string{subjects.EveryJournal},
			AllowDirect: true,
		},
		{
			Name:        Projects, // what a project decides waits for no intent's turn to be written
			Description: "every decision of a project, in order: the truth, too",
			Subjects:    []string{subjects.EveryProject},
			AllowDirect: true,
		},
		{
			Name:        Commands,
			Description: "what workers have to do; rebuilt from the journal when lost",
			Subjects:    []string{"forge.command.>", EpochCommands},
			Storage:     jetstream.MemoryStorage,
			Retention:   jetstream.WorkQueuePolicy, // a command goes when its worker is done with it
			MaxAge:      90 * day,
		},
		{
			Name:              Wakes,
			Description:       "timers, and events between machines; rebuilt from the journal when lost",
			Subjects:          []string{"forge.wake.>", "forge.timer.>", EpochWakes},
			Storage:           jetstream.MemoryStorage,
			Retention:         jetstream.WorkQueuePolicy,
			AllowMsgSchedules: true, // so nobody but runners may publish here: a schedule can write to any of its subjects
		},
		{
			Name:              Leases,
			Description:       "which replica works on what just now",
			Subjects:          []string{"forge.lease.*.*.*.*"},
			MaxAge:            day,
			MaxMsgsPerSubject: 1,
			AllowMsgTTL:       true,
			AllowDirect:       true,
		},
		{
			Name:        Dead,
			Description: "what nobody could handle",
			Subjects:    append(advisories(), subjects.EveryDead),
			MaxAge:      90 * day,
			Duplicates:  day,
			AllowDirect: true,
		},
		publications(replicas),
		refusals(),
		hooks(),
		intake(),
		{
			Name:        Transcripts,
			Description: "what agents and commands did, line by line, for people",
			Subjects:    []string{subjects.EveryTranscript},
			MaxAge:      keepTranscripts,
			MaxBytes:    maxTranscripts, // the oldest goes first
			Duplicates:  duplicates,
			DenyDelete:  true, // workers may publish here, and must not be able to do more
			DenyPurge:   true,
			AllowDirect: true,
		},
		snapshots(),
		objects(), // the last ones take the room that is left
		storedTranscripts(),
	}
	for i := range list {
		list[i].Replicas = replicas
	}
	return list
}

// Copied returns the streams of a backup, in the order in which they are
// copied. Package backup says why it is this one. Commands, Wakes and snapshots
// are made anew from the journals, and Leases end.
func Copied() []string {
	return []string{
		Intents, Events, Refusals, Journal, Projects, Dead, Transcripts, BucketObjects.Stream(), BucketTranscripts.Stream(),
	}
}

// advisories returns the subjects on which the server reports messages that were given up.
func advisories() []string {
	var subjects []string
	for _, s := range []string{Intents, Commands, Wakes} {
		subjects = append(subjects,
			"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES."+s+".*",
			"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED."+s+".*")
	}
	return subjects
}

const (
	// Transcripts is the stream of what agents did, line by line.
	Transcripts = "FORGE_TRANSCRIPTS"

	// maxTranscripts bounds all transcripts together, in bytes, where an operator
	// has not chosen another bound.
	maxTranscripts  = 1 << 30
	keepTranscripts = 30 * day
)
