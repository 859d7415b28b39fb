package claude

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// failure returns why a call that ended by itself failed, or nil. It succeeded only if
// exit status, the result's subtype and is_error, and the model's stop reason agree.
func (t *outputReader) failure(report process.Report) *agent.Failure {
	stderr := term.Sanitize(strings.TrimSpace(string(report.Stderr)))
	r := t.result
	if r == nil {
		return t.noResult(report.ExitCode, stderr)
	}
	if report.ExitCode == 0 && r.Subtype == "success" && r.IsError != nil && !*r.IsError {
		return t.checkSuccess()
	}
	said := strings.TrimSpace(r.Result + "\n" + strings.Join(r.Errors, "\n"))
	if said == "" {
		said = fmt.Sprintf("it ended with status %d and result %q; %s", report.ExitCode, r.Subtype, stderr)
	}
	return t.classify(said, report.ExitCode)
}

// checkSuccess returns the flaw of a result that calls itself a success, or nil: a
// refusal, a cut-off reply, or none at all.
func (t *outputReader) checkSuccess() *agent.Failure {
	r := t.result
	switch {
	case r.NumTurns == 0 && strings.HasPrefix(r.Result, "Unknown command"):
		return agent.Fail(forge.FailCrashed, "the CLI took the prompt for a command: %s", r.Result)
	case r.StopReason == "refusal":
		return refusedFailure(r.Result)
	case len(r.StructuredOutput) > 0:
		return nil
	case r.StopReason == "max_tokens":
		return tooLongFailure(r.Result)
	case r.StopReason == "pause_turn", r.StopReason == "model_context_window_exceeded":
		return agent.Fail(forge.FailInvalidOutput, "the model stopped before it was done (%s); it said: %s", r.StopReason, term.Short(r.Result, maxText))
	case strings.TrimSpace(r.Result) == "":
		return agent.Fail(forge.FailInvalidOutput, "the agent ended without an answer")
	}
	return nil
}

// refusedFailure returns the failure of a request that the model declined.
func refusedFailure(said string) *agent.Failure {
	return agent.Fail(forge.FailRefused, "the model refused; rephrase the request, or choose another model: %s", said)
}

// tooLongFailure returns the failure of a reply that exceeds the model's output limit.
func tooLongFailure(said string) *agent.Failure {
	return agent.Fail(forge.FailInvalidOutput, "its reply was too long for the model: %s", said)
}

// noResult returns the failure of a call whose output has no result message. code is
// the exit status.
func (t *outputReader) noResult(code int, stderr string) *agent.Failure {
	switch {
	case contains(stderr, "no conversation found", "is already in use"):
		return agent.Fail(forge.FailLostSession, "%s", stderr)
	case contains(stderr, "unknown option", "unknown argument"):
		return agent.Fail(forge.FailCLITooOld, "this version of Claude Code does not support an option that pfl-forge uses; update it with %s: %s", install, stderr)
	case contains(stderr, "api key", "not logged in", "/login"):
		return authFailure(stderr)
	case code > 128:
		return killedFailure(code - 128)
	case t.garbage > 0:
		return agent.Fail(forge.FailCrashed, "it ended with status %d, without a result, and printed something that is not a message: %q; %s",
			code, t.firstGarbage, stderr)
	}
	return agent.Fail(forge.FailCrashed, "it ended with status %d and without a result, as when it is interrupted; %s", code, stderr)
}

// killedFailure returns the failure of a CLI that was killed by a signal which this
// service did not send.
func killedFailure(signal int) *agent.Failure {
	why := "something else on the machine stopped it"
	if signal == 9 {
		why = "the machine may be short of memory"
	}
	return agent.Fail(forge.FailKilled, "it was killed by signal %d; %s", signal, why)
}

// classify returns the failure of a result that is no success. The specific fields of
// the result are checked before the words of the message.
func (t *outputReader) classify(said string, code int) *agent.Failure {
	r := t.result
	switch {
	case r.Subtype == "error_max_turns":
		return agent.Fail(forge.FailMaxTurns, "it reached the limit of turns (calls.max_turns in pfl-forge.yaml): %s", said)
	case r.Subtype == "error_max_budget_usd":
		return t.budgetFailure(said)
	case r.Subtype == "error_max_structured_output_retries":
		return agent.Fail(forge.FailInvalidOutput, "its answers did not match the schema: %s", said)
	case contains(said, "no conversation found"):
		return agent.Fail(forge.FailLostSession, "%s", said)
	case r.Subtype == "error_during_execution":
		if code > 128 {
			return killedFailure(code - 128)
		}
		return agent.Fail(forge.FailCrashed, "it was interrupted in its work: %s", said)
	case r.TerminalReason == "prompt_too_long", r.APIErrorStatus == 413, contains(said, "prompt is too long", "context window limit"):
		return agent.Fail(forge.FailPromptTooLong, "the conversation is too long for the model: %s", said)
	case r.StopReason == "refusal", contains(said, "usage policy", "unable to respond to this request"):
		return refusedFailure(said)
	case t.apiErrorKind == "max_output_tokens", r.StopReason == "max_tokens":
		return tooLongFailure(said)
	}
	return t.apiError(t.status(said), said, code)
}

// budgetFailure returns the failure of a call that was stopped by its budget, whether
// the CLI, the gateway or pfl-forge stopped it.
func (t *outputReader) budgetFailure(said string) *agent.Failure {
	return agent.Fail(forge.FailBudget, "it was stopped after $%.2f of the $%.2f reserved for this call; the work so far is kept: %s",
		t.usage().CostUSD, t.budget, said)
}

// authFailure returns the failure of a login that the model's API refuses.
func authFailure(said string) *agent.Failure {
	return agent.Fail(forge.FailAuth,
		"the model does not accept the login; set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN for the service, then retry: %s", said)
}

// apiError returns the failure of a request to the model's API, from its HTTP status (0
// if there was none), the CLI's name for it, or its message.
func (t *outputReader) apiError(status int, said string, code int) *agent.Failure {
	is := func(kinds string) bool { return t.apiErrorKind != "" && strings.Contains(kinds, t.apiErrorKind) }
	switch {
	case contains(said, "budget of this call is used up"):
		return t.budgetFailure(said)
	case is("billing_error"), contains(said, "usage limit", "hit your", "out of usage", "credit balance", "quota"):
		return agent.FailUntil(forge.FailQuota, t.limitEnd(said, time.Now()), "the account's usage limit is reached: %s", said)
	case is("authentication_failed oauth_org_not_allowed"), status == 401, status == 403,
		contains(said, "invalid api key", "not logged in", "/login"):
		return authFailure(said)
	case is("rate_limit"), status == 429:
		return agent.FailUntil(forge.FailRateLimited, t.limitEnd(said, time.Now()), "the model accepts no more requests for now: %s", said)
	case is("model_not_found"), status == 404:
		return agent.Fail(forge.FailConfig, "the model is not known; set models in pfl-forge.yaml: %s", said)
	case is("overloaded server_error"), status >= 500,
		contains(said, "overloaded", "connection error", "connection closed", "unable to connect", "timed out", "malformed response"):
		return agent.Fail(forge.FailOverloaded, "the model is overloaded or unreachable: %s", said)
	case code > 128:
		return killedFailure(code - 128)
	}
	return agent.Fail(forge.FailCrashed, "%s", said)
}

var statusInText = pattern.New(`API Error:? (\d{3})\b`)

// status returns the HTTP status of the error that ended the call, or 0.
func (t *outputReader) status(said string) int {
	if t.result.APIErrorStatus != 0 {
		return t.result.APIErrorStatus
	}
	if m := statusInText.FindStringSubmatch(said); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 0
}

// waitingText returns the reason of an api_retry message.
func waitingText(m *message) string {
	if m.ErrorStatus == 429 {
		return "rate limited"
	}
	if m.ErrorStatus != 0 {
		return fmt.Sprintf("the model's API answers %d", m.ErrorStatus)
	}
	return "the model's API cannot be reached"
}

// contains reports whether s, in lower case, contains one of the parts.
func contains(s string, parts ...string) bool {
	s = strings.ToLower(s)
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}
