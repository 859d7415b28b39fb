// Package agenttest is a scripted model for tests of agent CLIs: a server on loopback
// that speaks the APIs of Anthropic (Messages), OpenAI (Responses) and Gemini
// (generateContent), as a stream and as plain JSON.
//
// A test starts a Server and adds a Scenario with Script, whose URL it gives to a real
// CLI. The scenario maps each Request to a Reply; Steps and InOrder build one from
// steps such as Say, Use, Answer and Fail. A Reply can also break the connection, hang
// or return an error; see Fault. Afterwards Requests shows what the CLI asked, and
// Served how many tokens it was told.
package agenttest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Scenario returns the reply to each request of one script. Requests may come from
// several goroutines.
type Scenario func(Request) Reply

// Steps returns a scenario that answers by the number of tool results that the
// session has so far; further ones get the last step again.
func Steps(steps ...Step) Scenario {
	return func(r Request) Reply {
		return steps[min(r.ToolResults, len(steps)-1)](r)
	}
}

// InOrder returns a scenario that answers by the number of requests so far, for replies
// that leave no tool result behind; further ones get the last step again.
func InOrder(steps ...Step) Scenario {
	return func(r Request) Reply {
		return steps[min(r.N, len(steps)-1)](r)
	}
}

// Step returns one reply.
type Step func(Request) Reply

// Server is the model. Each scenario has a base URL of its own, so tests can run in
// parallel.
type Server struct {
	t testing.TB
	// http serves all scenarios, under /s/<name>/.
	http *httptest.Server
	// done is closed when the test is over.
	done chan struct{}

	mu sync.Mutex
	// scripts has the scenarios by name.
	scripts map[string]*scriptedModel
}

// scriptedModel is a scenario and the record of its requests.
type scriptedModel struct {
	scenario Scenario
	// requests are in the order of their arrival.
	requests []Request
	// served is the usage that clients were told.
	served Usage
}

// NewServer starts a server that stops with the test. A request that it cannot parse
// fails the test.
func NewServer(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, done: make(chan struct{}), scripts: map[string]*scriptedModel{}}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		close(s.done)
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// Script adds a scenario and returns its base URL, for a variable such as
// ANTHROPIC_BASE_URL. name appears in errors.
func (s *Server) Script(name string, scenario Scenario) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[name] = &scriptedModel{scenario: scenario}
	return s.http.URL + "/s/" + name
}

// Requests returns the scenario's requests so far, in order.
func (s *Server) Requests(name string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sc := s.scripts[name]; sc != nil {
		return append([]Request(nil), sc.requests...)
	}
	return nil
}

// Served returns the total usage that the scenario's clients were told. A back end must
// report exactly this.
func (s *Server) Served(name string) Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sc := s.scripts[name]; sc != nil {
		return sc.served
	}
	return Usage{}
}

// serve answers one request of a CLI.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	// The path is /s/<scenario>/<path of the API>.
	name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/s/"), "/")
	p, ok := protocolOf(rest)
	if r.Method != http.MethodPost || !ok {
		http.NotFound(w, r) // Claude Code sends one HEAD /
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	req, err := p.parse(body, r)
	if err != nil {
		s.t.Errorf("model %s: %v", name, err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	sc, ok := s.scripts[name]
	if ok {
		// Numbered and recorded before the reply, so that a reply that hangs is seen,
		// too.
		req.N = len(sc.requests)
		sc.requests = append(sc.requests, req)
	}
	s.mu.Unlock()
	if !ok {
		s.t.Errorf("model: no scenario %q", name)
		http.NotFound(w, r)
		return
	}
	x := exchange{
		protocol: p, w: w, clientGone: r.Context().Done(), testDone: s.done, req: req, reply: sc.scenario(req),
		served: func(u Usage) {
			s.mu.Lock()
			defer s.mu.Unlock()
			sc.served = sc.served.Add(u)
		},
	}
	x.send()
}
