package claude

import (
	"slices"
	"testing"
	"time"
)

// A command of the agent that prints nothing must not look like an agent that hangs.
func TestCommandsEndBeforeTheCallIsIdle(t *testing.T) {
	for idle, want := range map[time.Duration][2]string{
		0:               {"120000", "600000"},
		time.Hour:       {"120000", "600000"},
		5 * time.Minute: {"120000", "270000"},
		time.Minute:     {"54000", "54000"},
	} {
		env := environment("/h", "/s", idle)
		for i, name := range []string{"BASH_DEFAULT_TIMEOUT_MS=", "BASH_MAX_TIMEOUT_MS="} {
			if !slices.Contains(env, name+want[i]) {
				t.Errorf("idle %s: no %s%s in %q", idle, name, want[i], env)
			}
		}
	}
}
