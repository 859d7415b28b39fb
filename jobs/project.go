package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git"
)

// project is a configured repository, which is opened as soon as its origin can be
// read.
type project struct {
	// src is where it is cloned from.
	src Source
	// repo is nil until the repository is open.
	repo atomic.Pointer[Repository]

	// slot holds an element while the project is being opened and prepared.
	slot chan struct{}
	// preparations are still to be done before the next command, in order.
	preparations []func(context.Context, *Repository) error
}

// Prepare has do called once with every repository, before the next command of its
// project: now, or, where the origin cannot be read, by the first command that finds
// it. do is called again if it returned an error.
func (s *Set) Prepare(ctx context.Context, do func(context.Context, *Repository) error) error {
	for _, p := range s.projects {
		if err := p.acquire(ctx); err != nil {
			return err
		}
		p.preparations = append(p.preparations, do)
		p.release()
		if err := s.try(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// try opens and prepares a project. An error of the origin is only logged: the other
// projects are served meanwhile, and the next command tries again. Errors of this
// machine's disk are returned.
func (s *Set) try(ctx context.Context, p *project) error {
	_, err := s.ready(ctx, p)
	if err == nil {
		return nil
	}
	_, disk := errors.AsType[*fs.PathError](err)
	if p.src.URL == "" || disk || errors.Is(err, git.ErrBusy) || ctx.Err() != nil {
		return fmt.Errorf("project %s: %w", p.src.Project, err)
	}
	s.host.Log.Warn("cannot begin with a project; its next command tries again", "project", p.src.Project, "error", err)
	return nil
}

// ready returns the repository, after opening it and doing its preparations.
func (s *Set) ready(ctx context.Context, p *project) (*Repository, error) {
	if err := p.acquire(ctx); err != nil {
		return nil, err
	}
	defer p.release()
	r := p.repo.Load()
	if r == nil {
		var err error
		if r, err = open(ctx, &s.host, p.src); err != nil {
			return nil, err
		}
		p.repo.Store(r)
	}
	for len(p.preparations) > 0 {
		if err := p.preparations[0](ctx, r); err != nil {
			return nil, err
		}
		p.preparations = p.preparations[1:]
	}
	return r, nil
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
