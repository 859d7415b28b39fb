package exec

import (
	"encoding/json"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/process"
)

// line is what the program prints: the result, and before it, if it likes, events.
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

type usage struct {
	Input      int64   `json:"input_tokens"`
	Output     int64   `json:"output_tokens"`
	CacheRead  int64   `json:"cache_read_tokens"`
	CacheWrite int64   `json:"cache_write_tokens"`
	CostUSD    float64 `json:"cost_usd"`
	Turns      int64   `json:"turns"`
}

type failureReport struct {
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Until   time.Time `json:"until"`
}

type reader struct {
	log     *cli.Recorder
	session string
	result  *outputLine
	garbage int
}

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

func (u *usage) forge() forge.Usage {
	return forge.Usage{
		InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite,
		CostUSD: u.CostUSD, Turns: u.Turns,
	}
}

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

// reasons are those that a program may give; others are its crash.
var allowedReasons = map[string]forge.FailureReason{
	"auth": forge.FailAuth, "rate_limited": forge.FailRateLimited, "quota": forge.FailQuota, "overloaded": forge.FailOverloaded,
	"refused": forge.FailRefused, "prompt_too_long": forge.FailPromptTooLong, "max_turns": forge.FailMaxTurns, "budget": forge.FailBudget,
	"lost_session": forge.FailLostSession, "invalid_output": forge.FailInvalidOutput, "config": forge.FailConfig,
}

func (p *failureReport) failure(report process.Report) *agent.Failure {
	if reason, ok := allowedReasons[p.Reason]; ok {
		return agent.FailUntil(reason, p.Until, "%s", p.Message)
	}
	return cli.ExitFailure(report, 0, p.Message)
}
