package task

import (
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// Summary returns the task as lists show it.
func (t *Task) Summary(s Strategy) forge.TaskSummary {
	sum := forge.TaskSummary{
		ID: t.ID, Title: t.Title, Status: t.Status, Attempt: t.Implement.Number, Detail: t.Failure, Step: s.Step(t.Stage),
	}
	switch t.Stage {
	case Merging:
		sum.Step = forge.StepMerge
	case Locking:
		sum.Detail = "first in the queue, after a conflict"
	default:
	}
	for _, o := range t.Overlaps {
		if known := slices.ContainsFunc(sum.Overlaps, func(k forge.Overlap) bool { return k.TaskID == o.TaskID }); !known {
			sum.Overlaps = append(sum.Overlaps, o.Overlap)
		}
	}
	return sum
}
