package main

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
)

// object is JSON.
type object = map[string]any

// model answers the agents of two changes. That of the report is made at once. The long one
// goes on in the middle of its implementation, for some minutes and until /release is asked
// for; its first review rejects it.
type model struct {
	// addresses has HOST:PORT pairs that the agent of the report tries to reach.
	addresses []string
	// gate holds the long change.
	gate *gate

	mu sync.Mutex
	// key is the only one that is served; empty: any.
	key string
	// held counts the calls of an agent that were held.
	held     int
	rejected bool
}

// sayMore is the issue of the review that rejects the long change.
const sayMore = "long.txt: say more"

// serveModel serves the model, to who shows KEY if there is one, or the key that /accept?KEY
// named last. /held answers how many calls were held, and /release lets them go on.
func serveModel(hold string, addresses []string) error {
	atLeast, err := time.ParseDuration(hold)
	if err != nil {
		return err
	}
	m := &model{addresses: addresses, gate: newGate(atLeast), key: os.Getenv("KEY")}
	script, err := url.Parse(agenttest.NewServer(logger{}).Script("claude", m.reply))
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/release", func(http.ResponseWriter, *http.Request) { m.gate.release() })
	mux.HandleFunc("/held", func(w http.ResponseWriter, _ *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		fmt.Fprint(w, m.held)
	})
	mux.HandleFunc("/accept", func(_ http.ResponseWriter, r *http.Request) { m.accept(r.URL.RawQuery) })
	mux.Handle("/", m.guard(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(script) }}))
	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: time.Minute}
	return server.ListenAndServe()
}

// accept takes another key from now on, and no former one.
func (m *model) accept(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.key = key
}

// guard refuses requests with another key than the one that is accepted, as the
// provider of a model does.
func (m *model) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		key := m.key
		m.mu.Unlock()
		if key != "" && r.Header.Get("X-Api-Key") != key {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// reply answers as the role that the system prompt names: plan, implementation or review. Which of
// the two changes a call is about is in the text of the request; one process serves both.
func (m *model) reply(r agenttest.Request) agenttest.Reply {
	long := strings.Contains(string(r.Body), "long.txt") || strings.Contains(string(r.Body), "the long report")
	switch {
	case strings.Contains(r.System, "You plan changes"):
		file := "report.txt"
		if long {
			file = "long.txt"
		}
		task := object{"name": "report", "title": "Write " + file, "plan": "Write it.", "relevant_files": []string{file}, "complexity": "low"}
		return agenttest.Answer(object{"type": "feature", "risk": "low", "tasks": []object{task}})(r)
	case strings.Contains(r.System, "You carry out one task") && long:
		return m.implementLong(r)
	case strings.Contains(r.System, "You carry out one task"):
		return agenttest.Steps(bash(report(m.addresses)), done)(r)
	case long && m.rejects():
		return agenttest.Reviews(sayMore)(r)
	}
	return agenttest.Reviews()(r)
}

// implementLong is held after its first commit: it runs one command after the other, each
// of which does nothing for some seconds, as no CLI waits for ever for one answer of its
// model. What it writes after the rejection says whether it knows what it did before.
func (m *model) implementLong(r agenttest.Request) agenttest.Reply {
	rejected := strings.Contains(string(r.Body), sayMore)
	switch {
	case rejected && r.ToolResults == 0:
		return bash("echo lost >> long.txt; git commit -qam 'Write long.txt'")(r)
	case rejected && !strings.Contains(string(r.Body), "echo again"):
		return bash("echo again >> long.txt; git commit -qam 'Write long.txt'")(r)
	case rejected:
		return done(r)
	case r.ToolResults == 0:
		return bash("cat /proc/sys/kernel/hostname > long.txt; git add -A; git commit -qm 'Write long.txt'")(r)
	}
	if r.ToolResults == 1 {
		m.mu.Lock()
		m.held++
		m.mu.Unlock()
	}
	if wait := m.gate.shut(r.ToolResults); wait > 0 {
		return bash(fmt.Sprintf("timeout %.0f tail -f /dev/null; true", wait.Seconds()))(r)
	}
	return done(r)
}

// rejects says whether a review of the long change rejects it: the first does.
func (m *model) rejects() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := !m.rejected
	m.rejected = true
	return first
}

// bash has the agent run a command.
func bash(command string) agenttest.Step {
	return agenttest.Use("Bash", object{"command": command})
}

// done ends an implementation.
func done(r agenttest.Request) agenttest.Reply {
	return agenttest.Answer(object{"summary": "wrote it"})(r)
}

// report returns the command that writes where the agent runs, and which of the addresses
// it reaches.
func report(addresses []string) string {
	var b strings.Builder
	b.WriteString("(cat /proc/sys/kernel/hostname; ls /var/run/secrets /etc/forge 2>&1")
	for _, a := range addresses {
		host, port, _ := strings.Cut(a, ":")
		fmt.Fprintf(&b, "; timeout 3 bash -c '</dev/tcp/%s/%s' && echo %s reached || echo %s blocked", host, port, a, a)
	}
	b.WriteString(") > report.txt; git add -A && git commit -q -m 'Write report.txt'")
	return b.String()
}

// logger is the test of the server that is none.
type logger struct{ testing.TB }

func (logger) Helper()                           {}
func (logger) Cleanup(func())                    {}
func (logger) Errorf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) } //nolint:forbidigo // of a main
