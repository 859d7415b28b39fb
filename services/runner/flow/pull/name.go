package pull

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// LeastCommit is how many digits of a commit name it when a person speaks of it.
const LeastCommit = 12

// Short returns as many digits of a commit as a person has to give.
func Short(commit string) string { return commit[:min(len(commit), LeastCommit)] }

// Names reports whether what a person gave names a commit.
func Names(given, commit string) bool {
	return len(given) >= LeastCommit && strings.HasPrefix(commit, given)
}

// NotOffered returns why a commit that a person names cannot become the change of a task of an intent: seen says which
// branches were seen where.
func NotOffered(intent forge.IntentID, given string, seen []string) error {
	switch {
	case len(given) < LeastCommit:
		return &forge.FieldError{Field: "adopt", Reason: fmt.Sprintf("is no commit: give %d of its digits at least", LeastCommit)}
	case len(seen) == 0:
		return fmt.Errorf("no change of the intent waits because of commits of another one. To have a branch looked at: pfl-forge retry %s", intent)
	}
	return fmt.Errorf("commit %s is none of those that can be adopted: %s. To have it looked at once more: pfl-forge retry %s",
		rule.FirstLine(given), strings.Join(seen, "; "), intent)
}
