// Command implementer is the service that makes changes and merges them: it carries out the
// steps implement, execute, rebase, merge and probe for runners, and cleans up on request.
//
// It signs its merges with the key of its account (env.SigningKey). The same
// program is started in a pod that was made for one command; remote.Main takes
// over then. The steps are in package implementer.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/pfl-forge/pfl-forge/agent/remote"
	"github.com/pfl-forge/pfl-forge/jobs/backends"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/implementer"
)

func main() {
	remote.Main(os.Args, os.Stdin, os.Stdout, os.Stderr) // in a pod that was made for one command
	service.Main("implementer", func(ctx context.Context, env *service.Env) error {
		repos, err := backends.Open(ctx, env)
		if err != nil {
			return err
		}
		i := implementer.New(implementer.Config{
			Repositories: repos, Bus: env.Bus, Replica: env.Config.Replica, Log: env.Log, Key: env.SigningKey(),
		})
		return errors.Join(i.Run(ctx, env.Worker(i.Handlers()...)), repos.Close())
	})
}
