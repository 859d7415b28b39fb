package process

import (
	"syscall"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// A service is stopped: after a while its commands end, because others do its work by
// then. While it runs, they go on.
func TestServiceStopped(t *testing.T) {
	testsize.OnlyFull(t)
	for _, mode := range []string{"bare", "sandbox"} {
		if mode == "sandbox" && !offered(t) {
			continue
		}
		t.Run(mode, func(t *testing.T) {
			pulse := time.Second
			for !endsWhenStopped(t, mode, pulse) { // a busy machine may silence a service that runs
				if pulse *= 4; pulse > wait.Patience {
					t.Fatal("a command ends while its service runs")
				}
			}
		})
	}
}

// endsWhenStopped stops a service that may be silent for as long as its pulse, and waits for the
// end of its command. It returns false if that ended before.
func endsWhenStopped(t *testing.T, mode string, pulse time.Duration) bool {
	t.Helper()
	t.Setenv("TEST_SERVICE_PULSE", pulse.String())
	work := t.TempDir()
	service := startService(t, t.TempDir(), work, mode, 0)
	if wait.Poll(wait.Briefly(t, 3*pulse/2), func() bool { return len(living(work)) == 0 }) {
		return false
	}
	if err := syscall.Kill(service.Process.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	mustBeGone(t, work)
	return true
}
