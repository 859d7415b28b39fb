package presence_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

var started = time.Date(2026, 11, 20, 10, 0, 0, 5, time.UTC)

// announce makes a replica known until it is stopped or the test ends.
func announce(t *testing.T, b *bus.Bus, r presence.Replica) (stop func()) {
	t.Helper()
	stop, err := b.Presence.Announce(wait.Context(t), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return stop
}

// gather returns the replicas that are there, which have to be n.
func gather(t *testing.T, b *bus.Bus, n int) []presence.Replica {
	t.Helper()
	seen := 0
	list, err := b.Presence.Gather(wait.Context(t), func(*presence.Replica) bool { seen++; return seen == n })
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// all returns the replicas that answer within a moment.
func all(t *testing.T, b *bus.Bus) []presence.Replica {
	t.Helper()
	list, err := b.Presence.Gather(wait.Briefly(t, 300*time.Millisecond), nil)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestGather(t *testing.T) {
	s := bustest.StartServer(t)
	b := s.Connect(t)
	if list := all(t, b); len(list) != 0 {
		t.Errorf("nobody is there, but it finds %+v", list)
	}
	one := presence.Replica{
		Service: "reviewer", ID: "r1", Version: "(devel) 0123 go1.26", Started: started,
		Projects: []forge.ProjectID{"shop", "site"}, Agents: []string{"claude", "codex"},
		Executor: presence.Executor{Name: forge.ExecutorPods, Image: "registry:5000/a/b@sha256:01", RuntimeClass: "gvisor", Required: true},
	}
	two := presence.Replica{Service: "reviewer", ID: "r2", Version: "v2", Started: started}
	two.Executor = presence.Executor{Name: forge.ExecutorNone, Reason: "unshare: operation not permitted"}
	two.Unwell, two.Since = "state: no space left on device", started.Truncate(time.Second)
	runner := presence.Replica{Service: "runner", ID: "r1", Version: "v2", Started: started, Rules: 7}
	announce(t, s.Connect(t), runner)
	seen := runner
	seen.Together, seen.Settings = true, true
	stop := announce(t, s.Connect(t), two)
	first := one
	first.Agents = nil
	other := s.Connect(t)
	before := announce(t, other, first)
	announce(t, other, one) // knows more now, and is the same process
	if diff := cmp.Diff([]presence.Replica{one, two, seen}, gather(t, b, 4)); diff != "" {
		t.Error(diff)
	}
	before()
	stop()
	wait.Until(t, "who stops is not there any more", func() bool { return len(all(t, b)) == 2 })
	if diff := cmp.Diff([]presence.Replica{one, seen}, gather(t, b, 2)); diff != "" {
		t.Error(diff)
	}
	again := one
	again.Started = started.Add(time.Second)
	announce(t, s.Connect(t), again) // another process with the same id
	if diff := cmp.Diff([]presence.Replica{one, again, seen}, gather(t, b, 3)); diff != "" {
		t.Error(diff)
	}
	s.Restart(t)
	wait.Until(t, "they are there again after the server was", func() bool { return len(all(t, b)) == 3 })
}

// liar answers who it is with a text.
func liar(t *testing.T, s *bustest.Server, text string) {
	t.Helper()
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if _, err := nc.Subscribe("$SRV.INFO", func(m *nats.Msg) { _ = m.Respond([]byte(text)) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

// info is an announcement with any metadata.
func info(name string, metadata map[string]string) string {
	text, err := json.Marshal(micro.Info{ServiceIdentity: micro.ServiceIdentity{Name: name, Metadata: metadata}})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Whoever may listen on $SRV.> can say anything. It reaches nobody as it was said.
func TestLyingServices(t *testing.T) {
	s := bustest.StartServer(t)
	b := s.Connect(t)
	for _, text := range []string{
		"", "{", "null", "[1]", `{"name": 5}`, strings.Repeat("x", 1<<20),
		info("billing", map[string]string{"replica": "a"}),
		info("pfl-forge", map[string]string{"replica": "a"}),
		info("pfl-forge-clean", nil),
		info("pfl-forge-\x1b[2Jx", map[string]string{"replica": "a"}),
		info("pfl-forge-"+strings.Repeat("x", 100), map[string]string{"replica": "a"}),
		info("pfl-forge-reviewer", map[string]string{"replica": "a b"}),
		info("pfl-forge-reviewer", map[string]string{"replica": strings.Repeat("a", 1<<10)}),
		info("pfl-forge-reviewer", map[string]string{"replica": "big", "projects": strings.Repeat("a,", 1<<18)}),
	} {
		liar(t, s, text)
	}
	liar(t, s, info("pfl-forge-reviewer", map[string]string{
		"replica": "liar", "version": "v1\x1b[2J\n\u202e" + strings.Repeat("x", 1<<10), "started": "yesterday",
		"projects": "shop,../x,a b,\x1b[2J,*,,bank", "agents": "claude,Rm -rf,\x07",
	}))
	list := all(t, b)
	if len(list) != 1 {
		t.Fatalf("got %d: %+v", len(list), list)
	}
	got := list[0]
	if len([]rune(got.Version)) > 100 || strings.ContainsAny(got.Version, "\x1b\n\u202e") || !strings.HasPrefix(got.Version, "v1") {
		t.Errorf("the version is %q", got.Version)
	}
	got.Version = ""
	want := presence.Replica{Service: "reviewer", ID: "liar", Projects: []forge.ProjectID{"bank", "shop"}, Agents: []string{"claude"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// An executor is one of those that there are, or none at all, with what belongs to it and
// nothing that moves a cursor.
func TestLyingExecutors(t *testing.T) {
	s := bustest.StartServer(t)
	b := s.Connect(t)
	long := strings.Repeat("x", 1<<10)
	tests := []struct {
		executor, image, class, reason, required string
		want                                     presence.Executor
	}{
		{"pods\x1b[2J", "a:v1", "gvisor", "why", "true", presence.Executor{}},
		{"Pods", "a:v1", "gvisor", "why", "true", presence.Executor{}},
		{long, "", "", "", "", presence.Executor{}},
		{"", "a:v1", "gvisor", "why", "true", presence.Executor{}},
		{"pods", "a:v1\x1b[2J", "GVISOR", "why", "yes", presence.Executor{Name: forge.ExecutorPods}},
		{"pods", long, long, "why", "", presence.Executor{Name: forge.ExecutorPods}},
		{"pods", "a b", "-", "", "true", presence.Executor{Name: forge.ExecutorPods, Required: true}},
		{"namespaces", "a:v1", "gvisor", "why", "", presence.Executor{Name: forge.ExecutorNamespaces}},
		{"none", "a:v1", "gvisor", "no\x1b[2J\nway\u202e", "", presence.Executor{Name: forge.ExecutorNone, Reason: "no way<U+202E>"}},
	}
	for i, tt := range tests {
		liar(t, s, info("pfl-forge-reviewer", map[string]string{
			"replica": fmt.Sprint("r", i), "executor": tt.executor, "executor_image": tt.image, "executor_runtime_class": tt.class,
			"executor_reason": tt.reason, "executor_required": tt.required,
		}))
	}
	liar(t, s, info("pfl-forge-reviewer", map[string]string{"replica": "z", "executor": "none", "executor_reason": long}))
	list := all(t, b)
	if len(list) != len(tests)+1 {
		t.Fatalf("got %d: %+v", len(list), list)
	}
	for i, tt := range tests {
		if diff := cmp.Diff(tt.want, list[i].Executor); diff != "" {
			t.Errorf("%d: %s", i, diff)
		}
	}
	if got := list[len(tests)].Executor.Reason; len([]rune(got)) > 300 || got == "" {
		t.Errorf("the reason is %q", got)
	}
}

// TestFloodOfAnswers checks that somebody who answers without end does not keep who asks.
func TestFloodOfAnswers(t *testing.T) {
	s := bustest.StartServer(t)
	b := s.Connect(t)
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if _, err := nc.Subscribe("$SRV.INFO", func(m *nats.Msg) {
		for n := range 5000 {
			_ = m.Respond([]byte(info("pfl-forge-reviewer", map[string]string{"replica": fmt.Sprint("r", n)})))
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	list, err := b.Presence.Gather(wait.Context(t), nil) // ends long before its context
	if err != nil || len(list) == 0 || len(list) > 2000 {
		t.Errorf("got %d, %v", len(list), err)
	}
}

func TestHundredReplicas(t *testing.T) {
	s := bustest.StartServer(t)
	b := s.Connect(t)
	for n := range 100 {
		announce(t, b, presence.Replica{Service: "reviewer", ID: forge.ReplicaID(fmt.Sprint("r", n)), Started: started})
	}
	if list := gather(t, b, 100); len(list) != 100 {
		t.Errorf("got %d", len(list))
	}
}

func TestGatherEnds(t *testing.T) {
	b := bustest.Start(t)
	announce(t, b, presence.Replica{Service: "reviewer", ID: "r", Started: started})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Presence.Gather(ctx, nil); err == nil {
		t.Error("who is told to stop says that it has asked everybody")
	}
}
