package git

import (
	"fmt"
)

// Attempt names one try of one task. The commits that it made are kept under refs/forge/<intent>/<task>/<number>/.
type Attempt struct {
	Intent Name
	Task   Name
	Number int // 1, 2, ...

	// Newest has Keep and Collect publish the head that they keep as the task's newest as well: TaskHeads returns it
	// until Forget.
	Newest bool
}

func (a Attempt) prefix() string {
	return fmt.Sprintf("%s%s/%d/", intentPrefix(a.Intent), a.Task, a.Number)
}

// KeptRef returns the ref under which Keep keeps commit o of the attempt: refs/forge/<intent>/<task>/<attempt>/<first 12 digits>.
func (a Attempt) KeptRef(o OID) string { return a.prefix() + o.Short() }

// LeftoverRef returns the ref under which Collect keeps uncommitted work that it saved as commit o.
func (a Attempt) LeftoverRef(o OID) string { return a.prefix() + "leftover-" + o.Short() }

func (a Attempt) validate() error {
	if _, err := ParseName(string(a.Intent)); err != nil {
		return fmt.Errorf("intent: %w", err)
	}
	if _, err := ParseName(string(a.Task)); err != nil {
		return fmt.Errorf("task: %w", err)
	}
	if a.Number < 1 {
		return fmt.Errorf("attempt %d: want 1 or more", a.Number)
	}
	return nil
}

func intentPrefix(intent Name) string { return "refs/forge/" + string(intent) + "/" }
