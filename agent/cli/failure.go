package cli

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

// Contains reports whether s, in lower case, contains one of the parts.
func Contains(s string, parts ...string) bool {
	s = strings.ToLower(s)
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// statusInText finds an HTTP error status in a message.
var statusInText = pattern.New(`(?i)(?:\bstatus(?: code)?|\bHTTP|"(?:code|status)"|\berror|\bcode)\W{0,4}([45]\d\d)\b`)

// Classify returns the failure that a message of an API or CLI stands for, or nil if it
// recognizes none. status is the HTTP status, or 0 to search the message for one. The
// order of the cases matters: a used-up quota, for example, comes with status 429, too.
func Classify(status int, said string) *agent.Failure {
	said = strings.TrimSpace(said)
	if status == 0 {
		if m := statusInText.FindStringSubmatch(said); m != nil {
			status, _ = strconv.Atoi(m[1])
		}
	}
	switch {
	case Contains(said, "unexpected argument", "unknown argument", "unknown option", "unrecognized option", "unknown feature flag"):
		return agent.Fail(forge.FailCLITooOld, "it does not support an option that pfl-forge uses, so its version does not fit: %s", said)
	case Contains(said, "context window", "context_length", "context length", "prompt is too long", "input token count", "maximum context"):
		return agent.Fail(forge.FailPromptTooLong, "%s", said)
	case Contains(said, "content_filter", "content policy", "usage policy", "safety", "prohibited_content", "cyber_policy", "flagged"):
		return agent.Fail(forge.FailRefused, "the model declined: %s", said)
	case Contains(said, "usage limit", "quota exceeded", "exceeded your current quota", "insufficient_quota", "credit balance", "billing", "quota will reset",
		"exhausted your", "daily limit"):
		return agent.FailUntil(forge.FailQuota, limitEnd(said, time.Now()), "%s", said)
	case status == 401, status == 403, Contains(said, "api key not valid", "invalid api key", "incorrect api key", "unauthorized", "api_key_invalid",
		"missing environment variable", "not logged in", "please set an auth method", "authentication_error"):
		return agent.Fail(forge.FailAuth, "%s", said)
	case status == 429, Contains(said, "rate limit", "rate_limit", "too many requests", "resource_exhausted", "resource has been exhausted"):
		return agent.FailUntil(forge.FailRateLimited, limitEnd(said, time.Now()), "%s", said)
	case status == 404, Contains(said, "model_not_found", "model not found", "is not found for api version", "does not exist or you do not have access"):
		return agent.Fail(forge.FailConfig, "the model is not known; set models in pfl-forge.yaml: %s", said)
	case status >= 500, Contains(said, "overloaded", "at capacity", "high demand", "server_error", "internal error", "unavailable", "stream disconnected",
		"connection refused", "connection error", "error sending request", "unable to connect", "fetch failed", "timed out", "econnre", "socket"):
		return agent.Fail(forge.FailOverloaded, "%s", said)
	}
	return nil
}

// ExitFailure returns why a CLI ended without success, from its message or else its
// stderr. An unrecognized one is FailCrashed. The failure has a message even if the CLI
// printed none, because a person reads it.
func ExitFailure(report process.Report, status int, said string) *agent.Failure {
	stderr := strings.TrimSpace(term.Sanitize(string(report.Stderr)))
	if strings.TrimSpace(said) == "" {
		said = stderr
	}
	if f := Classify(status, said); f != nil {
		if strings.TrimSpace(f.Message) == "" {
			f.Message = fmt.Sprintf("it ended with status %d and printed no message", report.ExitCode)
		}
		return f
	}
	return agent.Fail(forge.FailCrashed, "it ended with status %d; %s", report.ExitCode, said)
}

// Ways in which messages say when a limit ends: after a duration, as Unix time, or as a
// timestamp.
var (
	relativeEnd  = pattern.New(`(?i)(?:try again|retry|reset)[^.]{0,40}?\bin ((?:\d+(?:\.\d+)? ?[a-z]+,? ?(?:and )?)+)`)
	durationPart = pattern.New(`(\d+(?:\.\d+)?) ?([a-z]+)`)
	epochEnd     = pattern.New(`(?i)resets?_?(?:at)?\W{1,4}(\d{10})\b`)
	isoEnd       = pattern.New(`(?i)(?:try again|retry|reset)[^.]{0,40}?(\d{4}-\d\d-\d\dT[0-9:.]+Z)`)
)

// limitEnd returns when the limit in a message ends; zero if the message does not say,
// or names an end more than a month away.
func limitEnd(said string, now time.Time) time.Time {
	if m := epochEnd.FindStringSubmatch(said); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		return time.Unix(n, 0).UTC()
	}
	if m := isoEnd.FindStringSubmatch(said); m != nil {
		if t, err := time.Parse(time.RFC3339, m[1]); err == nil {
			return t
		}
	}
	m := relativeEnd.FindStringSubmatch(said)
	if m == nil {
		return time.Time{}
	}
	total := 0.0
	for _, part := range durationPart.FindAllStringSubmatch(strings.ToLower(m[1]), -1) {
		n, _ := strconv.ParseFloat(part[1], 64)
		switch {
		case part[2] == "ms" || strings.HasPrefix(part[2], "milli"):
			total += n / 1000
		case part[2][0] == 's':
			total += n
		case part[2][0] == 'm':
			total += n * 60
		case part[2][0] == 'h':
			total += n * 3600
		case part[2][0] == 'd':
			total += n * 86400
		}
	}
	const most = 31 * 86400
	if total <= 0 || total > most {
		return time.Time{}
	}
	return now.Add(time.Duration(total * float64(time.Second))).UTC().Truncate(time.Second)
}
