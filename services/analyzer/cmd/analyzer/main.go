// Command analyzer is the service that plans intents: it carries out the steps
// analyze, architect, intake, audit and observe for runners.
//
// The same program is started in a pod that was made for one command;
// remote.Main takes over then. The steps are in package analyzer.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/pfl-forge/pfl-forge/agent/remote"
	"github.com/pfl-forge/pfl-forge/jobs/backends"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/analyzer"
)

func main() {
	remote.Main(os.Args, os.Stdin, os.Stdout, os.Stderr) // in a pod that was made for one command
	service.Main("analyzer", func(ctx context.Context, env *service.Env) error {
		repos, err := backends.Open(ctx, env)
		if err != nil {
			return err
		}
		// The repositories are closed after the last call has ended.
		a := analyzer.New(repos, env.Log)
		return errors.Join(a.Run(ctx, env.Worker(a.Handlers()...)), repos.Close())
	})
}
