package codex

import (
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/cli/clitest"
)

func FuzzOutput(f *testing.F) {
	clitest.Fuzz(f, New(cli.Options{}), "sessions/2026/01/02/rollout-x-"+clitest.Native+".jsonl", "",
		`{"type":"thread.started","thread_id":"0199"}
{"type":"turn.completed","usage":{"input_tokens":5,"cached_input_tokens":9,"output_tokens":-1}}`,
		`{"type":"item.completed","item":{"type":"agent_message","text":"a\u001b[31m"}}
{"type":"item.started","item":{"type":"command_execution","command":"ls"}}`,
		`{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"/d/../x","kind":"add"}]}}
{"type":"turn.failed","error":{"message":"429"}}`,
		`{"type":"turn_context","payload":{"model":"m"}}
{"payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":9223372036854775807,"output_tokens":9223372036854775807}}}}
`,
		`{"type":"error","message":"Reconnecting... 1/5"}`,
		`null
[]
{`)
}
