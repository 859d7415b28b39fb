package console

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/console/session"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// TestSessionExpiresWhileAPageIsOpen: after 12 hours the next click and the next decision
// lead to the form to sign in, which says why, and that what was sent was not done.
func TestSessionExpiresWhileAPageIsOpen(t *testing.T) {
	book, err := tokens.Own("Ada", "shop")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := New(Config{Tokens: book, Key: make([]byte, session.KeyBytes), Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }})
	own, err := book.Named(tokens.OwnEntry)
	if err != nil {
		t.Fatal(err)
	}
	cookie := &http.Cookie{Name: cookieName, Value: c.sessions.Seal(session.ByToken, own)}
	send := func(method, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.AddCookie(cookie)
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		return w
	}
	if got := send(http.MethodGet, Base); got.Code != http.StatusSeeOther {
		t.Errorf("at first: %d", got.Code)
	}
	now = now.Add(session.Time)
	for method, path := range map[string]string{http.MethodGet: Base + "board?state=done", http.MethodPost: Base + "projects/shop/intents/a/decide"} {
		got := send(method, path)
		text := got.Body.String()
		lost := strings.Contains(text, "What you sent was not done")
		if got.Code != http.StatusUnauthorized || !strings.Contains(text, "Your session has ended: a session lasts 12 hours") ||
			lost != (method == http.MethodPost) {
			t.Errorf("%s after 12 hours: %d %s", method, got.Code, text)
		}
		if !strings.Contains(got.Header().Get("Set-Cookie"), "Max-Age=0") {
			t.Errorf("the browser keeps the session: %v", got.Header())
		}
	}
}
