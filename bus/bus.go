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
	journals := &Journal{conn: c}
	results := &Results{conn: c}
	live := &Live{conn: c}
	leases := &Leases{conn: c}
	submissions := &Submissions{conn: c, journal: journals}
	return &Bus{
		conn: c, stalledAfter: stalledAfter,
		Journal:     journals,
		Events:      &Events{conn: c, submissions: submissions},
		Effects:     &Effects{conn: c, live: live},
		Changes:     &Changes{conn: c},
		Commands:    &Commands{conn: c, journal: journals, results: results, leases: leases},
		Results:     results,
		Leases:      leases,
		Submissions: submissions,
		Leftovers:   &Leftovers{conn: c},
		Live:        live,
		Transcripts: &Transcripts{conn: c},
		Objects:     &Objects{conn: c, most: MaxObject},
	}, nil
}
