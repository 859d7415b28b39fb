package backends

import (
	"context"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/exec"
	"github.com/pfl-forge/pfl-forge/agent/gateway"
	"github.com/pfl-forge/pfl-forge/service"
)

// watchCredentials makes a service unready while files of its credentials cannot be used, and
// logs the names of those that no agent reads: they may be misspelt.
func watchCredentials(env *service.Env) {
	if env.Config.CredentialsDir == "" {
		return
	}
	env.Health.Add("credentials", func(context.Context) error { return env.Credentials().Err() })
	known := gateway.Variables()
	for _, name := range env.Credentials().Files() {
		if !slices.Contains(known, name) && !strings.HasPrefix(name, exec.CredentialPrefix) {
			env.Log.Warn("no agent reads this file of --credentials-dir (FORGE_CREDENTIALS_DIR)", "file", name)
		}
	}
}

// holdForCredentials returns why a command has to wait that calls an agent: a Secret that
// cannot be used is no task's fault, and no task is to fail by it. Recipes need no credentials.
func holdForCredentials(env *service.Env, cmd *forge.Command) error {
	if env.Config.CredentialsDir == "" || !cmd.Attempt.Step.CallsAgent() || cmd.Intent.Recipe != "" {
		return nil
	}
	return env.Credentials().Err()
}
