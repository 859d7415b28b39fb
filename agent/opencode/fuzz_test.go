package opencode

import (
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/cli/clitest"
)

func FuzzOutput(f *testing.F) {
	clitest.Fuzz(f, New(cli.Options{}), "", "",
		`{"type":"text","sessionID":"ses_1","part":{"text":"{\"summary\":\"\u001b[2J\"}"}}
{"type":"step_finish","sessionID":"ses_1","part":{"tokens":{"input":1,"output":9223372036854775807,"reasoning":3,"cache":{"read":4,"write":5}}}}`,
		`{"type":"refused","status":429,"message":"slow down","after":"1e300"}
{"type":"refused","status":529,"message":"overloaded_error","after":"NaN"}`,
		`{"type":"tool_use","part":{"tool":"write","state":{"status":"completed","input":{"filePath":"/d/../x"}}}}`,
		`{"type":"error","sessionID":"ses_1","error":{"name":"APIError","data":{"message":"no","statusCode":401,"responseBody":"x"}}}`,
		`null
[]
{`)
}
