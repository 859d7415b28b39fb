package backends_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/pods"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/jobs/backends"
)

// machine is an executor of a machine that offers a sandbox unless err says why not.
type machine struct {
	process.Executor
	err error
}

func (machine) Name() forge.Executor                           { return forge.ExecutorNamespaces }
func (m machine) Probe(context.Context, sandbox.Network) error { return m.err }

// Others are told what a worker runs agents in: what it can make, not what it would like to.
func TestDescribe(t *testing.T) {
	template := filepath.Join(t.TempDir(), "pod.yaml")
	text := "{apiVersion: v1, kind: Pod, metadata: {namespace: agents}, spec: {runtimeClassName: gvisor, containers: [{name: command, image: x:1}]}}"
	if err := os.WriteFile(template, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	inPods, err := pods.New(&pods.API{}, template, "", "implementer-0", t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		executor process.Executor
		demand   demand.Demand
		want     presence.Executor
	}{
		"pods":       {inPods, demand.Require, presence.Executor{Name: forge.ExecutorPods, Image: "x:1", RuntimeClass: "gvisor", Required: true}},
		"namespaces": {machine{}, "", presence.Executor{Name: forge.ExecutorNamespaces}},
		"none":       {machine{err: errors.New("no way")}, "", presence.Executor{Name: forge.ExecutorNone, Reason: "no way", Required: true}},
		"refused":    {machine{err: errors.New("no way")}, demand.Require, presence.Executor{Name: forge.ExecutorNone, Reason: "no way", Required: true}},
		"unconfined": {machine{}, demand.Unconfined, presence.Executor{Name: forge.ExecutorNone, Reason: "FORGE_SANDBOX=unconfined"}},
	} {
		got := backends.Describe(t.Context(), process.NewOwner(t.TempDir()).RunIn(tt.executor), tt.demand)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
