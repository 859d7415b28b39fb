// The reflector service looks back at runs that ended.
package main

import (
	"context"

	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/reflector"
)

func main() {
	service.Main("reflector", func(ctx context.Context, env *service.Env) error {
		r := reflector.New()
		return r.Run(ctx, env.Worker(r.Handlers()...))
	})
}
