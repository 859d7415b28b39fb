package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func TestKeyTakesThePlaceOfTheToken(t *testing.T) {
	for _, tt := range []struct {
		provider   Provider
		variable   string
		base, path string
		wantPath   string
		wantHeader string
	}{
		{Anthropic, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "/v1/messages?beta=true", "/s/one/v1/messages?beta=true", "X-Api-Key: the-real-key"},
		{Anthropic, "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "/v1/messages", "/s/one/v1/messages", "Authorization: Bearer the-real-key"},
		{
			Anthropic, "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL", "/v1/messages/count_tokens",
			"/s/one/v1/messages/count_tokens", "Authorization: Bearer the-real-key",
		},
		{OpenAI, "OPENAI_API_KEY", "OPENAI_BASE_URL", "/responses", "/s/one/responses", "Authorization: Bearer the-real-key"},
		{
			Gemini, "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse&key=x",
			"/s/one/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", "X-Goog-Api-Key: the-real-key",
		},
	} {
		t.Run(tt.variable, func(t *testing.T) {
			m := newModel(t, plainAnswer(`{}`))
			g := start(t, Config{}, tt.variable+"=the-real-key", tt.base+"="+m.URL+"/s/one/")
			grant := open(t, g, tt.provider, Limit{})
			if slices.ContainsFunc(grant.Env(), func(kv string) bool { return strings.Contains(kv, "the-real-key") || strings.Contains(kv, m.URL) }) {
				t.Errorf("a call is told %q", grant.Env())
			}
			if status, body := post(t, grant, tt.path, "Cookie: a=b", "X-Session: 7", "Proxy-Authorization: x", "Accept-Encoding: gzip"); status != http.StatusOK {
				t.Fatalf("status %d: %s", status, body)
			}
			r := m.next(t)
			if got := r.URL.RequestURI(); got != tt.wantPath {
				t.Errorf("asked for %s, want %s", got, tt.wantPath)
			}
			name, want, _ := strings.Cut(tt.wantHeader, ": ")
			if got := r.Header.Values(name); !slices.Equal(got, []string{want}) {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
			if body, _ := io.ReadAll(r.Body); string(body) != `{"model":"m"}` || r.ContentLength != int64(len(body)) {
				t.Errorf("body %q of %d bytes", body, r.ContentLength)
			}
			dump := fmt.Sprint(r.Header)
			for _, never := range []string{tokenPrefix, "Cookie", "Proxy-Authorization", "gzip", "X-Forwarded"} {
				if strings.Contains(dump, never) {
					t.Errorf("%q reaches the model: %s", never, dump)
				}
			}
			if r.Header.Get("X-Session") != "7" {
				t.Errorf("a header of the CLI is lost: %s", dump)
			}
			if beta := r.Header.Get("Anthropic-Beta"); (beta != "") != (tt.variable == "CLAUDE_CODE_OAUTH_TOKEN") {
				t.Errorf("beta %q", beta)
			}
		})
	}
}

func TestWhatIsRefused(t *testing.T) {
	m := newModel(t, plainAnswer(whole))
	g := start(t, Config{}, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+m.URL)
	grant := open(t, g, Anthropic, Limit{})
	for _, tt := range []struct {
		name, method, path string
		header             []string
		want               int
	}{
		{"no token", "POST", "/v1/messages", []string{"X-Api-Key: "}, http.StatusUnauthorized},
		{"another token", "POST", "/v1/messages", []string{"X-Api-Key: " + tokenPrefix + "AAAA"}, http.StatusUnauthorized},
		{"the real key", "POST", "/v1/messages", []string{"X-Api-Key: k"}, http.StatusUnauthorized},
		{"part of a token", "POST", "/v1/messages", []string{"X-Api-Key: " + grant.token[:len(grant.token)-1]}, http.StatusUnauthorized},
		{"reading", "GET", "/v1/messages", nil, http.StatusNotFound},
		{"files", "POST", "/v1/files", nil, http.StatusNotFound},
		{"keys of the organisation", "POST", "/v1/organizations/api_keys", nil, http.StatusNotFound},
		{"below", "POST", "/v1/messages/batches", nil, http.StatusNotFound},
		{"dots", "POST", "/v1/messages/../files", nil, http.StatusNotFound},
		{"encoded dots", "POST", "/v1/messages/%2e%2e/messages", nil, http.StatusNotFound},
		{"encoded slash", "POST", "/v1%2fmessages", nil, http.StatusNotFound},
		{"two slashes", "POST", "//v1/messages", nil, http.StatusNotFound},
		{"another host", "POST", "/v1/messages", []string{"Host: evil.example"}, http.StatusOK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp, err := send(t.Context(), t, grant, tt.method, tt.path, "{}", tt.header...)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != tt.want {
				t.Errorf("status %d, want %d", resp.StatusCode, tt.want)
			}
			if len(m.got) > 0 != (tt.want == http.StatusOK) {
				t.Errorf("%d requests reached the model", len(m.got))
			}
		})
	}
	if _, err := g.Open(t.Context(), OpenAI, Limit{}); err == nil {
		t.Error("access without a key is granted")
	}
}

func TestGrantEnds(t *testing.T) {
	m := newModel(t, plainAnswer(whole))
	g := start(t, Config{}, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+m.URL)
	first, second := open(t, g, Anthropic, Limit{}), open(t, g, Anthropic, Limit{})
	first.Close()
	first.Close()
	if status, _ := post(t, first, "/v1/messages"); status != http.StatusUnauthorized {
		t.Errorf("status %d after its end", status)
	}
	if status, _ := post(t, second, "/v1/messages"); status != http.StatusOK {
		t.Errorf("status %d after the end of another", status)
	}
	if first.Usage() != (forge.Usage{}) || second.Usage().OutputTokens != 2 {
		t.Errorf("used %+v and %+v", first.Usage(), second.Usage())
	}
	ctx, cancel := context.WithCancel(t.Context())
	third, err := g.Open(ctx, Anthropic, Limit{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if status, _ := post(t, third, "/v1/messages"); status != http.StatusUnauthorized {
		t.Errorf("status %d after the end of its context", status)
	}
}

// TestStreamPassesAtOnce has the model wait until the client has read what was sent.
func TestStreamPassesAtOnce(t *testing.T) {
	next := make(chan struct{})
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for i := range 3 {
			fmt.Fprintf(w, "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":%d}}\n\n", 10*(i+1))
			w.(http.Flusher).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	})
	g := start(t, Config{}, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+m.URL)
	grant := open(t, g, Anthropic, Limit{})
	resp, err := send(t.Context(), t, grant, http.MethodPost, "/v1/messages", "{}")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data:") {
			next <- struct{}{}
		}
	}
	if got := grant.Usage().OutputTokens; got != 30 {
		t.Errorf("counted %d, want 30", got)
	}
}

// TestCloseCutsOff ends a call whose model never answers; TestClientGoesAway the other
// way round.
func TestCloseCutsOff(t *testing.T) {
	gone := make(chan struct{})
	m := newModel(t, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(gone)
	})
	g := start(t, Config{}, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+m.URL)
	grant := open(t, g, Anthropic, Limit{})
	go func() {
		m.next(t)
		grant.Close()
	}()
	if resp, err := send(t.Context(), t, grant, http.MethodPost, "/v1/messages", "{}"); err == nil {
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusOK && resp.ContentLength != 0 {
			t.Errorf("it was answered: %s", resp.Status)
		}
	}
	<-gone
}

func TestClientGoesAway(t *testing.T) {
	gone := make(chan struct{})
	m := newModel(t, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(gone)
	})
	g := start(t, Config{}, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+m.URL)
	grant := open(t, g, Anthropic, Limit{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		m.next(t)
		cancel()
	}()
	if resp, err := send(ctx, t, grant, http.MethodPost, "/v1/messages", "{}"); err == nil {
		resp.Body.Close()
		t.Error("it was answered")
	}
	wait.For(t, gone) // the model does not work for nobody
}

// TestUnknownCostIsLogged: nobody can say what an answer has cost that broke off; whoever compares
// our figures with a bill finds it in the log, and only it.
func TestUnknownCostIsLogged(t *testing.T) {
	const begun = `data: {"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":1}}}` + "\n\n"
	const ended = `data: {"type":"message_delta","usage":{"output_tokens":30}}` + "\n\n"
	for name, tt := range map[string]struct {
		stream string
		status int
		abort  bool
		want   bool
	}{
		"whole":     {stream: begun + ended},
		"broke off": {stream: begun, abort: true, want: true},
		"no end":    {stream: begun, want: true},
		"an error":  {stream: `{"type":"error"}`, status: http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.WriteHeader(cmp.Or(tt.status, http.StatusOK))
				_, _ = io.WriteString(w, tt.stream)
				_ = http.NewResponseController(w).Flush()
				if tt.abort {
					panic(http.ErrAbortHandler)
				}
			})
			var log bytes.Buffer
			g := start(t, Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Variables: fixed("ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+m.URL)})
			grant := open(t, g, Anthropic, Limit{})
			if resp, err := send(t.Context(), t, grant, http.MethodPost, "/v1/messages", "{}"); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			grant.Close() // after this nothing is written to the log
			if got := strings.Contains(log.String(), unknownCost); got != tt.want {
				t.Errorf("said: %v, want %v; the log:\n%s", got, tt.want, &log)
			}
		})
	}
}

func TestAnswersThatDoNotPass(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		want   int
	}{
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://evil.example/", http.StatusFound)
		}, http.StatusBadGateway},
		{"packed", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte{0x1f, 0x8b})
		}, http.StatusBadGateway},
		{"an error", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		}, http.StatusTooManyRequests},
		{"a cut", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, http.StatusBadGateway},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newModel(t, tt.answer)
			g := start(t, Config{}, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+m.URL)
			resp, err := send(t.Context(), t, open(t, g, Anthropic, Limit{}), http.MethodPost, "/v1/messages", "{}")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != tt.want || resp.Header.Get("Location") != "" {
				t.Errorf("%s, %v", resp.Status, resp.Header)
			}
			if tt.want == http.StatusTooManyRequests && resp.Header.Get("Retry-After") != "7" {
				t.Errorf("the headers are %v", resp.Header)
			}
		})
	}
}

func TestProxyIsUsed(t *testing.T) {
	proxy := newModel(t, plainAnswer(whole)) // it answers by itself
	g := start(t, Config{Proxy: func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }},
		"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=http://model.example")
	if status, _ := post(t, open(t, g, Anthropic, Limit{}), "/v1/messages"); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if r := proxy.next(t); r.URL.String() != "http://model.example/v1/messages" {
		t.Errorf("the proxy was asked for %s", r.URL)
	}
}
