package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// maxJoined bounds the plan, steps and context of a joined task together, in
// bytes: an agent is shown at least as much of each.
const maxJoined = 64 << 10

// joins reports whether planned tasks become one. Those of a recipe do not: each
// runs a command of its own, for an item of its own, which no other task could.
func (p *Parent) joins(tasks []*task.Task) bool {
	return p.Whole && len(tasks) > 1 && p.Intent.Recipe == ""
}

// join makes the one task of an intent that is merged as one change, whatever its analysis
// divided it into. Nothing of what was planned is left out: plans and contexts become
// sections under the titles of their tasks, steps follow each other, and all of it is in
// an order in which it can be done. tasks are not empty, and no circle is among them.
func (p *Parent) join(tasks []*task.Task) ([]*task.Task, error) {
	tasks = inOrder(tasks)
	withContext := slices.DeleteFunc(slices.Clone(tasks), func(t *task.Task) bool { return t.Context == "" })
	one := &task.Task{Stage: task.Pending, Task: forge.Task{
		ID: forge.NewTaskID(p.Intent.ID, 1), IntentID: p.Intent.ID, Title: p.Intent.Title, Status: forge.TaskPending,
		Plan:       sections(tasks, func(t *task.Task) string { return t.Plan }),
		Context:    sections(withContext, func(t *task.Task) string { return t.Context }),
		Complexity: slices.MaxFunc(tasks, func(a, b *task.Task) int { return rank(a.Complexity) - rank(b.Complexity) }).Complexity,
	}}
	for _, t := range tasks {
		one.Steps = append(one.Steps, t.Steps...)
		one.RelevantFiles = union(one.RelevantFiles, t.RelevantFiles)
		one.Requirements = union(one.Requirements, t.Required()) // of a task that names none, its title
	}
	const asOne = "the %d tasks are merged as one (merge.unit), and have %d %s together; at most %d are allowed"
	if n := len(one.Requirements); n > forge.MaxCriteria {
		return nil, fmt.Errorf(asOne, len(tasks), n, "requirements", forge.MaxCriteria)
	}
	if n := len(one.Plan) + len(one.Context) + len(strings.Join(one.Steps, "\n")); n > maxJoined {
		return nil, fmt.Errorf(asOne, len(tasks), n, "bytes of plans, steps and context", maxJoined)
	}
	return []*task.Task{one}, nil
}

// inOrder returns tasks so that each comes after those that it depends on, and
// otherwise as they were planned.
func inOrder(tasks []*task.Task) []*task.Task {
	ordered, done := make([]*task.Task, 0, len(tasks)), make(map[forge.TaskID]bool, len(tasks))
	isOpen := func(d forge.TaskID) bool { return !done[d] }
	for len(ordered) < len(tasks) {
		for _, t := range tasks {
			// From the first one again after each: a later task comes only once none before it can.
			if !done[t.ID] && !slices.ContainsFunc(t.DependsOn, isOpen) {
				ordered, done[t.ID] = append(ordered, t), true
				break
			}
		}
	}
	return ordered
}

// sections returns a text of each task under the task's title, which stands
// alone where the text is empty.
func sections(tasks []*task.Task, text func(*task.Task) string) string {
	list := make([]string, len(tasks))
	for i, t := range tasks {
		list[i] = strings.TrimSpace("## " + t.Title + "\n\n" + strings.TrimSpace(text(t)))
	}
	return strings.Join(list, "\n\n")
}

// union returns a list with the entries of more that it has not.
func union(list, more []string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// rank orders complexities. One that was not said is not taken for low.
func rank(c forge.Complexity) int {
	return slices.Index([]forge.Complexity{forge.ComplexityLow, "", forge.ComplexityMed, forge.ComplexityHigh}, c)
}
