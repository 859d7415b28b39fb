package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// bare runs pfl-forge on a machine where no sandbox can be made: in a user namespace that
// allows none below it.
func (r *repo) bare(code int, env []string, args ...string) string {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	cmd := r.command(ctx, args...)
	inner := append([]string{"-c", `echo 0 >/proc/sys/user/max_user_namespaces && exec "$0" "$@"`, cmd.Path}, args...)
	outer := exec.CommandContext(ctx, "/bin/sh", inner...)
	outer.Dir, outer.Env, outer.WaitDelay = cmd.Dir, slices.Concat(cmd.Env, env), cmd.WaitDelay
	outer.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := outer.CombinedOutput()
	if outer.ProcessState == nil {
		r.t.Fatal(err)
	}
	if got := outer.ProcessState.ExitCode(); got != code {
		r.t.Fatalf("pfl-forge %v: exit code %d, want %d\n%s", args, got, code, out)
	}
	return string(out)
}

// holds fails unless the text has all of these.
func (r *repo) holds(text string, all ...string) {
	r.t.Helper()
	for _, s := range all {
		if !strings.Contains(text, s) {
			r.t.Errorf("%q is missing in\n%s", s, text)
		}
	}
}

// TestNoSandboxAnywhere is a machine whose kernel makes no sandbox. A person's own recipes run,
// an agent is refused with what to do and not started, whatever files of the repository
// say; once the person says unconfined the same intent goes on, and everything that tells of
// it says so.
func TestNoSandboxAnywhere(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	started := filepath.Join(t.TempDir(), "started")
	r := newRepo(t, map[string]string{
		".env": "FORGE_SANDBOX=unconfined\n", ".envrc": "export FORGE_SANDBOX=unconfined\n", ".gitignore": "/.forge/\n",
		"pfl-forge.yaml": fmt.Sprintf(`agent: mine
policy: {sandbox: auto}
reflection: {enabled: false}
verify: [test -e .env]
agents:
  mine:
    read_only: true
    command:
    - sh
    - -c
    - >-
      cat >/dev/null; touch %s; printf
      "{\"type\": \"result\", \"model\": \"m\", \"answer\": {\"type\": \"fix\", \"risk\": \"low\", \"tasks\": [], \"nothing_to_do\": \"it is there\"}}"
recipes:
  own: {run: echo a >a}
`, started),
	})
	r.must(0, "create", "own", "--title", "Own", "--recipe", "own")
	r.holds(r.bare(0, nil, "run"), "unconfined: no sandbox can be made here, so only recipes run that you ask for yourself", "merged as")
	r.holds(r.bare(0, nil, "history", "own"), "unconfined")
	doctor := r.bare(0, nil, "doctor")
	r.holds(doctor, "what an agent or another system wrote is refused")

	r.must(0, "create", "agents", "--title", "Agents")
	r.bare(2, nil, "run")
	refusal := r.must(0, "show", "agents").stdout
	r.holds(strings.Join(strings.Fields(refusal), " "), "nothing runs here that an agent or another system wrote",
		"set FORGE_SANDBOX=unconfined where pfl-forge runs; no file of a repository can", "pfl-forge retry agents")
	if exists(started) {
		t.Error("the agent was started")
	}

	r.must(0, "retry", "agents")
	r.holds(r.bare(0, []string{unconfined}, "run"),
		"unconfined: agents and commands run without a sandbox and reach your files, keys and logins (FORGE_SANDBOX=unconfined)")
	if !exists(started) {
		t.Error("the agent was not started")
	}
	r.holds(r.bare(0, []string{unconfined}, "doctor"), "unconfined, as FORGE_SANDBOX says")
	r.holds(r.must(0, "history", "agents").stdout, "unconfined")
	r.holds(r.must(0, "history", "agents", "--output", "json").stdout, `"executor": "none"`)
}

// TestDemoWithoutSandbox: the demo works on a machine that makes no sandbox, with no setting.
func TestDemoWithoutSandbox(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	r.holds(r.bare(0, nil, "demo", "--dir", filepath.Join(t.TempDir(), "demo")), "unconfined: no sandbox can be made here", "What waits for you")
}
