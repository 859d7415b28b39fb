package cli

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"time"

	"github.com/nats-io/nuid"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

const (
	connectTimeout = 5 * time.Second
	askTimeout     = 10 * time.Second
)

// target is whom a command talks to.
type target struct {
	bus     *bus.Bus // nil if nothing was ever submitted
	project forge.ProjectID
	actor   string
	repo    *local.Repository // nil outside of a repository
	remote  bool
	owner   bool // no run goes on: this process decides
	session *local.Session
	close   func()
}

// remote says whether the command is about an organisation's pfl-forge.
func (a *app) remote() bool { return a.server != "" || a.profile != "" }

// reader returns a target for looking only.
func (a *app) reader(ctx context.Context) (*target, error) {
	return a.target(ctx, func(ctx context.Context, repo *local.Repository) (*local.Session, error) {
		s, err := local.OpenReader(ctx, repo, a.log())
		if errors.Is(err, local.ErrNoStore) {
			return nil, nil
		}
		return s, err
	})
}

// decider returns a target that decides at once on what it is asked.
func (a *app) decider(ctx context.Context) (*target, error) {
	return a.target(ctx, func(ctx context.Context, repo *local.Repository) (*local.Session, error) {
		return local.Open(ctx, repo, a.log())
	})
}

func (a *app) target(ctx context.Context, open func(context.Context, *local.Repository) (*local.Session, error)) (*target, error) {
	if a.remote() {
		return a.connect(ctx)
	}
	if a.project != "" || a.tokenFile != "" || a.creds != "" {
		return nil, usageError{errors.New("--project, --token-file and --creds need --server")}
	}
	repo, err := local.OpenRepository(ctx, a.dir)
	if err != nil {
		return nil, err
	}
	t := &target{project: repo.Project, actor: repo.Actor, repo: repo, owner: true, close: func() {}}
	s, err := open(ctx, repo)
	if err != nil {
		return nil, err
	}
	if s != nil {
		t.session, t.bus, t.owner, t.close = s, s.Bus, s.Owner(), func() { s.Close(ctx) }
	}
	return t, nil
}

// connect returns the target that --server or --context names.
func (a *app) connect(ctx context.Context) (*target, error) {
	cfg, err := a.connection()
	if err != nil {
		return nil, err
	}
	t := &target{remote: true}
	if repo, err := local.OpenRepository(ctx, a.dir); err == nil {
		t.repo, t.project, t.actor = repo, repo.Project, repo.Actor
	} else if u, err := user.Current(); err == nil {
		t.actor = u.Username
	}
	if a.project != "" {
		if t.project, err = forge.ParseProjectID(a.project); err != nil {
			return nil, usageError{fmt.Errorf("--project: %w", err)}
		}
	}
	if t.project == "" {
		return nil, usageError{errors.New("--project is missing: which of the organisation's projects is this about?")}
	}
	cfg.Name, cfg.Logger = "pfl-forge/"+t.actor, a.log()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if t.bus, err = bus.Connect(ctx, cfg); err != nil {
		return nil, err
	}
	if err := t.bus.Prepared(ctx); errors.Is(err, bus.ErrNoRunner) {
		t.bus.Close()
		return nil, err
	}
	t.close = t.bus.Close
	return t, nil
}

func (t *target) key(id forge.IntentID) forge.Key {
	return forge.Key{Project: t.project, Intent: id}
}

// summaries returns every intent of the project, sorted by id.
func (t *target) summaries(ctx context.Context) ([]forge.Summary, error) {
	if t.bus == nil {
		return nil, nil
	}
	all, err := t.bus.Summaries(ctx, t.project)
	sortSummaries(all)
	return all, err
}

// view returns everything that is known of an intent.
func (t *target) view(ctx context.Context, id forge.IntentID) (*forge.View, error) {
	if t.bus == nil {
		return nil, noIntent(id)
	}
	v, err := local.Load(ctx, t.bus, t.key(id))
	if errors.Is(err, bus.ErrNotFound) {
		return nil, noIntent(id)
	}
	return &v, err
}

func noIntent(id forge.IntentID) error {
	return fmt.Errorf("there is no intent %s; `pfl-forge status` lists those that exist", id)
}

// ask sends what a person wants and returns the ruling. An empty decision means
// that it is accepted, and nobody has decided on it yet.
func (t *target) ask(ctx context.Context, ev forge.Event) (forge.Ruling, error) {
	ev.ID, ev.Actor = nuid.Next(), t.actor
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r, err := t.bus.Ask(ctx, ev)
	r.Reason = term.Line(r.Reason)
	switch {
	case errors.Is(err, bus.ErrNoRuling):
		return forge.Ruling{EventID: ev.ID}, nil
	case err != nil && t.session != nil && t.session.Gone(context.WithoutCancel(ctx)):
		return r, errors.New("the run that was going on has just ended; try again")
	}
	return r, err
}

// next says who goes on with what was decided.
func (t *target) next() string {
	switch {
	case t.remote:
		return "next: pfl-forge status"
	case t.owner:
		return "next: pfl-forge run"
	}
	return "the run that is going on takes it up"
}
