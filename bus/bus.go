package bus

import (
	"context"
	"time"
)

// Bus is a connection to the server, divided into doors by what their users need. It is
// safe for concurrent use, and reconnects by itself for as long as it takes.
type Bus struct {
	conn         *Conn
	stalledAfter time.Duration // see there

	Journal     *Journal     // the machines' journals, and the summaries in them
	Events      *Events      // a runner's side: what machines have to decide on
	Effects     *Effects     // a runner's side: what follows from decisions
	Changes     *Changes     // what happens to intents, for everybody to follow
	Commands    *Commands    // a worker's side: what it has to do
	Results     *Results     // a worker's side: what came of it
	Leases      *Leases      // the right to work on a task
	Submissions *Submissions // what people and systems ask for
	Leftovers   *Leftovers   // what finished intents left, and its removal
	Live        *Live        // messages that are not stored: progress and the like
	Transcripts *Transcripts // what agents and commands did, line by line
	Objects     *Objects     // files that workers hand on to one another
}

// Connect returns a connected bus. While the server cannot be reached it tries
// again until ctx ends; refused credentials are an error at once. No error names
// the URL, which may hold a password.
func Connect(ctx context.Context, cfg Config) (*Bus, error) {
	c, err := dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	log := newJournal(c)
	results, leases := newResults(c), newLeases(c)
	messages := newLive(c)
	submissions := newSubmissions(c, log)
	return &Bus{
		conn: c, stalledAfter: stalledAfter,
		Journal:     log,
		Events:      newEvents(c, submissions),
		Effects:     newEffects(c, messages),
		Changes:     newChanges(c),
		Commands:    newCommands(c, log, results, leases),
		Results:     results,
		Leases:      leases,
		Submissions: submissions,
		Leftovers:   newLeftovers(c),
		Live:        messages,
		Transcripts: newTranscripts(c),
		Objects:     newObjects(c),
	}, nil
}
