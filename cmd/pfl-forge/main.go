// Command pfl-forge turns intents into reviewed commits.
package main

import (
	"os"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli"
	"github.com/pfl-forge/pfl-forge/service"
)

func main() {
	service.CollectSeldom(os.Getenv)
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}
