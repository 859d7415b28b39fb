// Command reflector is the service that looks back at runs that ended: it
// carries out the steps reflect, abstract and summarize for runners.
//
// The same program is started in a pod that was made for one command;
// remote.Main takes over then. The steps are in package reflector.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/pfl-forge/pfl-forge/agent/remote"
	"github.com/pfl-forge/pfl-forge/jobs/backends"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/reflector"
)

func main() {
	remote.Main(os.Args, os.Stdin, os.Stdout, os.Stderr) // in a pod that was made for one command
	service.Main("reflector", func(ctx context.Context, env *service.Env) error {
		repos, err := backends.Open(ctx, env)
		if err != nil {
			return err
		}
		// The repositories are closed after the last call has ended.
		r := reflector.New(repos)
		return errors.Join(r.Run(ctx, env.Worker(r.Handlers()...)), repos.Close())
	})
}
