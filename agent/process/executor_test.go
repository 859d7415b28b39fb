package process_test

import (
	"os"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/process/executortest"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// TestNamespaces holds this machine's sandbox to the suite of all executors.
func TestNamespaces(t *testing.T) {
	e := process.Owner{}.Executor()
	if err := e.Probe(t.Context(), sandbox.NetworkNone); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	executortest.Run(t, e, t.TempDir())
}
