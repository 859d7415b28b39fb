package edits

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
)

// approval returns the event for `status: approved`, or nil. An approval is of the plan
// that the person had before them, never of one that came later: the plan's hash stands in
// the version that the edit started from. If that version is not known any more, the hash
// in the person's own version has to be the present one.
func (c *comparison) approval() *forge.Approve {
	status := forge.Status(c.mine.Status)
	if !c.pos.Has("status") || c.mine.Status == c.base.Status || c.mine.Status == c.now.Status {
		return nil
	}
	id := c.in.Intent
	if c.stale && status != forge.StatusApproved {
		return nil
	}
	if status != forge.StatusApproved {
		c.refuse("status", c.statusHint(status), "can only be set to approved here; it is %s", c.now.Status)
		return nil
	}
	if c.view.Summary.Waiting != forge.WaitingApproval {
		if s := c.view.Summary.Status; s == forge.StatusExecuting || s == forge.StatusDone {
			return nil // approved meanwhile, by another way
		}
		c.refuse("status", c.statusHint(status), "does not wait for an approval; it is %s", c.now.Status)
		return nil
	}
	plan := c.base.Plan
	if !c.based {
		plan = c.mine.Plan
	}
	if known := c.based || plan != ""; !known || plan != c.now.Plan {
		c.refuse("status", fmt.Sprintf("read it with pfl-forge show %s, then run pfl-forge approve %s, or undo the edit", id, id),
			"the plan changed since this version of the file was written")
		return nil
	}
	return &forge.Approve{Plan: c.now.Plan}
}

// statusHint names the command that does what a status in the file cannot.
func (c *comparison) statusHint(status forge.Status) string {
	switch status {
	case forge.StatusRejected:
		return fmt.Sprintf("run pfl-forge reject %s", c.in.Intent)
	case forge.StatusCancelled:
		return fmt.Sprintf("run pfl-forge cancel %s", c.in.Intent)
	default:
		if c.view.Summary.Status.Failed() {
			return fmt.Sprintf("run pfl-forge retry %s", c.in.Intent)
		}
		return fmt.Sprintf("set it back to %s", c.now.Status)
	}
}
