package hooks_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

// serve returns the address of a real server with one hook of GitHub's kind.
func serve(t testing.TB, cfg hooks.Config) *httptest.Server {
	t.Helper()
	cfg.Hooks = []hooks.Hook{{Name: "x", Kind: hooks.GitHub, Secrets: files(t, newSecret), PerMinute: 1_000_000}}
	cfg.Log = slog.New(slog.DiscardHandler)
	mux := http.NewServeMux()
	hooks.NewDoor(cfg).Mount(mux)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv
}

// send posts a delivery to a real server and returns the status.
func send(t testing.TB, client *http.Client, url, body string, h http.Header) int {
	t.Helper()
	r, err := http.NewRequestWithContext(wait.Context(t), http.MethodPost, url+"/hooks/x", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = h
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// delivery returns the body and headers of the n-th event.
func delivery(n int, secret string) (string, http.Header) {
	body := fmt.Sprintf(`{"action": "opened", "issue": {"number": %d}}`, n)
	h := signed(hooks.GitHub, secret, body, now)
	h.Set("X-Github-Delivery", fmt.Sprintf("delivery-%d", n))
	return body, h
}

// TestDoubledAndForged: of 1,000 events that are delivered ten times each, in
// any order, by several senders at once and with forged ones among them, each
// is in the stream exactly once, and none of the forged.
func TestDoubledAndForged(t *testing.T) {
	t.Parallel()
	events, times, senders := testsize.Of(200, 1000), 10, 8
	b := bustest.Start(t)
	srv := serve(t, hooks.Config{Store: b.Deliveries.Store, StoreWithin: wait.Patience, ReadWithin: wait.Patience})
	rng := rand.New(rand.NewPCG(1, 2))
	order := rng.Perm(events * times)
	var wg sync.WaitGroup
	answers := make([]map[int]int, senders)
	for s := range senders {
		answers[s] = map[int]int{}
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for i := s; i < len(order); i += senders {
				body, h := delivery(order[i]/times, newSecret)
				answers[s][send(t, client, srv.URL, body, h)]++
				if i%5 == 0 {
					forged, h := delivery(events+i, "something-else-entirely")
					answers[s][send(t, client, srv.URL, forged, h)]++
				}
			}
		})
	}
	wg.Wait()
	total := map[int]int{}
	for _, a := range answers {
		for code, n := range a {
			total[code] += n
		}
	}
	seen := map[string]int{}
	if _, err := b.Deliveries.After(wait.Context(t), 0, func(d deliveries.Delivery) error {
		seen[string(d.Body)]++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for n := range events {
		if body, _ := delivery(n, newSecret); seen[body] != 1 {
			t.Errorf("%s is there %d times", body, seen[body])
		}
	}
	// A request that meets the same delivery on its way may be told to come again.
	genuine, forged := total[http.StatusAccepted]+total[http.StatusServiceUnavailable], total[http.StatusUnauthorized]
	if genuine != events*times || forged != events*times/5 || len(seen) != events {
		t.Errorf("%d events are stored; answered: %v", len(seen), total)
	}
	t.Logf("%d events are stored; answered: %v", len(seen), total)
}

// TestLargeBody: a body of 25 MB is refused without reading it, whether its length is said or not.
func TestLargeBody(t *testing.T) {
	t.Parallel()
	var s stored
	srv := serve(t, hooks.Config{Store: s.store})
	for _, length := range []string{"Content-Length: 25000000", "Transfer-Encoding: chunked"} {
		conn := dial(t, srv)
		fmt.Fprintf(conn, "POST /hooks/x HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: sha256=00\r\n%s\r\n\r\n", length)
		done := make(chan struct{})
		go func() {
			defer close(done)
			chunk := strings.Repeat("x", 1<<16)
			for range 400 { // until the server hangs up
				if _, err := fmt.Fprintf(conn, "%x\r\n%s\r\n", len(chunk), chunk); err != nil {
					return
				}
			}
		}()
		if got := status(t, conn); got != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: answered with %d", length, got)
		}
		_ = conn.Close()
		wait.For(t, done)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	if got := send(t, client, srv.URL, strings.Repeat("x", hooks.MaxBody), http.Header{}); got != http.StatusUnauthorized {
		t.Errorf("a body of exactly the bound is answered with %d", got)
	}
	runtime.ReadMemStats(&after)
	if len(s.list) > 0 {
		t.Errorf("stored %d", len(s.list))
	}
}

// TestSlowBodies: senders who never finish a body are hung up on, and meanwhile
// keep none of the others out.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	var s stored
	srv := serve(t, hooks.Config{Store: s.store, ReadWithin: time.Second})
	var slow []net.Conn
	for range 50 {
		conn := dial(t, srv)
		fmt.Fprintf(conn, "POST /hooks/x HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
		slow = append(slow, conn)
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	body, h := delivery(1, newSecret)
	if got := send(t, client, srv.URL, body, h); got != http.StatusAccepted {
		t.Errorf("with 50 slow senders a good one is answered with %d", got)
	}
	for _, conn := range slow {
		if got := status(t, conn); got != http.StatusRequestTimeout {
			t.Errorf("a slow sender is answered with %d", got)
		}
	}
}

// TestTooManyAtOnce: beyond the bound, requests are told to come again, and
// memory with that is bounded.
func TestTooManyAtOnce(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}, 300), make(chan struct{})
	srv := serve(t, hooks.Config{StoreWithin: wait.Patience, Store: func(context.Context, deliveries.Delivery) (bool, error) {
		entered <- struct{}{}
		<-leave
		return false, nil
	}})
	var wg sync.WaitGroup
	for n := range 256 {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			body, h := delivery(n, newSecret)
			if got := send(t, client, srv.URL, body, h); got != http.StatusAccepted {
				t.Errorf("answered with %d", got)
			}
		})
	}
	for range 256 {
		wait.For(t, entered)
	}
	body, h := delivery(999, newSecret)
	client := &http.Client{Transport: &http.Transport{}}
	if got := send(t, client, srv.URL, body, h); got != http.StatusTooManyRequests {
		t.Errorf("one too many is answered with %d", got)
	}
	client.CloseIdleConnections()
	close(leave)
	wg.Wait()
}

// TestHeadersAreNoHeaders: nothing that a genuine sender says becomes a header
// of the store, or a part of a subject.
func TestHeadersAreNoHeaders(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	srv := serve(t, hooks.Config{Store: b.Deliveries.Store, StoreWithin: wait.Patience})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for what, c := range map[string]struct {
		id   string
		want int
	}{
		"a subject":  {"forge.journal.shop.a", http.StatusAccepted},
		"a wildcard": {"> * .", http.StatusAccepted},
		"a long id":  {strings.Repeat("x", 201), http.StatusBadRequest},
		"an umlaut":  {"\u00e4", http.StatusBadRequest},
		"a tab":      {"a\tb", http.StatusBadRequest},
	} {
		body, h := delivery(1, newSecret)
		h.Set("X-Github-Delivery", c.id)
		if got := send(t, client, srv.URL, body, h); got != c.want {
			t.Errorf("%s: answered with %d, want %d", what, got, c.want)
		}
	}
	conn := dial(t, srv)
	fmt.Fprintf(conn, "POST /hooks/x HTTP/1.1\r\nHost: x\r\nX-Github-Delivery: a\rNats-Rollup: all\r\nContent-Length: 0\r\n\r\n")
	if got := status(t, conn); got != http.StatusBadRequest {
		t.Errorf("a header with a line end is answered with %d", got)
	}
	n := 0
	if _, err := b.Deliveries.After(wait.Context(t), 0, func(deliveries.Delivery) error { n++; return nil }); n != 2 || err != nil {
		t.Errorf("stored %d, %v", n, err)
	}
}

func dial(t testing.TB, srv *httptest.Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// status reads the status of an answer.
func status(t testing.TB, conn net.Conn) int {
	t.Helper()
	got := make(chan int, 1)
	go func() {
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			got <- 0
			return
		}
		resp.Body.Close()
		got <- resp.StatusCode
	}()
	return wait.For(t, got)
}
