package api

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// TestWholeAtOnce: the holder of one token has no more than a few of the large answers
// in the memory of the gateway, however slowly they are taken, and all together have a
// bounded number. Who is refused is told when to ask again, before any runner is asked.
func TestWholeAtOnce(t *testing.T) {
	a := New(Config{})
	for range ownWholes {
		if !a.wholes.enter("ada") {
			t.Fatal("there is no room for one")
		}
	}
	refuses := func(who string) {
		t.Helper()
		c := &call{api: a, r: httptest.NewRequest(http.MethodGet, "/", http.NoBody), token: &tokens.Token{Name: who}}
		p, ok := errors.AsType[*Problem](c.whole())
		if !ok || p.Status != http.StatusTooManyRequests || p.retryAfter != ratePause {
			t.Errorf("%s is told %+v", who, p)
		}
	}
	refuses("ada")
	for a.wholes.all < mostWholes {
		if !a.wholes.enter(string(rune('A' + a.wholes.all))) {
			t.Fatal("there is no room for another one")
		}
	}
	refuses("bob")
}
