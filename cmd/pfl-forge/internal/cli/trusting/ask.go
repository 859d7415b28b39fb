// Package trusting asks a person whether what a repository brings may run on their machine,
// and is the command with which they say so, look, or take it back.
//
// Commands that begin a run call Ask before anything of the repository runs. What is trusted is a
// digest of the settings that run or weaken something (config.Powers), so a change of any of them
// by a pull is asked about again; package local keeps the digests outside of the repository.
package trusting

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/trust"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// variable is the environment variable with a digest that is trusted in this process: for CI,
// where no person can be asked and nothing is to be remembered.
const variable = "FORGE_TRUST"

// maxShown bounds how many lines of one setting a question shows: a script of hundreds would push
// the question, and the settings before it, off the screen.
const maxShown = 20

// digestShape matches a digest as config.Digest writes it. Another value of the variable is a
// mistake of whoever set it, and is not taken for the digest of something else.
var digestShape = pattern.New(`^[0-9a-f]{32}$`)

// guard returns the guard of a repository. What is trusted is kept in the user's own folder, which
// nothing of the repository writes to.
func guard(a *kit.App, repo *local.Repository) (*trust.Guard, error) {
	return trust.NewGuard(trust.Open(a.Getenv), repo.Store)
}

// Made remembers that this user's pfl-forge made the configuration of a repository: it is trusted,
// and so are the commits that the user makes there from now on. Init and demo call it, which write
// that configuration themselves.
func Made(a *kit.App, repo *local.Repository, p *config.Project) error {
	g, err := guard(a, repo)
	if err != nil {
		return err
	}
	return g.Trust(p)
}

// Ask returns the guard of a repository in which a run is to begin. Made says that there is
// nothing to ask: this process wrote the configuration.
//
// If a person has not trusted the powers of the base branch, they are asked at a terminal.
// Elsewhere they are told the command to type, and the error is ExitWaiting, as for everything
// that waits for a person. The same error is the answer no. What cannot be remembered is a
// warning: the person has agreed, and the run begins.
func Ask(ctx context.Context, a *kit.App, repo *local.Repository, base *local.Base, made bool) (*trust.Guard, error) {
	g, err := guard(a, repo)
	if err != nil {
		return nil, err
	}
	powers := base.Config.Powers()
	digest := config.Digest(powers)
	given := a.Getenv(variable)
	if given != "" && !digestShape.MatchString(given) {
		return nil, fmt.Errorf("%s: not a digest; pfl-forge trust --show prints the one of this repository", variable)
	}
	if made || given != "" && given == digest {
		g.Pass(digest)
	}
	err = g.Check(ctx, base.Config)
	if !errors.Is(err, trust.ErrUntrusted) {
		return g, err
	}
	a.Say("%s: %v.\nIt has these settings:\n", kit.Safe(repo.Root), err)
	describe(a, a.Err, powers, maxShown)
	c, ok := a.Terminal()
	if !ok {
		a.Say("nothing was run. If that may run, type: pfl-forge trust %s", digest)
		return nil, kit.ExitWaiting
	}
	defer c.Close()
	yes, err := a.Confirm(ctx, c, "May that run on this machine?")
	if err != nil {
		return nil, err
	}
	if !yes {
		a.Say("nothing was run")
		return nil, kit.ExitWaiting
	}
	if err := g.Trust(base.Config); err != nil {
		a.Say("that cannot be remembered, so the next run asks again: %s", kit.Safe(err.Error()))
	}
	return g, nil
}

// describe prints the powers of a repository, in a form that steers no terminal: of each setting
// at most so many lines; 0: all. Those that weaken something stand out. A value that is short
// stands beside its name; everything else below it, so that no line of a script is mistaken for a
// setting.
func describe(a *kit.App, to io.Writer, powers []config.Power, most int) {
	style := a.Style(to)
	for _, p := range powers {
		mark := p.Setting
		if p.Weakens {
			mark = style.Attention(kit.Safe(p.Setting))
		} else {
			mark = kit.Safe(mark)
		}
		lines := strings.Split(kit.Safe(p.Value), "\n")
		if len(lines) == 1 && len(lines[0]) < 60 {
			fmt.Fprintf(to, "  %s: %s   (%s)\n", mark, lines[0], p.Means)
			continue
		}
		fmt.Fprintf(to, "  %s   (%s)\n", mark, p.Means)
		for i, line := range lines {
			if most > 0 && i == most {
				fmt.Fprintf(to, "      and %d lines more: %s\n", len(lines)-i, a.Pasted("pfl-forge trust --show"))
				break
			}
			fmt.Fprintf(to, "      %s\n", line)
		}
	}
}
