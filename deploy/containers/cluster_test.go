//go:build containers

package containers

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestServersKilled kills servers of the NATS cluster while changes are made: any, and the
// one that leads the journal. Everything is merged, once. Then the services are asked to end.
func TestServersKilled(t *testing.T) {
	d := connect(t)
	in := install(t, d, d.newer)
	in.confined(t, in.services["implementer"])
	asked := in.submit(t, "first", 4)
	in.merged(t, asked)
	in.replicated(t)

	asked = append(asked, in.submit(t, "any", 8)...)
	in.underWay(t, asked)
	in.outage(t, (in.leader(t)+1)%servers)
	for round := range 2 {
		asked = append(asked, in.submit(t, fmt.Sprint("leader-", round), 8)...)
		asked = append(asked, in.request(t, fmt.Sprint("http-", round), 4)...)
		in.underWay(t, asked)
		in.outage(t, in.leader(t))
	}
	in.merged(t, asked)
	in.replicated(t)
	in.drains(t)
}

// TestServersUpgraded replaces the servers by newer ones, one after another, as a rolling
// update of a StatefulSet does, while changes are made. Everything is merged, once.
func TestServersUpgraded(t *testing.T) {
	d := connect(t)
	in := install(t, d, d.older)
	asked := in.submit(t, "before", 4)
	in.merged(t, asked)
	in.replicated(t)
	for server := range servers {
		if got := in.natsVersion(t, server); got != strings.TrimPrefix(d.older, "v") {
			t.Fatalf("server %d is %s", server, got)
		}
		asked = append(asked, in.submit(t, fmt.Sprint("leaving-", server), 8)...)
		in.underWay(t, asked)
		began := time.Now()
		in.lameDuck(t, server)
		asked = append(asked, in.submit(t, fmt.Sprint("left-", server), 8)...)
		in.underWay(t, asked)
		in.startNATS(t, server, d.newer)
		in.healthy(t, server)
		if got := in.natsVersion(t, server); got != strings.TrimPrefix(d.newer, "v") {
			t.Fatalf("server %d is %s after its upgrade", server, got)
		}
		t.Logf("server %d went from %s to %s in %s", server, d.older, d.newer, since(began))
	}
	in.merged(t, asked)
	in.replicated(t)
}

// underWay checks that not everything is merged that was asked for, so that what follows
// happens in the middle.
func (in *installation) underWay(t *testing.T, asked []string) {
	t.Helper()
	if done := len(in.log(t)) - 1; done >= len(asked) {
		t.Fatalf("all %d changes are merged already", done)
	}
}

// outage kills a server, has the others work without it, and starts it again.
func (in *installation) outage(t *testing.T, server int) {
	t.Helper()
	in.kill(t, in.nats[server])
	before := len(in.log(t))
	wait.Until(t, "changes are merged without the server", func() bool { return len(in.log(t)) > before })
	if err := in.nats[server].Start(wait.Context(t)); err != nil {
		t.Fatal(err)
	}
	in.healthy(t, server)
	t.Logf("server %d was killed and came back", server)
}

// lameDuck ends a server as the preStop hook of deploy/k8s does: its clients go elsewhere
// first.
func (in *installation) lameDuck(t *testing.T, server int) {
	t.Helper()
	c := in.nats[server]
	code, out, err := in.exec(wait.Context(t), c, "nats-server", "-sl=ldm=/var/run/nats/nats.pid")
	if err != nil || code != 0 {
		t.Fatalf("lame duck mode: exit code %d, %v: %s", code, err, out)
	}
	in.ended(t, c)
	if logs := in.logs(t, c); !strings.Contains(logs, "Entering lame duck mode") {
		t.Errorf("server %d did not enter lame duck mode:\n%s", server, tail(logs))
	}
	if err := testcontainers.TerminateContainer(c, testcontainers.StopTimeout(0)); err != nil {
		t.Fatal(err)
	}
}

// healthy waits until a server has caught up with the others.
func (in *installation) healthy(t *testing.T, server int) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("server %d is healthy", server), func() bool {
		_, err := in.get(t, in.nats[server], "8222/tcp", "/healthz")
		return err == nil
	})
}

func (in *installation) natsVersion(t *testing.T, server int) string {
	t.Helper()
	var varz struct {
		Version string `json:"version"`
	}
	in.monitor(t, server, "/varz", &varz)
	return varz.Version
}

// monitor asks a server how it is.
func (in *installation) monitor(t *testing.T, server int, path string, answer any) {
	t.Helper()
	data, err := in.get(t, in.nats[server], "8222/tcp", path)
	if err == nil {
		err = json.Unmarshal(data, answer)
	}
	if err != nil {
		t.Fatalf("server %d: %v", server, err)
	}
}

// stream is a stream as a server sees it.
type stream struct {
	Name    string `json:"name"`
	Cluster struct {
		Leader   string `json:"leader"`
		Replicas []struct {
			Name    string `json:"name"`
			Current bool   `json:"current"`
		} `json:"replicas"`
	} `json:"cluster"`
}

// streams returns the streams that a server knows, by name.
func (in *installation) streams(t *testing.T, server int) map[string]stream {
	t.Helper()
	var jsz struct {
		Accounts []struct {
			Streams []stream `json:"stream_detail"`
		} `json:"account_details"`
	}
	in.monitor(t, server, "/jsz?streams=true", &jsz)
	all := map[string]stream{}
	for _, a := range jsz.Accounts {
		for _, s := range a.Streams {
			all[s.Name] = s
		}
	}
	return all
}

// leader returns the server that leads the journal.
func (in *installation) leader(t *testing.T) int {
	t.Helper()
	leader := -1
	wait.Until(t, "the journal has a leader", func() bool {
		name := in.streams(t, 0)["FORGE_JOURNAL"].Cluster.Leader
		_, err := fmt.Sscanf(name, "nats-%d", &leader)
		return err == nil
	})
	return leader
}

// replicated waits until every stream is on all servers, and none of them is behind.
func (in *installation) replicated(t *testing.T) {
	t.Helper()
	wait.Until(t, "all streams are on all servers", func() bool {
		for server := range servers {
			streams := in.streams(t, server)
			if names := slices.Collect(maps.Keys(streams)); !slices.Contains(names, "FORGE_JOURNAL") || !slices.Contains(names, "FORGE_COMMANDS") {
				return false
			}
			for _, s := range streams {
				if s.Cluster.Leader != fmt.Sprint("nats-", server) {
					continue // only the leader knows how far the others are
				}
				if len(s.Cluster.Replicas) != servers-1 || !s.Cluster.Replicas[0].Current || !s.Cluster.Replicas[1].Current {
					return false
				}
			}
		}
		return true
	})
}

// drains asks every service to end as a runtime does, and checks that it did so by itself.
func (in *installation) drains(t *testing.T) {
	t.Helper()
	for name, c := range in.services {
		began, grace := time.Now(), wait.Patience
		if err := c.Stop(wait.Context(t), &grace); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		state, err := c.State(wait.Context(t))
		if err != nil {
			t.Fatal(err)
		}
		if state.ExitCode != 0 || state.OOMKilled || !strings.Contains(in.logs(t, c), "drain") {
			t.Errorf("%s: exit code %d:\n%s", name, state.ExitCode, tail(in.logs(t, c)))
		}
		t.Logf("%s ended %s after SIGTERM", name, since(began))
	}
}
