package pods

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
)

// TestLost: a pod that ends while its command runs is counted once, with the reason that Kubernetes
// gives, and so is the time until its first byte.
func TestLost(t *testing.T) {
	const running = `{"containerStatuses":[{"name":"command","state":{"running":{}}}]}`
	for name, test := range map[string]struct {
		after   string // status of the pod; empty: it is gone
		counted string
	}{
		"out of memory": {
			`{"phase":"Failed","containerStatuses":[{"name":"command","state":{"terminated":{"reason":"OOMKilled","exitCode":137}}}]}`, "out_of_memory",
		},
		"pushed aside": {
			`{"phase":"Failed","conditions":[{"type":"DisruptionTarget","status":"True","reason":"PreemptionByScheduler"}],
				"containerStatuses":[{"name":"command","state":{"terminated":{"reason":"Error","exitCode":137}}}]}`, "preempted",
		},
		"node":      {`{"phase":"Failed","reason":"NodeShutdown"}`, "node"},
		"new to us": {`{"phase":"Failed","reason":"Cosmic\nRays{}"}`, telemetry.Other},
		"deleted":   {"", "deleted"},
		"went well": {`{"phase":"Succeeded"}`, "connection"},
	} {
		t.Run(name, func(t *testing.T) {
			attached := make(chan struct{})
			e, err := open(t, template, "", func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/attach"):
					conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"v5.channel.k8s.io"}})
					if err != nil {
						t.Error(err)
						return
					}
					_ = conn.Write(r.Context(), websocket.MessageBinary, []byte("\x01not what is expected"))
					_ = conn.Write(r.Context(), websocket.MessageBinary, []byte("\x01and more of it"))
					close(attached)
					for err == nil { // until the other side has seen it, and breaks off
						_, _, err = conn.Read(r.Context())
					}
					_ = conn.CloseNow()
				case r.Method == http.MethodPost:
					w.WriteHeader(http.StatusCreated)
					_, _ = w.Write([]byte("{}"))
				case r.Method == http.MethodGet:
					select {
					case <-attached:
						if test.after == "" {
							w.WriteHeader(http.StatusNotFound)
						}
						_, _ = w.Write([]byte(`{"status":` + test.after + `}`))
					default:
						_, _ = w.Write([]byte(`{"status":` + running + `}`))
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			counted := measure(t, e)
			_, err = e.Run(t.Context(), process.Command{Path: "/bin/true", Dir: e.state, Sandbox: &sandbox.Spec{}})
			if want := "0 active, lost " + test.counted + ", 1 started"; !errors.Is(err, process.ErrLost) || counted() != want {
				t.Errorf("counted %s, want %s; %v", counted(), want, err)
			}
		})
	}
}
