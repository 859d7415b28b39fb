package store

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge/git"
)

// Attempt names one try of one task. The commits that it made are kept under
// refs/forge/<intent>/<task>/<number>/.
type Attempt struct {
	Intent git.Name
	Task   git.Name
	Number int // 1, 2, ...

	// Newest has Keep and Collect publish the head that they keep as the task's newest as
	// well: TaskHeads returns it until Forget.
	Newest bool
}

// Prefix returns the ref prefix of everything that is kept of the attempt.
func (a Attempt) Prefix() string {
	return fmt.Sprintf("%s%s/%d/", intentPrefix(a.Intent), a.Task, a.Number)
}

// KeptRef returns the ref under which Keep keeps commit o of the attempt:
// refs/forge/<intent>/<task>/<attempt>/<first 12 digits>.
func (a Attempt) KeptRef(o git.OID) string { return a.Prefix() + o.Short() }

// LeftoverRef returns the ref under which Collect keeps uncommitted work that it saved as commit o.
func (a Attempt) LeftoverRef(o git.OID) string { return a.Prefix() + "leftover-" + o.Short() }

// Validate returns an error unless the names are valid and the number is positive.
func (a Attempt) Validate() error {
	if _, err := git.ParseName(string(a.Intent)); err != nil {
		return fmt.Errorf("intent: %w", err)
	}
	if _, err := git.ParseName(string(a.Task)); err != nil {
		return fmt.Errorf("task: %w", err)
	}
	if a.Number < 1 {
		return fmt.Errorf("attempt %d: want 1 or more", a.Number)
	}
	return nil
}

// intentPrefix returns the beginning of an intent's hidden refs.
func intentPrefix(intent git.Name) string { return "refs/forge/" + string(intent) + "/" }
