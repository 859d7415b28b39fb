package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/internal/retry"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

const (
	// firstOpening and longestOpening bound the pauses between two tries to open a repository.
	firstOpening   = 500 * time.Millisecond
	longestOpening = 30 * time.Second
	// holdFor is how long after the start commands wait for an origin that cannot be reached.
	// After that their attempts find it out, which spends nothing: the project hears of it, tells
	// a person, and has one probe at a time look for the origin's return (forge.FailOrigin).
	holdFor = 15 * time.Second
)

// KeepOpening opens in the background, until ctx ends or the Set is closed, those
// repositories that OpenSet could not open: a service may start before the origins. It is
// called once, before Prepare.
func (s *Set) KeepOpening(ctx context.Context) {
	ctx, s.stopOpening = context.WithCancel(ctx)
	for _, p := range s.projects {
		if p.repo.Load() == nil && !p.unused {
			p.late.Store(true)
			s.opening.Go(func() { s.keepOpening(ctx, p) })
		}
	}
}

// keepOpening tries until a project is open and prepared.
func (s *Set) keepOpening(ctx context.Context, p *project) {
	defer p.late.Store(false)
	pace := retry.Pace{First: firstOpening, Most: longestOpening}
	var notices retry.Notices
	notices.Due(time.Now()) // try has logged the first
	for pace.Sleep(ctx) == nil {
		_, err := s.ready(ctx, p)
		if err == nil {
			s.host.Log.InfoContext(ctx, "a project can begin now", "project", p.src.Project)
			return
		}
		if ctx.Err() == nil && notices.Due(time.Now()) {
			s.host.Log.WarnContext(ctx, "cannot begin with a project yet; trying again", "project", p.src.Project, "error", err)
		}
	}
}

// Opened returns nil when every repository has been opened that is opened at the start, else a
// line for each that is missing with the last cause. A repository that was open stays so while
// its origin is away.
func (s *Set) Opened() error {
	var missing []error
	for _, src := range s.sources {
		p := s.projects[src.Project]
		if p.repo.Load() == nil && !p.unused {
			missing = append(missing, fmt.Errorf("project %s: %s", src.Project, oneLine(p.why())))
		}
	}
	return errors.Join(missing...)
}

// Hold returns why a command cannot begin yet: shortly after the start, the origin of its
// project cannot be reached, and has not been since. It returns nil for everything else,
// also for what a person has to mend, so that the attempt tells it, and for probes: they wait for
// the origin by themselves, and all of the project waits for them.
func (s *Set) Hold(cmd *forge.Command) error {
	p := s.projects[cmd.To.Project]
	if p == nil || p.repo.Load() != nil || cmd.Attempt.Step == forge.StepProbe || time.Since(s.began) > holdFor {
		return nil
	}
	if err := p.why(); git.Unreachable(err) {
		return fmt.Errorf("project %s: %s", p.src.Project, oneLine(err))
	}
	return nil
}

// userInfo matches user and password in a URL.
var userInfo = pattern.New(`://[^/@\s]*@`)

// oneLine returns an error in one line: of git's, the last that it printed. It holds no
// password of a URL.
func oneLine(err error) string {
	if err == nil {
		return "being opened"
	}
	text := err.Error()
	if e, ok := errors.AsType[*git.Error](err); ok && strings.TrimSpace(e.Stderr) != "" {
		lines := strings.Split(strings.TrimSpace(e.Stderr), "\n")
		text = lines[len(lines)-1]
		for _, line := range lines { // what follows it is advice
			if strings.HasPrefix(line, "fatal: ") {
				text = line
				break
			}
		}
	}
	return term.Sanitize(userInfo.ReplaceAllString(strings.ReplaceAll(text, "\n", " "), "://"))
}
