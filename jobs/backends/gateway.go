package backends

import (
	"context"
	"log/slog"
	"os"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/gateway"
)

// models is how agents reach their models: through a gateway that has the keys of the
// process's environment.
type models struct {
	gateway *gateway.Gateway
	err     error
}

// openModels starts a gateway with the accounts of the process's environment.
// Its error is told by calls that need a model.
func openModels(log *slog.Logger) models {
	accounts, err := gateway.FromEnvironment(os.LookupEnv)
	if err != nil {
		return models{err: err}
	}
	g, err := gateway.Start(gateway.Config{Accounts: accounts, CAFile: os.Getenv("NODE_EXTRA_CA_CERTS"), Log: log})
	return models{gateway: g, err: err}
}

// connect gives each call of a back end access of its own. What is wrong with the
// environment is told by the calls: recipes need none of it.
func (m models) connect(p gateway.Provider) agent.Connect {
	if m.err == nil {
		return m.gateway.Connect(p)
	}
	return func(context.Context, agent.Call) (agent.Connection, error) {
		return agent.Connection{}, agent.Fail(forge.FailConfig, "the service cannot reach its models: %v", m.err)
	}
}
