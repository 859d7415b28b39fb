package outside

import (
	"context"
	"sync"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// runs has something run until what it returns is called, or the test ends.
func runs(t testing.TB, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := wait.For(t, ended); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// runsGateway runs a gateway until what it returns is called, or the test ends.
func runsGateway(t testing.TB, cfg gateway.Config) (g *gateway.Gateway, stop func()) {
	t.Helper()
	g, err := gateway.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g, runs(t, g.Run)
}
