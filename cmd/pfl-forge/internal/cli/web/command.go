// Package web is the command that serves the console of the gateway to one person on their own
// machine, for the repository in which they work.
//
// site.go says which requests are answered at all, and to whom; opener.go has the repository's
// server while a request needs it, so that no run is kept waiting by a page that is only open.
package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/services/gateway/console"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

const consoleHelp = `Serve the console for this repository to your browser: what waits for you, all intents, and
the page of each with its change, evidence and transcripts. What you decide there counts like
what you decide with approve, answer, reject and the others.

It listens on 127.0.0.1 alone, and prints an address that can be used once, in one browser. It
runs until Ctrl-C, whether or not a run is active: the pages show which, and follow both.`

// Command returns the command console.
func Command(a *kit.App) *cobra.Command {
	port := 0
	cmd := &cobra.Command{
		Use:     "console",
		Short:   "serve the console to your browser, on this machine alone",
		Long:    consoleHelp,
		Example: "  pfl-forge console\n  pfl-forge console --port 8080",
		Args:    kit.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), a, port) },
	}
	cmd.Flags().IntVar(&port, "port", 0, "the `port` to listen on; 0: one that is free")
	_ = cmd.RegisterFlagCompletionFunc("port", cobra.NoFileCompletions)
	return cmd
}

// serve serves the console until the context ends. The person needs a name that may stand in a
// token, because decisions are recorded under it; git's user.name is where it comes from.
func serve(ctx context.Context, a *kit.App, port int) error {
	if a.Remote() {
		return kit.Usage(errors.New("console is for a repository; an organisation's gateway serves its own, at " + console.Base + " of its address"))
	}
	if port < 0 || port > 65535 {
		return kit.Usage(fmt.Errorf("--port: %d is not a port: want 1 to 65535, or 0 for one that is free", port))
	}
	repo, err := local.OpenRepository(ctx, a.Dir)
	if err != nil {
		return err
	}
	defer repo.Close()
	book, err := tokens.Own(repo.Actor, repo.Project)
	if err != nil {
		return fmt.Errorf("who you are is not known, or cannot be recorded (%w): git config user.name 'Your Name'", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("--port: %w", err)
	}
	s := newSite(ctx, repo, book, l.Addr().(*net.TCPAddr).Port, a.Log())
	// Written to a person's terminal, and nowhere else: no log, argument or file has it.
	if _, err := fmt.Fprintln(a.Out, s.address()); err != nil {
		return errors.Join(err, l.Close())
	}
	a.Say("The console of %s, for %s. Open the address in a browser of this machine: it can be used once. Ctrl-C ends the console.",
		repo.Project, kit.Safe(repo.Actor))
	return s.run(ctx, l)
}
