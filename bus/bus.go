package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/backup"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/bus/decide"
	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/bus/intakes"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/live"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/bus/transcripts"
	"github.com/pfl-forge/pfl-forge/bus/turns"
	"github.com/pfl-forge/pfl-forge/bus/work"
)

// Bus is a connection to the server, divided into doors by what their users need. It is
// safe for concurrent use, and reconnects by itself for as long as it takes.
type Bus struct {
	conn         *conn.Conn
	groups       subjects.Groups
	stalledAfter time.Duration // see there

	// Journal loads and appends the machines' journals, and reads the summaries
	// in them.
	Journal *journal.Journal
	// Events is a runner's side: it delivers the events that machines decide
	// on.
	Events *decide.Events
	// Effects is a runner's side, too: it makes commands, timers and outbox
	// messages happen.
	Effects *decide.Effects
	// Turns is a runner's side, too: it has projects take turns at the workers.
	Turns *turns.Turns
	// Changes publishes every change of an intent, for all who may follow it.
	Changes *changes.Stream
	// Commands is a worker's side: it delivers the commands of a step.
	Commands *work.Commands
	// Results is a worker's side, too: it hands results to a runner.
	Results *work.Results
	// Leases gives the right to work on a task to one replica at a time.
	Leases *work.Leases
	// Submissions carries requests of people and systems to the runners.
	Submissions *requests.Submissions
	// Leftovers asks implementers to remove what finished intents left, and
	// serves that.
	Leftovers *requests.Leftovers
	// Presence lists which services run, and answers who asks for that.
	Presence *presence.Services
	// Live carries messages that are not stored: progress and the like.
	Live *live.Messages
	// Transcripts has the lines of agents and commands while attempts go on.
	Transcripts *transcripts.Stream
	// Deliveries stores the messages of forges and chats to the gateway.
	Deliveries *deliveries.Stream
	// Intakes has the entries by which limits of intake count, for all gateways.
	Intakes *intakes.Stream
	// Objects stores files that workers hand on to one another, and whole
	// transcripts.
	Objects *objects.Store
	// Backups is an administrator's side: it copies all streams, and puts them
	// into an empty server.
	Backups *backup.Store
}

// Connect returns a connected bus, for a command that a person waits for: it tries a server
// that refuses connections or does not answer again until ctx ends, and returns any other
// error at once. A service calls Await. No error names the URL, which may hold a password.
func Connect(ctx context.Context, cfg Config) (*Bus, error) {
	c, err := dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return assemble(c, cfg.Groups)
}

// assemble returns the bus of a connection, or closes it.
func assemble(c *conn.Conn, groups subjects.Groups) (_ *Bus, err error) {
	c.JS, err = jetstream.New(c.NC,
		jetstream.WithDefaultTimeout(conn.RequestTimeout),
		jetstream.WithPublishAsyncTimeout(conn.RequestTimeout))
	if err != nil {
		c.NC.Close()
		return nil, fmt.Errorf("set up JetStream: %w", err)
	}
	log := journal.New(c)
	results, leases := work.NewResults(c), work.NewLeases(c)
	messages := live.New(c)
	submissions := requests.NewSubmissions(c, log)
	line := turns.New(c, log, groups)
	return &Bus{
		conn: c, groups: groups, stalledAfter: stalledAfter,
		Journal:     log,
		Events:      decide.NewEvents(c, submissions),
		Effects:     decide.NewEffects(c, messages, line),
		Turns:       line,
		Changes:     changes.New(c),
		Commands:    work.NewCommands(c, log, results, leases),
		Results:     results,
		Leases:      leases,
		Submissions: submissions,
		Leftovers:   requests.NewLeftovers(c),
		Presence:    presence.New(c),
		Live:        messages,
		Transcripts: transcripts.New(c),
		Deliveries:  deliveries.New(c),
		Intakes:     intakes.New(c),
		Objects:     objects.New(c),
		Backups:     backup.New(c, log),
	}, nil
}
