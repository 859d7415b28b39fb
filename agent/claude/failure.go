package claude

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// failure says why a call that ended by itself failed, or returns nil.
func (t *transcript) failure(report process.Report) *agent.Failure {
	stderr := term.Sanitize(strings.TrimSpace(string(report.Stderr)))
	r := t.result
	if r == nil {
		return t.noResult(report.ExitCode, stderr)
	}
	if report.ExitCode == 0 && r.Subtype == "success" && r.IsError != nil && !*r.IsError {
		if r.NumTurns == 0 && strings.HasPrefix(r.Result, "Unknown command") {
			return agent.Fail(forge.FailInvalidOutput, "the prompt was taken for a command: %s", r.Result)
		}
		if r.StopReason == "refusal" {
			return agent.Fail(forge.FailRefused, "the model declined: %s", r.Result)
		}
		return nil
	}
	said := strings.TrimSpace(r.Result + "\n" + strings.Join(r.Errors, "\n"))
	if said == "" {
		said = fmt.Sprintf("it ended with status %d and result %q; %s", report.ExitCode, r.Subtype, stderr)
	}
	return t.explain(said)
}

func (t *transcript) noResult(code int, stderr string) *agent.Failure {
	switch {
	case contains(stderr, "no conversation found"):
		return agent.Fail(forge.FailLostSession, "%s", stderr)
	case contains(stderr, "api key", "not logged in", "/login"):
		return agent.Fail(forge.FailAuth, "%s", stderr)
	case t.garbage > 0:
		return agent.Fail(forge.FailInvalidOutput, "it printed %d lines that are no messages, and no result; %s", t.garbage, stderr)
	}
	return agent.Fail(forge.FailCrashed, "it ended with status %d and without a result; %s", code, stderr)
}

// explain maps a failed result to its reason.
func (t *transcript) explain(said string) *agent.Failure {
	r := t.result
	switch {
	case r.Subtype == "error_max_turns":
		return agent.Fail(forge.FailMaxTurns, "it reached the limit of turns: %s", said)
	case r.Subtype == "error_max_budget_usd":
		return agent.Fail(forge.FailBudget, "it reached the limit of cost: %s", said)
	case r.Subtype == "error_max_structured_output_retries":
		return agent.Fail(forge.FailInvalidOutput, "its answers did not match the schema: %s", said)
	case contains(said, "no conversation found"):
		return agent.Fail(forge.FailLostSession, "%s", said)
	case r.TerminalReason == "prompt_too_long", contains(said, "prompt is too long"):
		return agent.Fail(forge.FailConfig, "the prompt is too long for the model: %s", said)
	case r.StopReason == "refusal", contains(said, "usage policy", "unable to respond to this request"):
		return agent.Fail(forge.FailRefused, "the model declined: %s", said)
	}
	return t.apiError(t.status(said), said)
}

// apiError maps an HTTP status of the model's API; 0 means that there was none.
func (t *transcript) apiError(status int, said string) *agent.Failure {
	switch {
	case contains(said, "usage limit", "hit your", "credit balance", "quota"):
		return agent.FailUntil(forge.FailQuota, t.until(said), "%s", said)
	case status == 401, status == 403, contains(said, "invalid api key", "not logged in", "/login"):
		return agent.Fail(forge.FailAuth, "%s", said)
	case status == 429:
		return agent.FailUntil(forge.FailRateLimited, t.until(said), "%s", said)
	case status == 404:
		return agent.Fail(forge.FailConfig, "the model is not known; set models in pfl-forge.yaml: %s", said)
	case status >= 500, contains(said, "overloaded", "connection error", "unable to connect", "timed out"):
		return agent.Fail(forge.FailOverloaded, "%s", said)
	}
	return agent.Fail(forge.FailCrashed, "%s", said)
}

var statusInText = regexp.MustCompile(`API Error:? (\d{3})\b`)

// status returns the HTTP status of the error that ended the call.
func (t *transcript) status(said string) int {
	if t.result.APIErrorStatus != 0 {
		return t.result.APIErrorStatus
	}
	if m := statusInText.FindStringSubmatch(said); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 0
}

var epoch = regexp.MustCompile(`\|(\d{10})\b`)

// until returns when a limit ends, if that is known: from an event, or, of older
// versions, from the text "limit reached|1790000000".
func (t *transcript) until(said string) time.Time {
	if m := epoch.FindStringSubmatch(said); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		return time.Unix(n, 0).UTC()
	}
	return t.reset
}

func waiting(m *message) string {
	if m.ErrorStatus == 429 {
		return "rate limited"
	}
	if m.ErrorStatus != 0 {
		return fmt.Sprintf("the model's API answers %d", m.ErrorStatus)
	}
	return "the model's API cannot be reached"
}

// contains reports whether s has one of the parts, in whatever case.
func contains(s string, parts ...string) bool {
	s = strings.ToLower(s)
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}
