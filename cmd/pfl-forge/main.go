// Command pfl-forge turns intents into reviewed commits.
//
// It is the one program that people run: in a repository it starts the services and
// NATS in its own process, with --server it talks to those of an organisation. The
// commands are in package cli, one package each; here is only the start of the process,
// which takes credentials out of the environment before anything else can read them.
package main

import (
	"os"

	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli"
	"github.com/pfl-forge/pfl-forge/internal/environ"
	"github.com/pfl-forge/pfl-forge/service"
)

func main() {
	environ.Hide()        // before Protect, which takes the right to erase
	_ = process.Protect() // it holds keys; elsewhere than on Linux there is nothing like it
	service.CollectSeldom(os.Getenv)
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, environ.Get))
}
