package overhttp

import (
	"os"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func TestMain(m *testing.M) {
	wait.Beside()
	os.Exit(m.Run())
}
