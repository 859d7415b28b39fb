package backends

import (
	"context"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/pods"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/service"
)

// openExecutor returns the executor that a service is configured with, without the pods that
// an earlier life left; nil: this machine's namespaces.
func openExecutor(ctx context.Context, env *service.Env) (process.Executor, error) {
	template := env.Config.Commands.PodTemplate
	if template == "" {
		return nil, nil //nolint:nilnil // as said
	}
	api, err := pods.InCluster()
	if err != nil {
		return nil, fmt.Errorf("--pod-template (FORGE_POD_TEMPLATE): %w", err)
	}
	e, err := pods.New(api, template, env.Config.Commands.PodImage, env.Config.Replica, env.Config.StateDir, env.Log)
	if err != nil {
		return nil, fmt.Errorf("--pod-template (FORGE_POD_TEMPLATE): %w", err)
	}
	e.Metrics = env.Metrics
	if err := e.Sweep(ctx); err != nil {
		env.Log.WarnContext(ctx, "pods of an earlier life may be left", "error", err)
	}
	return e, nil
}

// Describe tries the executor of an owner, unless it makes pods, and says what it is, for
// others to see. Where there is none, what others wrote is refused unless the demand is
// [demand.Unconfined].
func Describe(ctx context.Context, owner process.Owner, word demand.Demand) presence.Executor {
	if word == demand.Unconfined {
		return presence.Executor{Name: forge.ExecutorNone, Reason: demand.Variable + "=" + string(word)}
	}
	e := owner.Executor()
	out := presence.Executor{Name: e.Name(), Required: word == demand.Require}
	if p, ok := e.(*pods.Executor); ok {
		out.Image, out.RuntimeClass = p.Image()
		return out
	}
	if err := e.Probe(ctx, sandbox.NetworkFull); err != nil {
		out.Name, out.Reason, out.Required = forge.ExecutorNone, err.Error(), true
	}
	return out
}

// announce makes the process known with its agents and its executor, and logs that there is
// none.
func announce(ctx context.Context, env *service.Env, host *jobs.Host) {
	in := Describe(ctx, host.Owner, host.Sandbox)
	switch {
	case in.Name != forge.ExecutorNone:
	case in.Required:
		env.Log.ErrorContext(ctx, "agents and commands are refused: no sandbox can be made here; on Kubernetes, give --pod-template (FORGE_POD_TEMPLATE)",
			"reason", in.Reason, "or_allow_it", host.Owner.Executor().Needs())
	default:
		env.Log.WarnContext(ctx, "agents and commands run unconfined: they reach all that this service reaches", "reason", in.Reason)
	}
	if env.Bus != nil {
		env.Announce(ctx, installed(), in)
	}
}
