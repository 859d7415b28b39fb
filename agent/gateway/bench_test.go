package gateway

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

var discard = slog.New(slog.DiscardHandler)

func newBenchModel(b *testing.B) *httptest.Server {
	b.Helper()
	m := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, anthropicStream)
	}))
	b.Cleanup(m.Close)
	return m
}

func drain(b *testing.B, c *http.Client, req *http.Request) {
	b.Helper()
	resp, err := c.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		b.Fatal(resp.Status, err)
	}
}

// BenchmarkRequest is a request that the model answers at once, with and without the
// gateway between.
func BenchmarkRequest(b *testing.B) {
	m := newBenchModel(b)
	g, err := Start(Config{Variables: fixed("ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+m.URL), Log: discard})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	grant, err := g.Open(b.Context(), Anthropic, Limit{})
	if err != nil {
		b.Fatal(err)
	}
	body := strings.Repeat("x", 20_000)
	for name, base := range map[string]string{"bare": m.URL, "gateway": "http://" + g.Address()} {
		b.Run(name, func(b *testing.B) {
			c := http.Client{Transport: &http.Transport{}}
			defer c.CloseIdleConnections()
			for b.Loop() {
				req, _ := http.NewRequestWithContext(b.Context(), http.MethodPost, base+"/v1/messages", strings.NewReader(body))
				req.Header.Set("X-Api-Key", grant.token)
				drain(b, &c, req)
			}
		})
	}
}
