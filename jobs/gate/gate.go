// Package gate keeps calls from an account that is known to refuse them. An account is an agent
// with its credentials, as one process has them: calls of all projects and steps share it.
//
//	          call refused                 retry time                 probe accepted
//	open ---------------------> closed ---------------> probing ------------------------> open
//	                              ^                        |
//	                              +------------------------+ probe refused
//
// While it is closed a call fails at once with what the account said, and costs nothing: for as
// long as a limit lasts, but no longer than an hour, and for ten seconds after a refusal of the
// credentials. A probe is the first call after that; others wait for what becomes of it. So no
// account stays closed by an error, or by a lie, for longer than a probe takes to show it. What a
// process knows ends with it. What a project knows lasts (package account of the rules): it is told
// of each refusal, and holds further calls. A person who resumes the account there knows better
// than a gate that is still closed: the first call that was issued after that is a probe at once.
package gate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
)

const (
	// credentialPause is how long after a refusal of the credentials no call is made.
	credentialPause = 10 * time.Second
	// longestPause bounds how long a limit is believed without a probe.
	longestPause = time.Hour
)

// Gates are the gates of a process. The zero value has all of them open.
type Gates struct {
	mu     sync.Mutex
	closed map[string]*closed
	// now and pause are those of a test; nil and zero outside of one.
	now   func() time.Time
	pause time.Duration
}

// closed is an account that refuses calls.
type closed struct {
	failure forge.Failure
	// since is when it refused last.
	since time.Time
	// until is when the next call is made.
	until time.Time
	// probe is closed when the call that tries it has ended; nil if none is under way.
	probe chan struct{}
	// known has, of each project that was refused, what it knew of accounts then.
	known map[forge.ProjectID]int
}

// Caller says for whom a call is made.
type Caller struct {
	// Project is the one whose call it is.
	Project forge.ProjectID
	// Known is the number of the project's knowledge of accounts when the call
	// was issued. It rises when a person says that they take calls again.
	Known int
}

// refused notes the number of a project's knowledge when it was refused.
func (c *closed) refused(by Caller) {
	// Numbers of different projects say nothing about each other, and a project
	// that was not refused yet has heard nothing of this refusal: its first
	// call is refused like that of any other.
	if c.known == nil {
		c.known = map[forge.ProjectID]int{}
	}
	c.known[by.Project] = max(c.known[by.Project], by.Known)
}

// isOutdated reports whether a project has heard more since it was refused.
func (c *closed) isOutdated(by Caller) bool {
	known, refused := c.known[by.Project]
	return refused && by.Known > known
}

// Account names the account of an agent in this process: that of a back end is shared by all
// projects, that of a program that a project defines is its own. A recipe has none.
func Account(project forge.ProjectID, name string, own bool) string {
	switch {
	case name == config.AgentRecipe:
		return ""
	case own:
		return string(project) + "/" + name
	}
	return name
}

// Run has an agent make a call to an account, unless that is known to refuse it.
func (g *Gates) Run(ctx context.Context, account string, by Caller, a agent.Agent, call agent.Call, sink func(agent.Event)) (out agent.Outcome, err error) {
	if account == "" {
		return a.Run(ctx, call, sink)
	}
	err = g.Call(ctx, account, by, func(accepted func()) (err error) {
		out, err = a.Run(ctx, call, func(e agent.Event) {
			// What an agent says may be the refusal in its own words; these
			// come of the model alone.
			if e.Kind == agent.EventTool || e.Kind == agent.EventThinking || e.Usage.OutputTokens > 0 {
				accepted()
			}
			sink(e)
		})
		return err
	})
	return out, err
}

// Call makes a call to an account, or returns why none was made: a *agent.Failure with the reason
// for which the account refused the last one. The call says as soon as it knows that the account
// takes it: others need not wait for its end.
func (g *Gates) Call(ctx context.Context, account string, by Caller, call func(accepted func()) error) error {
	for {
		other, probe, err := g.enter(account, by)
		switch {
		case err != nil:
			return err
		case other == nil:
			err := call(func() { g.accept(account, probe) })
			if err == nil {
				g.accept(account, probe)
			}
			g.leave(account, by, probe, err)
			return err
		}
		select {
		case <-other:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// accept opens the gate of an account that has taken its probe. Other calls open none: they may
// have begun before it was closed.
func (g *Gates) accept(account string, probe *closed) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if probe == nil || g.closed[account] != probe || probe.probe == nil {
		return
	}
	delete(g.closed, account)
	close(probe.probe)
	probe.probe = nil
}

// enter decides on a call: it waits for the probe of another one, or fails, or is made, as a probe
// itself if the time for one has come.
func (g *Gates) enter(account string, by Caller) (other <-chan struct{}, probe *closed, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.closed[account]
	switch {
	case c == nil:
		return nil, nil, nil
	case c.probe != nil:
		return c.probe, nil, nil
	case c.until.After(g.time()) && !c.isOutdated(by):
		c.refused(by)
		return nil, nil, c.refusal()
	}
	c.probe = make(chan struct{})
	return nil, c, nil
}

// leave ends a call: a refusal closes the gate, or keeps it closed.
func (g *Gates) leave(account string, by Caller, probe *closed, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if probe != nil && probe.probe != nil {
		close(probe.probe)
		probe.probe = nil
	}
	f, failed := errors.AsType[*agent.Failure](err)
	if !failed || !closes(&f.Failure, g.time()) {
		return
	}
	if g.closed == nil {
		g.closed = map[string]*closed{}
	}
	c := g.closed[account]
	if c == nil {
		c = &closed{}
		g.closed[account] = c
	}
	c.failure, c.since, c.until = f.Failure, g.time(), g.next(&f.Failure)
	c.refused(by)
}

// closes reports whether a failure is one of the account, which every other call would have too.
func closes(f *forge.Failure, now time.Time) bool {
	switch f.Reason {
	case forge.FailAuth:
		return true
	case forge.FailQuota, forge.FailRateLimited:
		return f.Until.After(now)
	default:
		return false
	}
}

// next returns when the account is tried again.
func (g *Gates) next(f *forge.Failure) time.Time {
	now := g.time()
	if f.Reason == forge.FailAuth {
		if g.pause > 0 {
			return now.Add(g.pause)
		}
		return now.Add(credentialPause)
	}
	if last := now.Add(longestPause); f.Until.After(last) {
		return last
	}
	return f.Until
}

// time returns the present time.
func (g *Gates) time() time.Time {
	if g.now != nil {
		return g.now()
	}
	return time.Now()
}

// refusal returns the failure of a call that is not made.
func (c *closed) refusal() error {
	f := c.failure
	f.Message = fmt.Sprintf("%s (said at %s to another call; this one was not made)", f.Message, c.since.UTC().Format("15:04:05 MST"))
	return &agent.Failure{Failure: f}
}
