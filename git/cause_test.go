package git_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
)

// TestCauses reads what git, ssh and servers print as causes, and which of them
// are an origin that does not answer.
func TestCauses(t *testing.T) {
	t.Parallel()
	gone := filepath.Join(t.TempDir(), "gone.git")
	for _, c := range []struct {
		stderr string
		want   git.Cause
		away   bool
	}{
		{"fatal: unable to access 'https://git.invalid/a/': Could not resolve host: git.invalid", git.CauseName, true},
		{"ssh: Could not resolve hostname git.invalid: Name or service not known\nfatal: Could not read from remote repository.", git.CauseName, true},
		{"ssh: connect to host git port 22: Connection refused", git.CauseRefused, true},
		{"ssh: connect to host git port 22: Connection timed out", git.CauseTimeout, true},
		{"fatal: unable to access 'https://git/a/': The requested URL returned error: 503", git.CauseBroken, true},
		{"kex_exchange_identification: Connection closed by remote host", git.CauseBroken, true},
		{"fatal: '" + gone + "' does not appear to be a git repository", git.CauseGone, true},
		{"remote: fatal: not a git repository: '" + gone + "'", git.CauseGone, true},
		{"remote: fatal: not a git repository: '/srv/a.git'", "", false},
		{"fatal: '/srv/a.git' does not appear to be a git repository\nfatal: Could not read from remote repository.", "", false},
		{"git@git: Permission denied (publickey).", git.CauseAuth, false},
		{"ERROR: Permission to a/b.git denied to c.\nfatal: Could not read from remote repository.", git.CauseAuth, false},
		{"ERROR: The key you are authenticating with has been marked as read only.", git.CauseAuth, false},
		{"error: unable to create file a: Permission denied", "", false}, // the disk of the replica
		{"fatal: unable to access 'https://git/a/': The requested URL returned error: 403", git.CauseAuth, false},
		{"remote: no ticket named\n ! [remote rejected] x -> main (pre-receive hook declined)", git.CauseHook, false},
		{" ! [remote rejected] x -> main (protected branch hook declined)", git.CauseProtected, false},
		{" ! [remote rejected] x -> a (refusing to allow a GitHub App to create or update workflow `w.yml` without `workflows` permission)", git.CauseHook, false},
		{" ! [remote rejected] x -> refs/forge/a (deny updating a hidden ref)", git.CauseHook, false},
		{" ! [rejected] x -> main (stale info)", git.CauseMoved, false},
		{"fatal: bad object", "", false},
	} {
		args := []string{"fetch", "-q", "git@git:a"}
		if c.want == git.CauseGone {
			args[2] = gone
		}
		err := fmt.Errorf("fetch: %w", &git.Error{Args: args, ExitCode: 128, Stderr: c.stderr})
		if got := git.CauseOf(err); got != c.want || git.Unreachable(err) != c.away {
			t.Errorf("%q is %q, and away: %t", c.stderr, got, git.Unreachable(err))
		}
		if want := c.away || c.want == git.CauseAuth; git.Unserved(err) != want {
			t.Errorf("%q: it does nothing for us: %t, want %t", c.stderr, git.Unserved(err), want)
		}
		if !git.Unserved(&git.RefusedError{Err: err, All: true}) || git.Unserved(&git.RefusedError{Err: err}) {
			t.Errorf("%q: refused, it counts as something else", c.stderr)
		}
	}
	slow := &git.Error{Args: []string{"fetch"}, ExitCode: -1, Err: git.ErrSlow, Stderr: "fetch-pack: unexpected disconnect while reading sideband packet"}
	if git.CauseOf(slow) != "" || git.Unreachable(slow) || git.Unserved(slow) {
		t.Errorf("one that answers, and was stopped, is %q", git.CauseOf(slow))
	}
	if got := git.CauseOf(errors.New("Connection refused")); got != "" {
		t.Errorf("an error that is not git's is %q", got)
	}
}
