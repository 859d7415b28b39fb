package bus

import (
	"context"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/bus/decide"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/live"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/bus/transcripts"
	"github.com/pfl-forge/pfl-forge/bus/work"
)

// Bus is a connection to the server, divided into doors by what their users need. It is
// safe for concurrent use, and reconnects by itself for as long as it takes.
type Bus struct {
	conn         *conn.Conn
	stalledAfter time.Duration // see there

	Journal     *journal.Journal      // the machines' journals, and the summaries in them
	Events      *decide.Events        // a runner's side: what machines have to decide on
	Effects     *decide.Effects       // a runner's side: what follows from decisions
	Changes     *changes.Stream       // what happens to intents, for everybody to follow
	Commands    *work.Commands        // a worker's side: what it has to do
	Results     *work.Results         // a worker's side: what came of it
	Leases      *work.Leases          // the right to work on a task
	Submissions *requests.Submissions // what people and systems ask for
	Leftovers   *requests.Leftovers   // what finished intents left, and its removal
	Presence    *presence.Services    // which services run
	Live        *live.Messages        // messages that are not stored: progress and the like
	Transcripts *transcripts.Stream   // what agents and commands did, line by line
	Objects     *objects.Store        // files that workers hand on to one another
}

// Connect returns a connected bus. While the server cannot be reached it tries
// again until ctx ends; refused credentials are an error at once. No error names
// the URL, which may hold a password.
func Connect(ctx context.Context, cfg Config) (*Bus, error) {
	c, err := dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	log := journal.New(c)
	results, leases := work.NewResults(c), work.NewLeases(c)
	messages := live.New(c)
	submissions := requests.NewSubmissions(c, log)
	return &Bus{
		conn: c, stalledAfter: stalledAfter,
		Journal:     log,
		Events:      decide.NewEvents(c, submissions),
		Effects:     decide.NewEffects(c, messages),
		Changes:     changes.New(c),
		Commands:    work.NewCommands(c, log, results, leases),
		Results:     results,
		Leases:      leases,
		Submissions: submissions,
		Leftovers:   requests.NewLeftovers(c),
		Presence:    presence.New(c),
		Live:        messages,
		Transcripts: transcripts.New(c),
		Objects:     objects.New(c),
	}, nil
}
