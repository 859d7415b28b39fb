package trusting

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/trust"
	"github.com/pfl-forge/pfl-forge/config"
)

// options is how the command was called. Digest excludes show and revoke, which exclude each
// other; without any of them the person is asked.
type options struct {
	show, revoke bool
	digest       string
	format       render.Format
}

// document lists the powers of a repository, as programs read them.
type document struct {
	// Repository is the root of its working tree.
	Repository string `json:"repository" yaml:"repository"`
	// Trusted says whether a run would begin without a question.
	Trusted bool `json:"trusted" yaml:"trusted"`
	// Digest is the argument of the command trust; empty where nothing runs and
	// nothing is weakened.
	Digest string `json:"digest,omitempty" yaml:"digest,omitempty"`
	// Settings are those which run something, or weaken what keeps it from the machine, the
	// latter first.
	Settings []config.Power `json:"settings" yaml:"settings"`
}

// Command returns the command trust.
func Command(a *kit.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "trust [<digest>]",
		Short: "let what this repository brings run on this machine",
		Long: `Say that the commands of the pfl-forge.yaml on the base branch may run on this machine,
and that what it weakens may be weakened. That holds in this repository, for exactly
what is shown, and for what you commit here yourself from then on; what a pull brings
is asked about again.

At a terminal you are asked. Elsewhere the digest says what was shown to you; a run that
is refused prints it. FORGE_TRUST=<digest> does the same for one command, and remembers
nothing.`,
		Args: kit.Between(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.digest = args[0]
			}
			return decide(cmd.Context(), a, &o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.show, "show", false, "only show what would run and be weakened, and whether it is trusted; -o name prints the digest")
	flags.BoolVar(&o.revoke, "revoke", false, "forget what was trusted in this repository")
	kit.OutputFlag(cmd, &o.format)
	cmd.MarkFlagsMutuallyExclusive("show", "revoke")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

// decide shows, trusts or revokes. It is about this machine and this repository, so the flags that
// name a server are mistakes here. Revoking looks at no branch: what is trusted can be taken back
// where the configuration cannot be read.
func decide(ctx context.Context, a *kit.App, o *options) error {
	if a.Remote() {
		return kit.Usage(errors.New("trust is about this machine: omit --server and --context"))
	}
	if o.digest != "" && (o.show || o.revoke) {
		return kit.Usage(errors.New("a digest is trusted: omit --show and --revoke"))
	}
	repo, err := local.OpenRepository(ctx, a.Dir)
	if err != nil {
		return err
	}
	defer repo.Close()
	g, err := guard(a, repo)
	if err != nil {
		return err
	}
	if o.revoke {
		if err := g.Revoke(); err != nil {
			return err
		}
		a.Say("nothing is trusted here any more")
		return nil
	}
	base, err := repo.Base(ctx)
	if err != nil {
		return err
	}
	if o.show {
		return show(ctx, a, repo, base, g, o.format)
	}
	return accept(ctx, a, base, g, o.digest)
}

// show prints the powers of the base branch, and whether a run would begin without a question. The
// exit code is 0 either way: a script compares the digest.
func show(ctx context.Context, a *kit.App, repo *local.Repository, base *local.Base, g *trust.Guard, format render.Format) error {
	err := g.Check(ctx, base.Config)
	if err != nil && !errors.Is(err, trust.ErrUntrusted) {
		return err
	}
	doc := document{Repository: repo.Root, Trusted: err == nil, Settings: base.Config.Powers()}
	doc.Digest = config.Digest(doc.Settings)
	if doc.Settings == nil {
		doc.Settings = []config.Power{}
	}
	return a.Print(format, doc, []string{doc.Digest}, func() error {
		switch {
		case doc.Digest == "":
			fmt.Fprintln(a.Out, "it runs and weakens nothing")
			return nil
		case doc.Trusted:
			fmt.Fprintf(a.Out, "trusted, %s:\n", doc.Digest)
		default:
			fmt.Fprintf(a.Out, "not trusted, %s:\n", doc.Digest)
		}
		describe(a, a.Out, doc.Settings, 0)
		return nil
	})
}

// accept trusts the powers of the base branch, if they are those that a person has seen.
//
// At a terminal they are shown and asked about, unless the digest says that this has happened.
// Elsewhere the digest is needed, and has to be that of the configuration as it is now: a branch
// that moved between looking and trusting is refused. No is ExitWaiting. Where nothing runs and
// nothing is weakened there is nothing to ask, and what the user commits later is trusted.
func accept(ctx context.Context, a *kit.App, base *local.Base, g *trust.Guard, digest string) error {
	powers := base.Config.Powers()
	now := config.Digest(powers)
	switch c, ok := a.Terminal(); {
	case ok:
		defer c.Close()
		if digest != "" || now == "" {
			break
		}
		describe(a, a.Out, powers, 0)
		yes, err := a.Confirm(ctx, c, "May that run on this machine?")
		if err != nil {
			return err
		}
		if !yes {
			return kit.ExitWaiting
		}
	case digest == "" && now != "":
		return kit.Usage(errors.New("the digest of what you have seen is missing; pfl-forge trust --show shows both"))
	}
	if digest != "" && digest != now {
		return errors.New("that is not the digest of what this repository brings now; pfl-forge trust --show shows it")
	}
	if err := g.Trust(base.Config); err != nil {
		return fmt.Errorf("that cannot be remembered: %w", err)
	}
	if now == "" {
		a.Say("there is nothing to trust: what is committed here runs and weakens nothing")
		return nil
	}
	a.Say("trusted. What you commit here yourself stays trusted; what a pull brings is asked about again")
	return nil
}
