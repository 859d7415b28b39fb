package bustest

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/pfl-forge/pfl-forge/internal/testdir"
	"github.com/pfl-forge/pfl-forge/internal/testport"
)

// StartConf starts a server with the configuration of a file, on a loopback port and
// with a store of its own, and returns its URL. It is gone when the test ends.
func StartConf(t testing.TB, path string) (url string) {
	t.Helper()
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatalf("bustest: %v", err)
	}
	opts.Host, opts.Port, opts.JetStream, opts.StoreDir = "127.0.0.1", testport.Free(t), true, testdir.New(t)
	opts.NoLog, opts.NoSigs, opts.DisableJetStreamBanner = true, true, true
	s := &Server{opts: opts}
	s.Start(t)
	t.Cleanup(s.Stop)
	return s.URL()
}
