package gemini

import (
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/cli/clitest"
)

func FuzzOutput(f *testing.F) {
	clitest.Fuzz(f, New(cli.Options{}), "tmp/x/chats/session-1-"+clitest.Native[:8]+".jsonl", `{"sessionId":"`+clitest.Native+`"}`+"\n",
		`{"type":"init","session_id":"x","model":"m"}
{"type":"message","role":"assistant","content":"a\u001b[31m","delta":true}
{"type":"result","status":"success","stats":{"total_tokens":5,"input_tokens":1,"cached":9}}`,
		`{"type":"tool_use","tool_name":"write_file","tool_id":"t","parameters":{"file_path":"/d/../x"}}
{"type":"tool_result","tool_id":"t","status":"success"}`,
		`{"id":"a","type":"gemini","tokens":{"input":9223372036854775807,"output":9223372036854775807,"cached":-9,"thoughts":1,"tool":1}}
`,
		`{"type":"result","status":"error","error":{"message":"no"}}
status: 429
`,
		`null
[]
{`)
}
