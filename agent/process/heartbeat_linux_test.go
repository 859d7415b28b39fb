package process

import (
	"syscall"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// testPulse is how long a service of these tests that has a pulse may be silent.
const testPulse = time.Second

// A service is stopped: after a while its commands end, because others do its work by
// then. While it runs, they go on.
func TestServiceStopped(t *testing.T) {
	for _, mode := range []string{"bare", "sandbox"} {
		if mode == "sandbox" && !offered(t) {
			continue
		}
		t.Run(mode, func(t *testing.T) {
			t.Setenv("TEST_SERVICE_PULSE", testPulse.String())
			work := t.TempDir()
			service := startService(t, t.TempDir(), work, mode, 0)
			if wait.Poll(wait.Briefly(t, 3*testPulse/2), func() bool { return len(living(work)) == 0 }) {
				t.Fatal("a command ends while its service runs")
			}
			if err := syscall.Kill(service.Process.Pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			mustBeGone(t, work)
		})
	}
}
