package gateway

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

func TestAccounts(t *testing.T) {
	for _, bad := range []string{"model.example", "ftp://model.example", "http://", "http://me:pw@model.example", "http://model.example?x=1", ":"} {
		if _, err := Accounts(environment("ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+bad)); err == nil || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	list, err := Accounts(environment("ANTHROPIC_API_KEY= ", "ANTHROPIC_BASE_URL=", "CLAUDE_CODE_OAUTH_TOKEN=o\n", "OPENAI_API_KEY=p"))
	if err != nil || len(list) != 2 || list[0].secret != "o" || list[0].base.String() != "https://api.anthropic.com" || list[1].Provider != OpenAI {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestNewKeyIsUsedAtOnce replaces the key while a call is under way: its next request has the
// new one, whatever kind of key it is and wherever it is valid. A key that is gone or cannot be
// read ends the requests, and nobody is told the former one.
func TestNewKeyIsUsedAtOnce(t *testing.T) {
	first, second := newModel(t, plainAnswer(whole)), newModel(t, plainAnswer(whole))
	var now atomic.Pointer[Lookup]
	set := func(l Lookup) { now.Store(&l) }
	set(environment("ANTHROPIC_API_KEY=old", "ANTHROPIC_BASE_URL="+first.URL))
	g := start(t, Config{Variables: func() Lookup { return *now.Load() }})
	grant := open(t, g, Anthropic, Limit{})
	ask := func(want int) string {
		t.Helper()
		status, body := post(t, grant, "/v1/messages")
		if status != want {
			t.Errorf("status %d, want %d: %s", status, want, body)
		}
		return body
	}
	ask(http.StatusOK)
	if got := first.next(t).Header.Get("X-Api-Key"); got != "old" {
		t.Errorf("the key is %q", got)
	}
	set(environment("ANTHROPIC_AUTH_TOKEN=new", "ANTHROPIC_BASE_URL="+second.URL))
	ask(http.StatusOK)
	if h := second.next(t).Header; h.Get("X-Api-Key") != "" || h.Get("Authorization") != "Bearer new" {
		t.Errorf("the model gets %v", h)
	}
	set(environment())
	ask(http.StatusUnauthorized)
	set(func(string) (string, error) { return "", errors.New("/secrets/KEY is empty") })
	if body := ask(http.StatusServiceUnavailable); strings.Contains(body, "/secrets") {
		t.Errorf("an agent is told %s", body)
	}
	if _, err := g.Open(t.Context(), Anthropic, Limit{}); err == nil || errors.Is(err, ErrNoAccount) {
		t.Errorf("a key that cannot be read: %v", err)
	}
	set(environment("ANTHROPIC_API_KEY=newest", "ANTHROPIC_BASE_URL="+first.URL))
	ask(http.StatusOK)
	if got := first.next(t).Header.Get("X-Api-Key"); got != "newest" {
		t.Errorf("the key is %q", got)
	}
	if len(first.got)+len(second.got) != 0 || grant.Requests() != 3 {
		t.Errorf("%d and %d more requests, of %d", len(first.got), len(second.got), grant.Requests())
	}
}
