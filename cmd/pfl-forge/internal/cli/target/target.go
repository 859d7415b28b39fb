// Package target connects a command to the server of its project: the repository's own,
// which this process may have to start, or an organisation's, over NATS or through its gateway.
//
// A command that only looks opens a Reader; one that wants something decided opens a
// Decider, or uses Once while a person is being asked. Both return a *Target, which the
// caller closes. Its methods read intents (Summaries, View, Find) and send what a person
// wants (Ask).
package target

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/user"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/bus/turns"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/connect"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
)

// Target is an open connection to a project. The caller of the function that returned it
// closes it.
type Target struct {
	// Bus is nil if nothing was ever submitted in the repository, and of a target
	// that is asked by HTTP. Commands that work by HTTP, too, use the methods below.
	Bus *bus.Bus
	// Project is the one that the command is about.
	Project forge.ProjectID
	// Actor is the person who asks: the author that git knows, or else the
	// user's login.
	Actor string
	// Repo is nil outside of a repository, which only Remote allows.
	Repo *local.Repository
	// Remote says that the target is an organisation's.
	Remote bool
	// Owner says that no run goes on here: this process decides what is asked.
	Owner bool
	// Session is that of the repository's own server; nil if Remote or if Bus
	// is nil.
	Session *local.Session

	// traces is where a person reads traces of the organisation; empty if nothing says.
	traces telemetry.TraceURL

	// NoRunner says that no runner of the organisation is up, as of CheckProject or Ask.
	NoRunner bool
	// Doubt is why CheckProject could not find out who serves the project; nil if it could.
	Doubt error
	// Turns says how many calls of the project wait for their turn, as of
	// CheckProject; nil if none waits, or if that is not known.
	Turns *turns.State
	// Stored has the sequence of the last message of each intent's journal, as
	// of the last Summaries; nil before, and by HTTP.
	Stored map[forge.IntentID]uint64

	looked bool // for a runner
	quick  bool // Summaries goes on from the list of the command before
	// web is the connection to a gateway; nil where there is a Bus.
	web *byHTTP
	log *slog.Logger
	// close ends the connection; nil once it is closed.
	close func()
}

// Close ends the connection. Closing twice does nothing.
func (t *Target) Close() {
	if t.close != nil {
		t.close()
		t.close = nil
	}
}

// Reader opens a target for looking only. Where nothing was ever submitted there is no
// server to read from, and its Bus is nil.
func Reader(ctx context.Context, a *kit.App) (*Target, error) {
	t, err := open(ctx, a, func(ctx context.Context, repo *local.Repository) (*local.Session, error) {
		s, err := local.OpenReader(ctx, repo, a.Log())
		if errors.Is(err, local.ErrNoStore) {
			return nil, nil //nolint:nilnil // nothing was submitted
		}
		return s, err
	})
	if err == nil {
		t.quick = !t.Remote
	}
	return t, err
}

// Decider opens a target that decides at once on what it is asked: by the run that goes
// on, or in this process if there is none. It holds the repository's store until it is
// closed, so that no run can begin meanwhile.
func Decider(ctx context.Context, a *kit.App) (*Target, error) {
	return open(ctx, a, func(ctx context.Context, repo *local.Repository) (*local.Session, error) {
		return local.Open(ctx, repo, a.Log())
	})
}

// Rescuer is Decider for a store that has lost something, or into which a
// backup was restored, and returns what became of that.
func Rescuer(ctx context.Context, a *kit.App, restored bool) (t *Target, found *local.Recovery, err error) {
	t, err = open(ctx, a, func(ctx context.Context, repo *local.Repository) (s *local.Session, err error) {
		s, found, err = local.Rescue(ctx, repo, restored, a.Log())
		return s, err
	})
	return t, found, err
}

// Open opens a Reader if nothing is to change, and a Decider otherwise.
func Open(ctx context.Context, a *kit.App, readOnly bool) (*Target, error) {
	if readOnly {
		return Reader(ctx, a)
	}
	return Decider(ctx, a)
}

// open returns the organisation's target, or that of the repository with the session that
// start returns, which may be nil.
func open(ctx context.Context, a *kit.App, start func(context.Context, *local.Repository) (*local.Session, error)) (*Target, error) {
	if a.Remote() {
		return Connect(ctx, a)
	}
	if a.Project != "" || a.Person != "" || a.TokenFile+a.Creds+a.NKey+a.TLSCA+a.TLSCert+a.TLSKey+a.TraceURL != "" {
		return nil, kit.Usage(errors.New("--project, --person, --trace-url and what says how to connect need --server"))
	}
	repo, err := local.OpenRepository(ctx, a.Dir)
	if err != nil {
		return nil, err
	}
	t := &Target{Project: repo.Project, Actor: repo.Actor, Repo: repo, Owner: true}
	notice := time.AfterFunc(noticeAfter, func() {
		a.Say("still waiting: other commands use this repository's store; they take turns")
	})
	s, err := start(ctx, repo)
	notice.Stop()
	if err != nil {
		return nil, err
	}
	if s != nil {
		t.Session, t.Bus, t.Owner, t.close = s, s.Bus, s.Owner(), func() { s.Close(ctx) }
	}
	return t, nil
}

// noticeAfter is the time to wait for a repository's store without a word.
// Nothing but another command makes it long.
const noticeAfter = 5 * time.Second

// Connect opens the target that --server or --context names. It fails at once if no
// runner has ever served the organisation, or if this account may not look.
func Connect(ctx context.Context, a *kit.App) (*Target, error) {
	if a.ByHTTP() {
		return connectHTTP(ctx, a)
	}
	cfg, err := connect.NATS(a)
	if err != nil {
		return nil, err
	}
	t := &Target{Remote: true, log: a.Log()}
	if t.traces, err = telemetry.ParseTraceURL(a.TraceURL); err != nil {
		return nil, kit.Usage(fmt.Errorf("--trace-url (FORGE_TRACE_URL): %w", err))
	}
	if repo, err := local.OpenRepository(ctx, a.Dir); err == nil {
		t.Repo, t.Project, t.Actor = repo, repo.Project, repo.Actor
	} else if u, err := user.Current(); err == nil {
		t.Actor = u.Username
	}
	if a.Person != "" {
		t.Actor = a.Person
	}
	if t.Project, err = connect.Project(a, t.Project); err != nil {
		return nil, err
	}
	cfg.Person, cfg.Project = a.Person, t.Project
	cfg.Name, cfg.Logger = "pfl-forge/"+t.Actor, a.Log()
	if cfg.NKey != "" {
		if cfg.Key == nil { // a login has brought its own
			cfg.Key = bus.SigningKey(cfg.NKey, t.Actor)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, connect.Timeout)
	defer cancel()
	if t.Bus, err = bus.Connect(ctx, cfg); err != nil {
		return nil, fmt.Errorf("%s: %w", connect.WithoutSecrets(cfg.URL), err)
	}
	if err := t.Bus.Prepared(ctx); errors.Is(err, bus.ErrNoRunner) || errors.Is(err, requests.ErrNotAllowed) {
		t.Bus.Close()
		return nil, fmt.Errorf("%s: %w", connect.WithoutSecrets(cfg.URL), err)
	}
	t.close = t.Bus.Close
	return t, nil
}

// Key returns the key of an intent of the project.
func (t *Target) Key(id forge.IntentID) forge.Key {
	return forge.Key{Project: t.Project, Intent: id}
}

// Trace returns the trace of a run of an intent; an empty one if no run has begun.
func (t *Target) Trace(id forge.IntentID, run int) document.Trace {
	if run == 0 {
		return document.Trace{}
	}
	trace := telemetry.Run{Key: t.Key(id), Number: run}.TraceID()
	return document.Trace{TraceID: trace, TraceURL: t.traces.Of(trace)}
}

// Once opens a Decider for one function and closes it again. Commands that ask a person
// use it for each decision, so that no run is kept waiting while the person thinks.
func Once(ctx context.Context, a *kit.App, do func(*Target) error) error {
	t, err := Decider(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	return do(t)
}
