// Command pfl-forge turns intents into reviewed commits.
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
