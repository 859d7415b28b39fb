package repository

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

// project is a repository that is opened when that is possible.
type project struct {
	src  Source
	repo atomic.Pointer[Repository] // nil until it is open

	slot         chan struct{} // held by whoever opens and prepares
	preparations []func(context.Context, *Repository) error
}

// Prepare has do called with every repository before the next command of its
// project: now, or, where the origin cannot be read, by the first command that
// finds it. do is called again after an error.
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

// try opens and prepares a project, and puts off what has to do with its origin
// alone: the other projects are served meanwhile.
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

// ready returns the repository once it is open and prepared.
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

func (p *project) acquire(ctx context.Context) error {
	select {
	case p.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *project) release() { <-p.slot }

func notServed(id forge.ProjectID) error {
	return agent.Fail(forge.FailConfig, "project %q is not served here: add its repository to the service's projects", id)
}
