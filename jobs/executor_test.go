package jobs_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// offering is an executor that runs commands on this machine without a sandbox, and offers
// only some networks.
type offering struct {
	name   forge.Executor
	offers []sandbox.Network
	lost   bool // it cannot be reached now
}

func (o offering) Name() forge.Executor { return o.name }
func (o offering) Needs() string        { return "what the test says" }

func (o offering) Probe(_ context.Context, n sandbox.Network) error {
	switch {
	case o.lost:
		return process.ErrLost
	case slices.Contains(o.offers, n):
		return nil
	}
	return process.ErrSandbox
}

func (o offering) Run(ctx context.Context, c process.Command) (process.Report, error) {
	c.Owner, c.Sandbox = process.Owner{}, nil
	return process.Run(ctx, c)
}

const (
	// verifies is a configuration with a command, and noNetwork adds that it has no network.
	verifies  = "verify: [\"true\"]\n"
	noNetwork = "policy: {command_network: none}\n"
)

// verifyIn opens a repository with an executor and verifies its tip.
func verifyIn(t *testing.T, e process.Executor, require bool, config string) forge.Result {
	t.Helper()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": config})
	state := t.TempDir()
	set, err := jobs.OpenSet(t.Context(), jobs.Host{
		StateDir: state, Owner: process.NewOwner(state).RunIn(e), RequireSandbox: require, Log: slog.New(slog.DiscardHandler),
	}, []jobs.Source{{Project: repotest.Project, Path: r.Dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}()
	cmd := forge.Command{To: forge.Key{Project: repotest.Project, Intent: "fix"}}
	return set.Do(t.Context(), &cmd, func(forge.Progress) {}, func(ctx context.Context, j *jobs.Job) error {
		_, err := j.Verify(ctx, j.Tip)
		return err
	})
}

// The record of an attempt says what its commands ran in: the weakest of them, and nothing
// where none ran.
func TestExecutorIsReported(t *testing.T) {
	full, none := sandbox.NetworkFull, sandbox.NetworkNone
	pods := offering{name: forge.ExecutorPods, offers: []sandbox.Network{full, none}}
	for name, tt := range map[string]struct {
		executor offering
		require  bool
		config   string
		want     forge.Executor
		fails    bool
	}{
		"pods":            {pods, true, verifies, forge.ExecutorPods, false},
		"namespaces":      {offering{name: forge.ExecutorNamespaces, offers: []sandbox.Network{full}}, false, verifies, forge.ExecutorNamespaces, false},
		"a command fails": {pods, true, "verify: [\"false\"]\n", forge.ExecutorPods, false},
		"there is none":   {offering{name: forge.ExecutorNamespaces}, false, verifies, forge.ExecutorNone, false},
		"turned off": {
			offering{name: forge.ExecutorNamespaces, offers: []sandbox.Network{full}},
			false, verifies + "policy: {sandbox: \"off\"}\n",
			forge.ExecutorNone, false,
		},
		"no command":      {pods, true, "{}\n", "", false},
		"refused":         {offering{name: forge.ExecutorNamespaces}, true, verifies, "", true},
		"nowhere for now": {offering{name: forge.ExecutorPods, lost: true}, true, verifies, "", true},
		"the weakest": {
			offering{name: forge.ExecutorNamespaces, offers: []sandbox.Network{none}},
			false, verifies + "worktree_setup: [\"true\"]\n" + noNetwork,
			forge.ExecutorNone, false,
		},
		"none set up": {
			offering{name: forge.ExecutorNamespaces, offers: []sandbox.Network{none}},
			false, verifies + noNetwork,
			forge.ExecutorNamespaces, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			res := verifyIn(t, tt.executor, tt.require, tt.config)
			if res.Executor != tt.want || (res.Failure() != nil) != tt.fails {
				t.Errorf("%q, want %q; %+v", res.Executor, tt.want, res.Failure())
			}
		})
	}
}

// A worker that can neither make pods nor a sandbox refuses agents and commands where the
// operator requires one, and says what an operator can do, both ways.
func TestRefusedWithoutExecutor(t *testing.T) {
	for name, tt := range map[string]struct {
		executor      offering
		says, saysNot []string
	}{
		"namespaces": {
			offering{name: forge.ExecutorNamespaces},
			[]string{"--sandbox=require", "--pod-template (FORGE_POD_TEMPLATE)", "what the test says", "pfl-forge doctor --server"},
			[]string{"pfl-forge.yaml"},
		},
		"pods": {offering{name: forge.ExecutorPods}, []string{"what the test says"}, []string{"--pod-template", "pfl-forge.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			res := verifyIn(t, tt.executor, true, verifies+"policy: {sandbox: \"off\"}\n")
			f := res.Failure()
			if f == nil || f.Reason != forge.FailSandbox {
				t.Fatalf("got %+v", f)
			}
			for _, s := range tt.says {
				if !strings.Contains(f.Message, s) {
					t.Errorf("%q is missing in %q", s, f.Message)
				}
			}
			for _, s := range tt.saysNot {
				if strings.Contains(f.Message, s) {
					t.Errorf("%q is in %q", s, f.Message)
				}
			}
		})
	}
}
