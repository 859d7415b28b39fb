package main

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
)

// object is JSON.
type object = map[string]any

// serveModel is a model that plans one task, has the agent write where it runs and which
// of the addresses it reaches, and finds that good.
func serveModel(addresses []string) error {
	model, err := url.Parse(agenttest.NewServer(logger{}).Script("claude", func(r agenttest.Request) agenttest.Reply {
		switch {
		case strings.Contains(r.System, "You plan changes"):
			task := object{"name": "report", "title": "Write report.txt", "plan": "Write it.", "relevant_files": []string{"report.txt"}, "complexity": "low"}
			return agenttest.Answer(object{"type": "feature", "risk": "low", "tasks": []object{task}})(r)
		case strings.Contains(r.System, "You carry out one task"):
			return agenttest.Steps(agenttest.Use("Bash", object{"command": report(addresses)}), agenttest.Answer(object{"summary": "wrote it"}))(r)
		}
		return agenttest.Answer(object{"verdict": "approved", "issues": []string{}, "suggestions": []string{}})(r)
	}))
	if err != nil {
		return err
	}
	handler := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(model) }}
	server := &http.Server{Addr: ":8080", Handler: handler, ReadHeaderTimeout: time.Minute}
	return server.ListenAndServe()
}

// report returns the command that the agent is asked to run.
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
