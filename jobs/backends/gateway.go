package backends

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/gateway"
	"github.com/pfl-forge/pfl-forge/internal/credentials"
)

// Read returns the variables that agents log in with, as they are now.
type Read func() credentials.Variables

// Environment reads the process's environment, which does not change.
func Environment() credentials.Variables { return credentials.Variables{} }

// models is how agents reach their models: through a gateway that alone has the keys.
type models struct {
	gateway *gateway.Gateway
	// err says why there is no gateway.
	err error
}

// openModels starts a gateway with the accounts that the variables define.
// Its error is told by calls that need a model.
func openModels(read Read, log *slog.Logger) models {
	g, err := gateway.Start(gateway.Config{
		Variables: func() gateway.Lookup { return read().Lookup },
		CAFile:    os.Getenv("NODE_EXTRA_CA_CERTS"), Log: log,
	})
	return models{gateway: g, err: err}
}

// connect gives each call of a back end access of its own. What is wrong with the
// variables is told by the calls: recipes need none of them.
func (m models) connect(p gateway.Provider) agent.Connect {
	if m.err == nil {
		return blamed(m.gateway.Connect(p))
	}
	return func(context.Context, agent.Call) (agent.Connection, error) {
		return agent.Connection{}, unreachable(m.err)
	}
}

// blamed returns a Connect whose errors say who has to act.
func blamed(connect agent.Connect) agent.Connect {
	return func(ctx context.Context, call agent.Call) (agent.Connection, error) {
		conn, err := connect(ctx, call)
		if err != nil {
			return agent.Connection{}, unreachable(err)
		}
		return conn, nil
	}
}

// unreachable returns the failure of a call that has no way to its model. Files that cannot
// be read are the replica's trouble: it is tried again, here or elsewhere. A setting
// that is wrong stays wrong, so a person is asked.
func unreachable(err error) error {
	reason := forge.FailConfig
	if errors.Is(err, credentials.ErrUnreadable) {
		reason = forge.FailOverloaded
	}
	return agent.Fail(reason, "the service cannot reach its models: %v", err)
}
