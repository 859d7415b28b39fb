// Package agenttest is a scripted model for tests of agent CLIs: a server on
// loopback that speaks the APIs of Anthropic (Messages), OpenAI (Responses) and
// Gemini (generateContent), both as a stream and as plain JSON.
package agenttest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Scenario answers the requests of one script.
type Scenario func(Request) Reply

// Steps is a scenario that answers by the number of tool results that the
// conversation has so far; further ones get the last step again.
func Steps(steps ...Step) Scenario {
	return func(r Request) Reply {
		return steps[min(r.ToolResults, len(steps)-1)](r)
	}
}

// Step makes one reply.
type Step func(Request) Reply

// Server is the model. Each scenario has a base URL of its own, so tests can
// run in parallel.
type Server struct {
	t         testing.TB
	http      *httptest.Server
	done      chan struct{}
	mu        sync.Mutex
	scenarios map[string]Scenario
	requests  map[string][]Request
}

// NewServer starts a server that ends with the test.
func NewServer(t testing.TB) *Server {
	t.Helper()
	s := &Server{
		t: t, done: make(chan struct{}),
		scenarios: map[string]Scenario{}, requests: map[string][]Request{},
	}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		close(s.done)
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// Script adds a scenario and returns its base URL, for ANTHROPIC_BASE_URL.
func (s *Server) Script(name string, scenario Scenario) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scenarios[name] = scenario
	return s.http.URL + "/s/" + name
}

// Requests returns what the scenario was asked so far.
func (s *Server) Requests(name string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests[name]...)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/s/"), "/")
	speaks := protocolOf(rest)
	if r.Method != http.MethodPost || speaks == nil {
		http.NotFound(w, r) // the CLI asks for HEAD / once
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	req, err := speaks.parse(body, r)
	if err != nil {
		s.t.Errorf("model %s: %v", name, err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	scenario, ok := s.scenarios[name]
	s.requests[name] = append(s.requests[name], req)
	s.mu.Unlock()
	if !ok {
		s.t.Errorf("model: no scenario %q", name)
		http.NotFound(w, r)
		return
	}
	s.send(w, r, speaks, req, scenario(req))
}

func (s *Server) send(w http.ResponseWriter, r *http.Request, speaks *protocol, req Request, reply Reply) {
	switch {
	case reply.Hang:
		select {
		case <-r.Context().Done():
		case <-s.done:
		}
	case reply.Status != 0:
		for k, v := range reply.Header {
			w.Header().Set(k, v)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(reply.Status)
		_, _ = w.Write(encode(speaks.failed(reply)))
	case req.Stream:
		w.Header().Set("Content-Type", "text/event-stream")
		speaks.stream(w, req, reply)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(encode(speaks.whole(req, reply))) //nolint:gosec // JSON, for a CLI
	}
}
