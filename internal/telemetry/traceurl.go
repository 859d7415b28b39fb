package telemetry

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/term"
)

// traceID stands for the id of a trace in a TraceURL.
const traceID = "{trace_id}"

// maxTraceURL bounds a TraceURL, in bytes: a person reads it in a line.
const maxTraceURL = 2000

// TraceURL is the address at which a person reads a trace, with {trace_id} for its id. The zero
// value is none.
type TraceURL string

// ParseTraceURL returns the address that a person configured. Terminals make links of what is
// printed, so an address of another scheme, with a password or with characters that a
// terminal would act on is an error; so is one without {trace_id}, because it is the same for
// all traces. An empty text is no address.
func ParseTraceURL(s string) (TraceURL, error) {
	if s == "" {
		return "", nil
	}
	shown := term.Short(s, 100)
	if len(s) > maxTraceURL {
		return "", fmt.Errorf("%q is longer than %d bytes", shown, maxTraceURL)
	}
	for _, r := range s {
		if r <= ' ' || r > '~' {
			return "", fmt.Errorf("%q holds the character %+q: write it percent-encoded", shown, r)
		}
	}
	if !strings.Contains(s, traceID) {
		return "", fmt.Errorf("%q has no %s: put it where the id of a trace belongs", shown, traceID)
	}
	u, err := url.Parse(s)
	switch {
	case err != nil: // its text has the whole address
		return "", fmt.Errorf("%q is no address: %w", shown, errors.Unwrap(err))
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "":
		return "", fmt.Errorf("%q is no https or http address", shown)
	case u.User != nil:
		return "", errors.New("leave user and password out: the address is printed")
	}
	return TraceURL(s), nil
}

// Of returns the address of a trace; empty without a TraceURL or a trace.
func (u TraceURL) Of(id string) string {
	if id == "" {
		return ""
	}
	return strings.ReplaceAll(string(u), traceID, id)
}
