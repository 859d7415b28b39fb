//go:build cluster

package k8s

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// measured waits until the runner's metrics say that every intent is done, and none else is
// there: not in error, and not waiting for a person.
func (in *installation) measured(t *testing.T) {
	t.Helper()
	want := map[string]int{"done": len(in.asked) + in.others}
	wait.Until(t, fmt.Sprintf("metrics say that %d intents are done", want["done"]), func() bool { return maps.Equal(in.counts(t), want) })
}

// counts returns how many intents have which status, by the metrics of a runner.
func (in *installation) counts(t *testing.T) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, m := range intents.FindAllStringSubmatch(in.metrics(t, "runner"), -1) {
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			counts[m[1]] += int(n)
		}
	}
	return counts
}

// counted looks for the attempts that workers count.
func (in *installation) counted(t *testing.T) {
	t.Helper()
	for _, service := range []string{"analyzer", "implementer", "reviewer"} {
		if text := in.metrics(t, service); !strings.Contains(text, "forge_attempts_total{") {
			t.Errorf("%s counts no attempts", service)
		}
	}
}

var intents = regexp.MustCompile(`(?m)^forge_intents\{.*forge_intent_status="([a-z_]+)".*\} (\S+)$`)

// metrics returns what the first replica of a service shows at /metrics.
func (in *installation) metrics(t *testing.T, service string) string {
	t.Helper()
	return in.page(t, service, 8080, "/metrics")
}

// page returns what the first replica of a service answers.
func (in *installation) page(t *testing.T, service string, port int, path string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(wait.Context(t))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, in.forward(ctx, t, service, port)+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// forward returns the address on this machine of a port of the first replica of
// a service, until the context ends. It is reached by way of the kubelet, as
// kubectl port-forward does, for no policy lets others in.
func (in *installation) forward(ctx context.Context, t *testing.T, service string, port int) (address string) {
	t.Helper()
	url := in.client.CoreV1().RESTClient().Post().Namespace(in.namespace).Resource("pods").Name(in.pods(t, service)[0].Name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(in.config)
	if err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan error, 1)
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, ctx.Done(), ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case err := <-ended:
		t.Fatal(err)
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", ports[0].Local)
}

// spansOfAnAgent are the names of spans that a change by an agent has.
var spansOfAnAgent = []string{
	"run", "analyze", "implement", "review", "merge", "agent claude", "verify", "verify command", "git checkout", "git fetch", "git push",
}

// traced waits until the collector has the trace of a change in which all services took part
// that made it, and metrics of all services.
func (in *installation) traced(t *testing.T) {
	t.Helper()
	ask := func(what string) string {
		out, err := in.exec(wait.Context(t), in.git, "collector-0", "testpod", "/testpod", "get", "http://127.0.0.1:4318/"+what)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	var traces string
	wait.Until(t, "a change is traced through all services", func() bool {
		traces = ask("traces")
		return slices.ContainsFunc(strings.Split(traces, "\n"), func(line string) bool {
			return strings.HasSuffix(line, " analyzer implementer reviewer runner")
		})
	})
	if got, want := strings.Count(traces, "\n"), len(in.asked); got < want {
		t.Errorf("there are %d traces of %d intents", got, want)
	}
	wait.Until(t, "a change is traced with its agents, its commands and git", func() bool {
		return slices.ContainsFunc(strings.Split(ask("spans"), "\n"), func(line string) bool {
			_, names, _ := strings.Cut(line, " ")
			has := strings.Split(names, ",")
			return !slices.ContainsFunc(spansOfAnAgent, func(name string) bool { return !slices.Contains(has, name) })
		})
	})
	const all = "analyzer gateway implementer reflector reviewer runner"
	wait.Until(t, "all services have sent metrics", func() bool { return strings.TrimSpace(ask("metrics")) == all })
}
