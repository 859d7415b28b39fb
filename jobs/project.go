package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/jobs/vitals"
)

// project is a configured repository, which is opened as soon as its origin can be
// read.
type project struct {
	// src is where it is cloned from.
	src Source
	// repo is nil until the repository is open.
	repo atomic.Pointer[Repository]

	// unused says that nothing is done for it before its first command; see Host.FirstUse.
	unused bool

	// slot holds an element while the project is being opened and prepared.
	slot chan struct{}
	// late says that KeepOpening tries until it is done.
	late atomic.Bool

	// refusals are those of our credentials, and origin is whether it is reached from here.
	refusals refusals
	origin   vitals.Origin

	mu sync.Mutex
	// preparations are still to be done before the next command, in order. Who
	// has the slot takes them away.
	preparations []preparation
	// cause is why it could not be opened or prepared last; nil when it was.
	cause error
}

// preparation is something to do with a repository before its next command.
type preparation func(context.Context, *Repository) error

// Prepare has do called once with every repository, before the next command of its
// project: now, or, where the repository is not open, by the first command or try of
// KeepOpening that opens it. do is called again if it returned an error.
func (s *Set) Prepare(ctx context.Context, do func(context.Context, *Repository) error) error {
	for _, p := range s.projects {
		p.mu.Lock()
		p.preparations = append(p.preparations, do)
		p.mu.Unlock()
		if p.late.Load() || p.unused {
			continue
		}
		if err := s.try(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// try opens and prepares a project. An error of the origin is only logged: the other
// projects are served meanwhile, and KeepOpening or the next command tries again. Errors of
// this machine's disk are returned, and so are addresses of no repository.
func (s *Set) try(ctx context.Context, p *project) error {
	_, err := s.ready(ctx, p)
	if err == nil {
		return nil
	}
	_, disk := errors.AsType[*fs.PathError](err)
	if p.src.URL == "" || disk || errors.Is(err, store.ErrAddress) || errors.Is(err, git.ErrBusy) || ctx.Err() != nil {
		return fmt.Errorf("project %s: %w", p.src.Project, err)
	}
	s.host.Log.WarnContext(ctx, "cannot begin with a project yet; trying again", "project", p.src.Project, "error", err)
	return nil
}

// ready returns the repository, after opening it and doing its preparations.
func (s *Set) ready(ctx context.Context, p *project) (*Repository, error) {
	if err := p.acquire(ctx); err != nil {
		return nil, err
	}
	defer p.release()
	r, err := s.prepared(ctx, p)
	p.mu.Lock()
	p.cause = err
	p.mu.Unlock()
	return r, err
}

// prepared is ready for who has the slot.
func (s *Set) prepared(ctx context.Context, p *project) (_ *Repository, err error) {
	r := p.repo.Load()
	if r == nil {
		if r, err = open(ctx, &s.host, p.src); err != nil {
			return nil, err
		}
		p.repo.Store(r)
	}
	for do := p.preparation(); do != nil; do = p.preparation() {
		if err := do(ctx, r); err != nil {
			return nil, err
		}
		p.mu.Lock()
		p.preparations = p.preparations[1:]
		p.mu.Unlock()
	}
	return r, nil
}

// preparation returns the next one; nil if none is left.
func (p *project) preparation() preparation {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.preparations) == 0 {
		return nil
	}
	return p.preparations[0]
}

// why returns why the project could not be opened or prepared last; nil when it was.
func (p *project) why() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}

// acquire waits for the project's slot, or for the end of ctx.
func (p *project) acquire(ctx context.Context) error {
	select {
	case p.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release gives the slot back.
func (p *project) release() { <-p.slot }

// notServed returns the failure for a project that this process has no repository of.
func notServed(id forge.ProjectID) error {
	return agent.Fail(forge.FailConfig, "project %q is not served here: add its repository to the service's projects", id)
}
