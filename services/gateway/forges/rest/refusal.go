package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
)

const (
	// away is for how long a forge is left alone that does not answer, and maxAway for how
	// long at most one that says so itself.
	away    = 30 * time.Second
	maxAway = time.Hour
	// unsaid is for how long a limit is waited for whose end is not told. GitHub asks for a
	// minute at least.
	unsaid = time.Minute
	// maxReason bounds the forge's reason for a refusal, in bytes.
	maxReason = 300
)

// refusal returns the error of an answer; nil if it is none. The text of the answer is the
// forge's, or that of whoever stands before it: only where it is a reason for people it is
// in the error, as a short line.
func (c *Client) refusal(a *answer) error {
	if a.status < http.StatusMultipleChoices {
		return nil
	}
	message := messageOf(a.body)
	reason := Reason(message)
	// 403 is also for rights that are missing; then the limit has something left, or is not
	// there, and nothing says when to come again.
	usedUp, after := a.header.Get("X-Ratelimit-Remaining") == "0", a.header.Get("Retry-After") != ""
	unmarked := c.cfg.Limited != nil && c.cfg.Limited(message)
	switch code := a.status; {
	case code == http.StatusTooManyRequests, code == http.StatusForbidden && (usedUp || after || unmarked):
		d := c.wait(a.header, away)
		if !usedUp && !after && unmarked { // the header's end is that of another limit
			d = unsaid
		}
		return c.cfg.Hold.until(c.parked(d, "the limits of "+c.cfg.Called+" are used up"))
	case code < http.StatusBadRequest:
		return fmt.Errorf("%s answers with a redirect (%d); its url may be another one", c.cfg.Called, code)
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		if c.cfg.Denied != nil {
			if why := c.cfg.Denied(code, reason); why != "" {
				return fmt.Errorf("%w (%d): %s", forges.ErrDenied, code, why)
			}
		}
		return fmt.Errorf("%w (%d)", forges.ErrDenied, code)
	case code == http.StatusNotFound, code == http.StatusGone:
		return forges.ErrNotFound
	case code >= http.StatusInternalServerError:
		return c.parked(c.wait(a.header, away), fmt.Sprintf("%s has a fault of its own (%d)", c.cfg.Called, code))
	default:
		return &forges.RefusedError{Code: code, Again: c.cfg.Again != nil && c.cfg.Again(code, message), Reason: reason}
	}
}

// messageOf returns the words of an answer of a refusal; empty if it has none. They are a text,
// or, at GitLab, a list of texts or lists of them by field.
func messageOf(body []byte) string {
	var said struct {
		Message any    `json:"message"`
		Error   string `json:"error"`
		Detail  string `json:"error_description"`
		Errors  []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	_ = json.Unmarshal(body, &said) // without one there is only the number
	words := []string{}
	add := func(s string) {
		if s != "" && len(words) < maxReason {
			words = append(words, s)
		}
	}
	switch m := said.Message.(type) {
	case string:
		add(m)
	case []any:
		for _, v := range m {
			add(fmt.Sprint(v))
		}
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(m)) {
			add(strings.TrimPrefix(fmt.Sprintf("%s %v", field, m[field]), "base "))
		}
	}
	add(said.Error)
	add(said.Detail)
	for _, e := range said.Errors {
		add(e.Message)
	}
	return strings.Join(words, ": ")
}

// Reason returns words of the forge as a short line for people.
func Reason(message string) string {
	return term.Line(strings.ToValidUTF8(message[:min(len(message), maxReason)], ""))
}

// parked returns the error for a forge that is left alone for a while.
func (c *Client) parked(d time.Duration, reason string) *forges.ParkedError {
	return &forges.ParkedError{Until: c.cfg.Now().Add(d), Reason: reason}
}

// Hold is the limit of an account that holds now. The zero value is none.
type Hold struct {
	mu sync.Mutex
	// held is the one that the forge told last, and until when.
	held forges.ParkedError
}

// until has nothing asked until a limit ends.
func (h *Hold) until(p *forges.ParkedError) error {
	if h == nil {
		return p
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.Until.After(h.held.Until) {
		h.held = *p
	}
	return p
}

// holding returns the limit that holds at a time; nil if none does.
func (h *Hold) holding(now time.Time) error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Before(h.held.Until) {
		p := h.held
		return &p
	}
	return nil
}

// wait returns how long the forge wants to be left alone: Retry-After in seconds or as a
// date, or the time at which a limit ends.
func (c *Client) wait(h http.Header, usual time.Duration) time.Duration {
	now := c.cfg.Now()
	d := usual
	if seconds, err := strconv.Atoi(h.Get("Retry-After")); err == nil {
		d = time.Duration(min(max(seconds, 0), int(maxAway/time.Second))) * time.Second
	} else if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		d = at.Sub(now)
	} else if at, err := strconv.ParseInt(cmp.Or(h.Get("X-Ratelimit-Reset"), h.Get("Ratelimit-Reset")), 10, 64); err == nil {
		d = time.Unix(at, 0).Sub(now)
	}
	return min(max(d, time.Second), maxAway)
}
