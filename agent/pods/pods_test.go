package pods

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/internal/telemetry/export"
)

const template = `
apiVersion: v1
kind: Pod
metadata:
  namespace: agents
  labels: {team: blue, pfl-forge.io/network: full}
spec:
  runtimeClassName: gvisor
  containers:
    - name: command
      image: pfl-forge/implementer:1
      command: [/usr/local/bin/forge-implementer]
      args: [--help]
      resources: {limits: {memory: 4Gi}}
    - name: sidecar
      image: x:1
`

// open returns an executor whose API server is a handler.
func open(t *testing.T, text, image string, handler http.HandlerFunc) (*Executor, error) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	path := filepath.Join(t.TempDir(), "pod.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	api := &API{URL: s.URL, Token: func() (string, error) { return "token", nil }}
	return New(api, path, image, "implementer-0", t.TempDir(), slog.New(slog.DiscardHandler))
}

// TestTemplate is refused, with the field, where no pods could be made of it.
func TestTemplate(t *testing.T) {
	for want, text := range map[string]string{
		"kind":                       "apiVersion: v1\nkind: Job\n",
		"metadata.namespace":         "apiVersion: v1\nkind: Pod\n",
		`none has the name "command`: "apiVersion: v1\nkind: Pod\nmetadata: {namespace: a}\nspec: {containers: [{name: x, image: y}]}\n",
		"has no image":               "apiVersion: v1\nkind: Pod\nmetadata: {namespace: a}\nspec: {containers: [{name: command}]}\n",
		"line 1":                     "{",
	} {
		if _, err := open(t, text, "", nil); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "pod.yaml") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestPod keeps what the operator wrote and adds what makes the pod a command's.
func TestPod(t *testing.T) {
	e, err := open(t, template, "registry:5000/ours:2", nil)
	if err != nil {
		t.Fatal(err)
	}
	pod, err := json.Marshal(e.pod("forge-x", &process.Command{Sandbox: &sandbox.Spec{Network: sandbox.NetworkNone}, Limits: process.Limits{Wall: time.Minute}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"name":"forge-x"`, `"team":"blue"`, `"pfl-forge.io/network":"none"`, `"pfl-forge.io/replica":"implementer-0"`, `"runtimeClassName":"gvisor"`,
		`"args":["run-command"]`, `"image":"registry:5000/ours:2"`, `"image":"x:1"`,
		`"memory":"4Gi"`, `"automountServiceAccountToken":false`, `"restartPolicy":"Never"`, `"stdinOnce":true`,
		`"activeDeadlineSeconds":1860`, `"mountPath":"` + e.state + `"`, `{"emptyDir":{},"name":"forge-state"}`,
	} {
		if !strings.Contains(string(pod), want) {
			t.Errorf("no %s in %s", want, pod)
		}
	}
	if image, class := e.Image(); image != "registry:5000/ours:2" || class != "gvisor" {
		t.Errorf("it says %q and %q of itself", image, class)
	}
	again, err := json.Marshal(e.template)
	if err != nil || strings.Contains(string(again), "forge-x") || strings.Contains(string(again), "run-command") {
		t.Error("the template is changed")
	}
}

// TestRefusals tells what a person has to mend from what may work later, and from a command
// that nobody wants any more.
func TestRefusals(t *testing.T) {
	const (
		waiting = `{"name":"command","state":{"waiting":{"reason":"InvalidImageName","message":"bad"}}}`
		killed  = `{"name":"command","state":{"terminated":{"reason":"OOMKilled","exitCode":137}}}`
		unknown = `{"name":"command","state":{"waiting":{"reason":"ErrImagePull","message":"failed to pull image: r.example.com/x:1: not found"}}}`
		denied  = `{"name":"command","state":{"waiting":{"reason":"ImagePullBackOff","message":"Back-off pulling image: pull access denied"}}}`
		evicted = `{"type":"DisruptionTarget","status":"True","reason":"EvictionByEvictionAPI","message":"Eviction API: evicting"}`
		drained = `{"phase":"Failed","conditions":[` + evicted + `],"containerStatuses":[` + killed + `]}`
	)
	for name, test := range map[string]struct {
		create   int
		message  string
		status   string
		want     error
		contains string
		counted  string
	}{
		"pod security":    {403, `violates PodSecurity "restricted:latest"`, "", process.ErrSandbox, "violates PodSecurity", "refused denied"},
		"no right":        {401, "Unauthorized", "", process.ErrSandbox, "Unauthorized", "refused denied"},
		"quota":           {403, `exceeded quota: pods, requested: 1`, "", process.ErrLost, "exceeded quota", "refused quota"},
		"too many":        {429, "slow down", "", process.ErrLost, "slow down", "lost not_started"},
		"server in need":  {500, "etcd is away", "", process.ErrLost, "etcd is away", "lost not_started"},
		"image's name":    {201, "", `{"containerStatuses":[` + waiting + `]}`, process.ErrSandbox, "InvalidImageName: bad", "refused template"},
		"ends at once":    {201, "", `{"phase":"Failed","containerStatuses":[` + killed + `]}`, process.ErrLost, "OOMKilled: status 137", "lost out_of_memory"},
		"no such image":   {201, "", `{"containerStatuses":[` + unknown + `]}`, process.ErrSandbox, "x:1: not found", "refused template"},
		"no right to it":  {201, "", `{"containerStatuses":[` + denied + `]}`, process.ErrSandbox, "access denied", "refused template"},
		"drained at once": {201, "", drained, process.ErrLost, "EvictionByEvictionAPI: Eviction API: evicting; OOMKilled: status 137", "lost evicted"},
		"evicted at once": {201, "", `{"phase":"Failed","reason":"Evicted","message":"low on memory"}`, process.ErrLost, "Evicted: low on memory", "lost evicted"},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var seen []string
			e, err := open(t, template, "", func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				seen = append(seen, r.Method)
				mu.Unlock()
				switch r.Method {
				case http.MethodPost:
					w.WriteHeader(test.create)
					_ = json.NewEncoder(w).Encode(map[string]string{"message": test.message})
				case http.MethodGet:
					_, _ = w.Write([]byte(`{"status":` + test.status + `}`))
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			counted := measure(t, e)
			_, err = e.Run(t.Context(), process.Command{Path: "/bin/true", Dir: e.state, Sandbox: &sandbox.Spec{}})
			if got := counted(); got != "0 active, "+test.counted {
				t.Errorf("counted: %s, want %s", got, test.counted)
			}
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.contains) {
				t.Errorf("%v; want %v with %q", err, test.want, test.contains)
			}
			mu.Lock()
			defer mu.Unlock()
			if made := test.create == 201; made != (seen[len(seen)-1] == http.MethodDelete) {
				t.Errorf("requests: %q", seen)
			}
		})
	}
}

// measure has an executor measured, and returns a function that says what was counted of pods.
func measure(t *testing.T, e *Executor) func() string {
	t.Helper()
	out, err := export.Open(t.Context(), export.Config{
		Service: "implementer", Scrape: true, Getenv: func(string) string { return "" }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := out.Close(); err != nil {
			t.Error(err)
		}
	})
	e.Metrics = out.Recorder
	return func() string {
		w := httptest.NewRecorder()
		out.Metrics.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
		active := regexp.MustCompile(`(?m)^forge_pods_active (\d+)$`).FindStringSubmatch(w.Body.String())
		if active == nil {
			t.Fatalf("no pods are shown:\n%s", w.Body)
		}
		said := active[1] + " active"
		for _, m := range regexp.MustCompile(`(?m)^forge_pods_(lost|refused)_total\{forge_pod_\w+="(\w+)"\} 1$`).FindAllStringSubmatch(w.Body.String(), -1) {
			said += ", " + m[1] + " " + m[2]
		}
		if started := regexp.MustCompile(`(?m)^forge_pod_start_duration_seconds_count (\d+)$`).FindStringSubmatch(w.Body.String()); started != nil {
			said += ", " + started[1] + " started"
		}
		return said
	}
}

// TestStopped ends the wait for a pod that does not start, and deletes it.
func TestStopped(t *testing.T) {
	errStop := errors.New("somebody said stop")
	ctx, stop := context.WithCancelCause(t.Context())
	deleted := make(chan struct{}, 1)
	e, err := open(t, template, "", func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
			stop(errStop)
			_, _ = w.Write([]byte(`{"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"no room"}]}}`))
		case http.MethodDelete:
			deleted <- struct{}{}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(ctx, process.Command{Path: "/bin/true", Dir: e.state, Sandbox: &sandbox.Spec{}}); !errors.Is(err, errStop) {
		t.Error(err)
	}
	select {
	case <-deleted:
	default:
		t.Error("the pod is left")
	}
}

// TestNoRoom: a pod for which no node has room is given up after a while, deleted
// and counted, with what Kubernetes says of it: the command may be tried again.
func TestNoRoom(t *testing.T) {
	var asked, deleted atomic.Bool
	e, err := open(t, template, "", func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
			asked.Store(true)
			_, _ = w.Write([]byte(`{"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"no room"}]}}`))
		case http.MethodDelete:
			deleted.Store(true)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if e.start != 5*time.Minute {
		t.Errorf("a pod has %s to start, and the guide says five minutes", e.start)
	}
	e.start = time.Second // in which it is asked for once at least
	counted := measure(t, e)
	_, err = e.Run(t.Context(), process.Command{Path: "/bin/true", Dir: e.state, Sandbox: &sandbox.Spec{}})
	if !errors.Is(err, process.ErrLost) || !strings.Contains(err.Error(), "has not started within 1s: Unschedulable: no room") {
		t.Error(err)
	}
	if got := counted(); got != "0 active, lost not_started" || !asked.Load() || !deleted.Load() {
		t.Errorf("counted: %s; asked for: %t; deleted: %t", got, asked.Load(), deleted.Load())
	}
}
