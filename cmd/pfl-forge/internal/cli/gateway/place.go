package gateway

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/gitea"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/github"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/gitlab"
)

// The kinds of forges, each the name of its flag, of its entry in the settings,
// and so of the system in whose name intents come.
const (
	kindGitea  = "gitea"
	kindGitHub = "github"
	kindGitLab = "gitlab"
)

// backend is a client of a forge. Its connections are closed with it.
type backend interface {
	forges.Forge
	Close()
}

// place is the forge, as it is for the gateway's account there. Its backend is nil if something
// lacks.
type place struct {
	backend

	// lacks are the rights that are missing; with any of them there is nothing else.
	lacks []string
	// as has the lines of the settings that say as whom the gateway is there.
	as string
	// makeLabel makes a label of a repository unless it is there, and reports whether it did.
	makeLabel func(ctx context.Context, repository, name string) (bool, error)
}

// ask asks the forge for what the account may. A right that is missing is no error, but an entry
// of lacks; an error is an address that answers nothing, or a token that the forge does not know.
func ask(ctx context.Context, o *options) (*place, error) {
	// A relative file is meant from where the command is typed, and in the
	// settings from their folder.
	token, err := filepath.Abs(o.tokenFile)
	if err != nil {
		return nil, err
	}
	p := &place{as: fmt.Sprintf("token_file: %q", token)}
	// The clients have types of their own, so each case names the three functions of its forge.
	switch o.kind() {
	case kindGitHub:
		cfg := github.Config{URL: o.url(), TokenFile: token}
		if o.app != "" {
			return askApp(ctx, o)
		}
		err = use(ctx, p, o, github.Lacks, github.MakeLabel, func() (*github.Client, error) { return github.New(cfg) })
	case kindGitLab:
		cfg := gitlab.Config{URL: o.url(), TokenFile: token}
		err = use(ctx, p, o, gitlab.Lacks, gitlab.MakeLabel, func() (*gitlab.Client, error) { return gitlab.New(cfg) })
	default:
		cfg := gitea.Config{URL: o.url(), TokenFile: token}
		err = use(ctx, p, o, gitea.Lacks, gitea.MakeLabel, func() (*gitea.Client, error) { return gitea.New(cfg) })
	}
	return p, err
}

// askApp is ask for an App of GitHub. Its installation is looked up, because rights are an
// installation's: an App that is not installed in the repository lacks everything there.
func askApp(ctx context.Context, o *options) (*place, error) {
	key, err := filepath.Abs(o.keyFile)
	if err != nil {
		return nil, err
	}
	cfg := github.Config{URL: o.url(), App: &github.App{ID: o.app, KeyFile: key}}
	id, lacks, err := github.InstallationIn(ctx, cfg, o.repository)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", kindGitHub, err)
	}
	p := &place{lacks: lacks, as: fmt.Sprintf("app: {id: %q, installation: %d, key_file: %q}", o.app, id, key)}
	if len(lacks) > 0 {
		return p, nil
	}
	cfg.App.Installation = id
	// What the App lacks was asked above, with the installation.
	none := func(context.Context, *github.Client, string) ([]string, error) { return nil, nil }
	return p, use(ctx, p, o, none, github.MakeLabel, func() (*github.Client, error) { return github.New(cfg) })
}

// use has a place be that of a client, unless that lacks something. It is generic over the client
// so that lacks and label take the forge's own. A client that lacks rights is closed: the place is
// shown and then dropped.
func use[C backend](
	ctx context.Context, p *place, o *options, lacks func(context.Context, C, string) ([]string, error),
	label func(context.Context, C, string, string) (bool, error), open func() (C, error),
) error {
	c, err := open()
	if err != nil {
		return err
	}
	if p.lacks, err = lacks(ctx, c, o.repository); err != nil || len(p.lacks) > 0 {
		c.Close()
		if err != nil {
			return fmt.Errorf("--%s: %w", o.kind(), err)
		}
		return nil
	}
	p.backend = c
	p.makeLabel = func(ctx context.Context, repository, name string) (bool, error) {
		return label(ctx, c, repository, name)
	}
	return nil
}
