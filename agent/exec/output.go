package exec

import (
	"encoding/json"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/process"
)

// outputLine is a line that the program prints: an event, or the result. The guide
// lists which fields belong to which type.
type outputLine struct {
	Type   string          `json:"type"`
	Text   string          `json:"text"`
	Tool   string          `json:"tool"`
	Path   string          `json:"path"`
	Until  time.Time       `json:"until"`
	Model  string          `json:"model"`
	Usage  *usage          `json:"usage"`
	Answer json.RawMessage `json:"answer"`
	Error  *failureReport  `json:"error"`
}

// usage has the tokens and cost of the turn so far, not of one request.
type usage struct {
	Input      int64   `json:"input_tokens"`
	Output     int64   `json:"output_tokens"`
	CacheRead  int64   `json:"cache_read_tokens"`
	CacheWrite int64   `json:"cache_write_tokens"`
	CostUSD    float64 `json:"cost_usd"`
	Turns      int64   `json:"turns"`
}

// failureReport is the error of a result.
type failureReport struct {
	// Reason is a key of allowedReasons.
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Until   time.Time `json:"until"`
}

// reader reads the program's output.
type reader struct {
	log *cli.Recorder
	// session is our id, which the program uses as its own.
	session string
	// result is the last result line; nil if there is none yet.
	result *outputLine
	// garbage counts lines that are no JSON object with a type.
	garbage int
}

// Line takes one line of output. Lines of unknown types are ignored, so that a program
// can print more than this version understands.
func (r *reader) Line(data []byte) {
	var l outputLine
	if json.Unmarshal(data, &l) != nil || l.Type == "" {
		r.garbage++
		return
	}
	r.log.Started(r.session, l.Model)
	switch l.Type {
	case "text":
		r.log.Text(l.Text)
	case "thinking":
		r.log.Thinking(l.Text)
	case "tool":
		r.log.ToolUsed(l.Tool, l.Text)
	case "tool_failed":
		r.log.ToolFailed(l.Tool, l.Text)
	case "command_ended":
		r.log.CommandEnded(l.Tool, l.Text)
	case "file":
		r.log.FileWritten(l.Path)
	case "waiting":
		r.log.Waiting(l.Text, l.Until)
	case "result":
		r.result = &l
		if len(l.Answer) > 0 && string(l.Answer) != "null" {
			l.Text = string(l.Answer)
		}
		r.log.FinalText(l.Text)
	}
	if l.Usage != nil {
		r.log.SetUsage(l.Usage.forge())
	}
}

// forge converts to the project's type.
func (u *usage) forge() forge.Usage {
	return forge.Usage{
		InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite,
		CostUSD: u.CostUSD, Turns: u.Turns,
	}
}

// End returns why the turn failed: the program's own reason first, then its exit
// status.
func (r *reader) End(report process.Report) *agent.Failure {
	switch {
	case r.result == nil && report.ExitCode != 0:
		return cli.ExitFailure(report, 0, "")
	case r.result == nil:
		return agent.Fail(forge.FailInvalidOutput, "it printed no line {\"type\": \"result\", ...}, and %d lines that are no JSON with a type", r.garbage)
	case r.result.Error != nil:
		return r.result.Error.failure(report)
	case report.ExitCode != 0:
		return cli.ExitFailure(report, 0, r.result.Text)
	}
	return nil
}

// allowedReasons has the reasons that a program may give. With any other it is treated
// as a crash, whose message is classified.
var allowedReasons = map[string]forge.FailureReason{
	"auth": forge.FailAuth, "rate_limited": forge.FailRateLimited, "quota": forge.FailQuota, "overloaded": forge.FailOverloaded,
	"refused": forge.FailRefused, "prompt_too_long": forge.FailPromptTooLong, "max_turns": forge.FailMaxTurns, "budget": forge.FailBudget,
	"lost_session": forge.FailLostSession, "invalid_output": forge.FailInvalidOutput, "config": forge.FailConfig,
}

// failure returns the failure that the program reported.
func (p *failureReport) failure(report process.Report) *agent.Failure {
	if reason, ok := allowedReasons[p.Reason]; ok {
		return agent.FailUntil(reason, p.Until, "%s", p.Message)
	}
	return cli.ExitFailure(report, 0, p.Message)
}
