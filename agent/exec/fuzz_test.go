package exec

import (
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/cli/clitest"
	"github.com/pfl-forge/pfl-forge/config"
)

func FuzzOutput(f *testing.F) {
	clitest.Fuzz(f, New("tool", config.AgentConfig{Command: []string{"tool"}}, cli.Options{}), "", "",
		`{"type":"text","text":"a\u001b[31m"}
{"type":"result","answer":{"summary":"s"},"usage":{"input_tokens":-1,"cost_usd":1e308}}`,
		`{"type":"tool","tool":"Write","file":"/d/../x"}`,
		`{"type":"error","error":{"reason":"quota","message":"no","until":"2026-01-02T03:04:05Z"}}`,
		`{"type":"result","failure":{"reason":"of tomorrow","message":""}}`, "null\n[]\n{")
}
