package jobs_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/demand"
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

// verifyIn opens a repository with an executor and verifies its tip, for a
// command with that intent and input, which may be nil.
func verifyIn(t *testing.T, e process.Executor, demand demand.Demand, config string, intent forge.Intent, input forge.Input) forge.Result {
	t.Helper()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": config})
	state := t.TempDir()
	set, err := jobs.OpenSet(t.Context(), jobs.Host{
		StateDir: state, Owner: process.NewOwner(state).RunIn(e), Sandbox: demand, Log: slog.New(slog.DiscardHandler),
	}, []jobs.Source{{Project: repotest.Project, Path: r.Dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}()
	cmd := forge.Command{BudgetUSD: 5, To: forge.Key{Project: repotest.Project, Intent: "fix"}, Intent: intent, Input: input}
	return set.Do(t.Context(), &cmd, func(forge.Progress) {}, func(ctx context.Context, j *jobs.Job) error {
		_, err := j.Verify(ctx, j.Tip)
		return err
	})
}

// scripted is an intent for which only a recipe works, as a person wished.
var scripted = forge.Intent{Source: forge.SourceHuman, Settings: forge.Settings{Recipe: "tidy"}}

// The record of an attempt says what its commands ran in: the weakest of them, and nothing
// where none ran.
func TestExecutorIsReported(t *testing.T) {
	t.Parallel()
	full, none := sandbox.NetworkFull, sandbox.NetworkNone
	pods := offering{name: forge.ExecutorPods, offers: []sandbox.Network{full, none}}
	for name, tt := range map[string]struct {
		executor offering
		demand   demand.Demand
		config   string
		want     forge.Executor
		fails    bool
	}{
		"pods":            {pods, demand.Require, verifies, forge.ExecutorPods, false},
		"namespaces":      {offering{name: forge.ExecutorNamespaces, offers: []sandbox.Network{full}}, "", verifies, forge.ExecutorNamespaces, false},
		"a command fails": {pods, demand.Require, "verify: [\"false\"]\n", forge.ExecutorPods, false},
		"there is none":   {offering{name: forge.ExecutorNamespaces}, "", verifies, forge.ExecutorNone, false},
		"unconfined":      {offering{name: forge.ExecutorNamespaces, offers: []sandbox.Network{full}}, demand.Unconfined, verifies, forge.ExecutorNone, false},
		"no command":      {pods, demand.Require, "{}\n", "", false},
		"refused":         {offering{name: forge.ExecutorNamespaces}, demand.Require, verifies, "", true},
		"nowhere for now": {offering{name: forge.ExecutorPods, lost: true}, demand.Require, verifies, "", true},
		"the weakest": {
			offering{name: forge.ExecutorNamespaces, offers: []sandbox.Network{none}},
			"", verifies + "worktree_setup: [\"true\"]\n" + noNetwork,
			forge.ExecutorNone, false,
		},
		"none set up": {
			offering{name: forge.ExecutorNamespaces, offers: []sandbox.Network{none}},
			"", verifies + noNetwork,
			forge.ExecutorNamespaces, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			res := verifyIn(t, tt.executor, tt.demand, tt.config, scripted, nil)
			if res.Executor != tt.want || (res.Failure() != nil) != tt.fails {
				t.Errorf("%q, want %q; %+v", res.Executor, tt.want, res.Failure())
			}
		})
	}
}

// A worker that can neither make pods nor a sandbox refuses agents and commands where the
// operator requires one, and says what an operator can do, both ways.
func TestRefusedWithoutExecutor(t *testing.T) {
	t.Parallel()
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
			res := verifyIn(t, tt.executor, demand.Require, verifies, scripted, nil)
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

// TestWithoutSandbox is a machine where no sandbox can be made: what a model or another system
// had a part in is refused with what a person can do, and nothing of it runs; what the
// person wished for of their own recipes runs. No configuration of a repository changes
// that, only the word of whoever runs the process does.
func TestWithoutSandbox(t *testing.T) {
	t.Parallel()
	const refused = "the sandbox cannot be made. Without a sandbox, nothing runs here that an agent or another system wrote: " +
		"it would reach your files, keys and logins. " +
		"Allow what the test says (pfl-forge doctor says more), or use a machine or container without your files and logins. " +
		"To run it unconfined on this one all the same, set FORGE_SANDBOX=unconfined where pfl-forge runs; no file of a repository can. Then: pfl-forge retry fix"
	ran := filepath.Join(t.TempDir(), "ran")
	verifies := "verify: ['touch " + ran + "']\n"
	system, proposed, child, agents := scripted, scripted, scripted, scripted
	system.Source, proposed.Source, child.Parent, agents.Agent = forge.SourceSystem, forge.SourceReflection, "big", "claude"
	// merge is of a change behind two others in the queue, of which the last
	// one is scripted or not, as the change is.
	merge := func(change, ahead bool) forge.Input {
		return &forge.MergeInput{Change: &forge.QueueMerge{Scripted: change}, Ahead: []forge.QueueMerge{{Scripted: true}, {Scripted: ahead}}}
	}
	for name, tt := range map[string]struct {
		demand demand.Demand
		intent forge.Intent
		input  forge.Input // nil: it is no merge
		config string
		says   string // by what it is refused; empty: it runs
	}{
		"a recipe of the person":     {"", scripted, nil, verifies, ""},
		"which needs no network":     {"", scripted, nil, verifies + noNetwork, "or change policy in pfl-forge.yaml"},
		"where one is required":      {"", scripted, nil, verifies + "policy: {sandbox: require}\n", "or change policy in pfl-forge.yaml"},
		"of an agent":                {"", forge.Intent{Source: forge.SourceHuman}, nil, verifies, refused},
		"of an agent and a recipe":   {"", agents, nil, verifies, refused},
		"of another system":          {"", system, nil, verifies, refused},
		"of a reflection":            {"", proposed, nil, verifies, refused},
		"of an agent's plan":         {"", child, nil, verifies, refused},
		"of nobody":                  {"", forge.Intent{}, nil, verifies, refused},
		"with auto":                  {"", system, nil, verifies + "policy: {sandbox: auto}\n", refused},
		"turned off by the project":  {"", system, nil, verifies + "policy: {sandbox: \"off\"}\n", "no repository can turn the sandbox off"},
		"unconfined by the project":  {"", system, nil, verifies + "policy: {sandbox: unconfined}\n", "is not one of auto, require"},
		"unconfined":                 {demand.Unconfined, system, nil, verifies, ""},
		"unconfined, but it differs": {demand.Unconfined, system, nil, verifies + "policy: {sandbox: require}\n", "or change policy in pfl-forge.yaml"},
		"unconfined with no network": {demand.Unconfined, system, nil, verifies + noNetwork, "or change policy in pfl-forge.yaml"},
		"a merge of the person's":    {"", scripted, merge(true, true), verifies, ""},
		"a merge of an agent's":      {"", scripted, merge(false, true), verifies, refused},
		"a merge behind an agent's":  {"", scripted, merge(true, false), verifies, refused},
		"with a commit of another":   {"", scripted, &forge.RebaseInput{Adopted: &forge.Adoption{Author: "Eve <eve@example.com>"}}, verifies, refused},
		"which is unconfined":        {demand.Unconfined, scripted, merge(true, false), verifies, ""},
	} {
		t.Run(name, func(t *testing.T) {
			res := verifyIn(t, offering{name: forge.ExecutorNamespaces}, tt.demand, tt.config, tt.intent, tt.input)
			f := res.Failure()
			_, err := os.Stat(ran)
			_ = os.Remove(ran)
			if tt.says == "" {
				if f != nil || err != nil || res.Executor != forge.ExecutorNone {
					t.Errorf("refused: %+v, %v; in %q", f, err, res.Executor)
				}
				return
			}
			if f == nil || err == nil || res.Executor != "" {
				t.Fatalf("%+v; it ran: %t, in %q", f, err == nil, res.Executor)
			}
			if tt.says == refused && f.Message != refused || !strings.Contains(f.Message, tt.says) {
				t.Errorf("refused with\n%s\nwant\n%s", f.Message, tt.says)
			}
		})
	}
}

// TestNoModelIsOwn: what drives a model is refused where no sandbox can be made, also when it
// reflects on an intent for which only recipes worked.
func TestNoModelIsOwn(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": "agent: claude\n"})
	state, s := t.TempDir(), &scribe{}
	set, err := jobs.OpenSet(t.Context(), jobs.Host{
		StateDir: state, Owner: process.NewOwner(state).RunIn(offering{name: forge.ExecutorNamespaces}), Log: slog.New(slog.DiscardHandler),
		Agents: []agent.Agent{s},
	}, []jobs.Source{{Project: repotest.Project, Path: r.Dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}()
	cmd := forge.Command{BudgetUSD: 5, To: forge.Key{Project: repotest.Project, Intent: "fix"}, Intent: scripted, Attempt: forge.Attempt{Step: forge.StepReflect}}
	res := set.Do(t.Context(), &cmd, func(forge.Progress) {}, func(ctx context.Context, j *jobs.Job) error {
		_, err := j.Run(ctx, agent.Call{Role: agent.RoleReview})
		return err
	})
	if f := res.Failure(); f == nil || f.Reason != forge.FailSandbox || s.call.ScratchDir != "" {
		t.Errorf("got %+v; called: %t", f, s.call.ScratchDir != "")
	}
}

// TestServiceHasNoRecipeOfItsOwn: a service's projects and intents are those of others, so that
// nothing of them runs where no sandbox can be made.
func TestServiceHasNoRecipeOfItsOwn(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": verifies})
	state := t.TempDir()
	set, err := jobs.OpenSet(t.Context(), jobs.Host{
		StateDir: state, Owner: process.NewOwner(state).RunIn(offering{name: forge.ExecutorNamespaces}), Log: slog.New(slog.DiscardHandler),
	}, []jobs.Source{{Project: repotest.Project, URL: r.Origin()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, cmd := range []forge.Command{{Intent: scripted}, {Input: &forge.MergeInput{Change: &forge.QueueMerge{Scripted: true}}}} {
		cmd.To = forge.Key{Project: repotest.Project, Intent: "fix"}
		res := set.Do(t.Context(), &cmd, func(forge.Progress) {}, func(ctx context.Context, j *jobs.Job) error {
			_, err := j.Verify(ctx, j.Tip)
			return err
		})
		if f := res.Failure(); f == nil || f.Reason != forge.FailSandbox {
			t.Errorf("got %+v", f)
		}
	}
}
