package outside

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// event is one of a stream of server-sent events.
type event struct{ id, name, data string }

// following follows as the holder of a token, from behind an id. An answer that
// is none is in status.
func (w *world) following(ctx context.Context, who, after string) (events <-chan event, status int) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+"/api/v1/projects/shop/events", http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.secrets[who])
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	resp, err := http.DefaultClient.Do(r) //nolint:bodyclose // below, when the stream ends
	if err != nil {
		w.t.Fatal(err)
	}
	told := make(chan event, 100)
	go func() {
		defer close(told)
		defer func() { _ = resp.Body.Close() }()
		var e event
		for s := bufio.NewScanner(resp.Body); s.Scan(); {
			name, value, _ := strings.Cut(s.Text(), ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
				told <- e
				e = event{}
			}
		}
	}()
	return told, resp.StatusCode
}

// TestFollowing follows live, and goes on after the last event that came.
func TestFollowing(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	w.decides(quota.Limits{})
	ctx, cancel := context.WithCancel(wait.Context(t))
	live, status := w.following(ctx, "viewer", "")
	if status != http.StatusOK {
		t.Fatal(status)
	}
	_, _ = w.proposed("followed")
	var first event
	var names []string
	for e := range live {
		if first.id == "" {
			first = e
		}
		var ce struct {
			Type string `json:"type"`
			Data struct {
				Title string `json:"title"`
			} `json:"data"`
		}
		if err := json.Unmarshal([]byte(e.data), &ce); err != nil || ce.Type != "io.pfl-forge.intent."+e.name+".v1" || ce.Data.Title != "Risky" {
			t.Errorf("%+v, %v", e, err)
		}
		if names = append(names, e.name); e.name == "waiting" {
			break
		}
	}
	cancel()
	if names[0] != "submitted" {
		t.Errorf("followed are %v", names)
	}
	again, _ := w.following(wait.Context(t), "viewer", first.id)
	for _, want := range names[1:] {
		if e := wait.For(t, again); e.name != want {
			t.Errorf("after %s comes %+v, want %s", first.id, e, want)
		}
	}
	beginning, _ := w.following(wait.Context(t), "viewer", "0")
	if e := wait.For(t, beginning); e != first {
		t.Errorf("the first is %+v, want %+v", e, first)
	}
	for _, bad := range []string{"x", "-1", "99999999", "18446744073709551615"} {
		if _, status := w.following(wait.Context(t), "viewer", bad); status != http.StatusBadRequest {
			t.Errorf("after %s: %d", bad, status)
		}
	}
	if _, status := w.following(wait.Context(t), "banker", ""); status != http.StatusForbidden {
		t.Errorf("another project's: %d", status)
	}
}

// TestFollowersAreBounded: those who follow are counted until they go, and one
// that never reads does not hold up the others.
func TestFollowersAreBounded(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{Followers: 2})
	w.decides(quota.Limits{})
	c, err := (&net.Dialer{}).DialContext(wait.Context(t), "tcp", strings.TrimPrefix(w.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, "GET /api/v1/projects/shop/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+w.secrets["ada"]+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != nil { // it follows, and reads no more
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(wait.Context(t))
	live, _ := w.following(ctx, "viewer", "")
	if _, status := w.following(wait.Context(t), "bob", ""); status != http.StatusTooManyRequests {
		t.Errorf("a third one: %d", status)
	}
	for _, key := range []string{"a", "b", "c"} {
		w.proposed(key)
		for wait.For(t, live).name != "waiting" {
		}
	}
	cancel()
	wait.Until(t, "there is room again", func() bool {
		ctx, cancel := context.WithCancel(wait.Context(t))
		defer cancel()
		_, status := w.following(ctx, "bob", "")
		return status == http.StatusOK
	})
}
