package backends

import (
	"context"
	"fmt"

	"github.com/pfl-forge/pfl-forge/agent/pods"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/service"
)

// openExecutor returns the executor that a service is configured with, without the pods that
// an earlier life left; nil: this machine's namespaces.
func openExecutor(ctx context.Context, env *service.Env) (process.Executor, error) {
	template := env.Config.PodTemplate
	if template == "" {
		return nil, nil //nolint:nilnil // as said
	}
	api, err := pods.InCluster()
	if err != nil {
		return nil, fmt.Errorf("--pod-template (FORGE_POD_TEMPLATE): %w", err)
	}
	e, err := pods.New(api, template, env.Config.PodImage, env.Config.Replica, env.Config.StateDir, env.Log)
	if err != nil {
		return nil, fmt.Errorf("--pod-template (FORGE_POD_TEMPLATE): %w", err)
	}
	if err := e.Sweep(ctx); err != nil {
		env.Log.Warn("pods of an earlier life may be left", "error", err)
	}
	return e, nil
}
