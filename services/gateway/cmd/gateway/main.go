// Command gateway is the service that serves people and systems by HTTP, and
// talks to forges and chats.
//
// Its settings are the file of --gateway (package gateway). It decides nothing:
// whatever is asked of it goes to a runner as an event in the name of the asker.
// "gateway token" makes a token for the file of tokens and does nothing else.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/gateway"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// main runs the gateway as a service, or makes a token for the file of tokens: whoever sets
// a gateway up has this program at hand, and need not trust another one with the secret.
func main() {
	// The token goes to a person, the hash to the file. Nothing else ever has the token.
	if len(os.Args) == 2 && os.Args[1] == "token" {
		secret, sum := tokens.Make()
		fmt.Fprintf(os.Stderr, "the token, which is shown once; below it what the file of tokens has of it:\n")
		fmt.Printf("%s\nsha256: %s\n", secret, sum)
		return
	}
	service.Main("gateway", func(ctx context.Context, env *service.Env) error {
		if env.Config.Gateway == "" {
			return errors.New("--gateway (FORGE_GATEWAY): name the file with the gateway's settings")
		}
		settings, err := gateway.ReadSettings(env.Config.Gateway)
		if err != nil {
			return fmt.Errorf("--gateway (FORGE_GATEWAY): %w", err)
		}
		g, err := gateway.New(gateway.Config{Settings: settings, Bus: env.Bus, Log: env.Log, Replica: env.Config.Replica, Metrics: env.Metrics, Worker: env.Worker})
		if err != nil {
			return err
		}
		env.Announce(ctx, nil, presence.Executor{}, g.Projects()...)
		return g.Run(ctx)
	})
}
