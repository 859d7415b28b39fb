// Command runner is the service that takes every decision of pfl-forge: it folds events into
// journals by the rules of package flow, and sends the commands, timers and messages that follow.
//
// Several may run; they share the events. One is ready when the effects of
// earlier decisions are in force again ("recovery") and the shared consumer
// exists ("events"). It touches no repository and calls no agent.
package main

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/notify"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

func main() {
	service.Main("runner", func(ctx context.Context, env *service.Env) error {
		// It stays true: a loss later on is mended while events are decided on.
		var recovered atomic.Bool
		env.Health.Add("recovery", func(context.Context) error {
			if !recovered.Load() {
				return errors.New("what was under way is not in force again yet")
			}
			return nil
		})
		// The consumer that all runners share has to be there.
		env.Health.Add("events", env.Bus.Events.Ready)
		env.Health.Know(runner.Facts(env.Bus.Journal))
		cfg := runner.Config{
			Bus: env.Bus, Log: env.Log, Serve: true, Metrics: env.Metrics, Key: env.SigningKey(), Quotas: env.Config.Runner.Quotas,
			Ready: func() { recovered.Store(true) }, Rules: runner.RulesConfig{Most: rules.Version(env.Config.Runner.Rules)},
		}
		var err error
		if cfg.Authors, err = env.Authors(); err != nil {
			return err
		}
		if env.Config.Runner.Notifications != "" {
			if cfg.Notify, err = notify.Load(env.Config.Runner.Notifications); err != nil {
				return err
			}
		}
		return runner.Run(ctx, cfg)
	})
}
