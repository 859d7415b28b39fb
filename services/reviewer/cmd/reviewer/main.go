// Command reviewer is the service that judges changes: it carries out the steps
// review and judge for runners, and signs its verdicts.
//
// Nothing of a change runs here (ADR 0069). The same program is started in a pod that was
// made for one command; remote.Main takes over then. The steps are in package reviewer.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/pfl-forge/pfl-forge/agent/remote"
	"github.com/pfl-forge/pfl-forge/jobs/backends"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/reviewer"
)

func main() {
	remote.Main(os.Args, os.Stdin, os.Stdout, os.Stderr) // in a pod that was made for one command
	service.Main("reviewer", func(ctx context.Context, env *service.Env) error {
		repos, err := backends.Open(ctx, env)
		if err != nil {
			return err
		}
		r := reviewer.New(repos, env.Config.Replica, env.SigningKey())
		return errors.Join(r.Run(ctx, env.Worker(r.Handlers()...)), repos.Close())
	})
}
