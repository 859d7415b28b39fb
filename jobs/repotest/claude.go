package repotest

import (
	"testing"

	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/agent/claude"
	"github.com/pfl-forge/pfl-forge/agent/process"
)

// Claude is the real Claude Code CLI, with a model that follows a scenario. The
// server has the requests, under the name "model".
func Claude(t testing.TB, scenario agenttest.Scenario) (agent.Agent, *agenttest.Server) {
	t.Helper()
	path := agenttest.ClaudeCLI(t)
	server := agenttest.NewServer(t)
	return claude.New(claude.Options{
		Path: path, Owner: process.NewOwner(t.TempDir()),
		Env: []string{
			"ANTHROPIC_BASE_URL=" + server.Script("model", scenario), "ANTHROPIC_API_KEY=test-key", "CLAUDE_CODE_MAX_RETRIES=0",
		},
	}), server
}
