package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// tasksOf gives an analysis's tasks their ids, and refuses dependencies that
// cannot be met.
func tasksOf(intent forge.IntentID, plans []forge.TaskPlan) ([]*task.Task, error) {
	ids := make(map[string]forge.TaskID, len(plans))
	for i, p := range plans {
		name := p.Name
		if name == "" {
			name = fmt.Sprintf("%d", i+1)
		}
		if _, dup := ids[name]; dup {
			return nil, fmt.Errorf("two tasks are named %q", name)
		}
		ids[name] = forge.NewTaskID(intent, i+1)
	}
	tasks := make([]*task.Task, 0, len(plans))
	for i, p := range plans {
		if n := len(p.Requirements); n > forge.MaxCriteria {
			return nil, fmt.Errorf("task %q has %d requirements; at most %d are allowed", p.Title, n, forge.MaxCriteria)
		}
		t := &task.Task{Stage: task.Pending, Task: forge.Task{
			ID: forge.NewTaskID(intent, i+1), IntentID: intent, Title: p.Title, Plan: p.Plan,
			RelevantFiles: p.RelevantFiles, Steps: p.Steps, Context: p.Context, Complexity: p.Complexity,
			Status: forge.TaskPending, Name: p.Name, Item: p.Item, Write: p.Write, Aims: forge.Aims{Requirements: p.Requirements},
		}}
		for _, d := range p.DependsOn {
			id, ok := ids[d]
			if !ok {
				return nil, fmt.Errorf("task %q depends on %q, which is not in this plan", p.Title, d)
			}
			t.DependsOn = append(t.DependsOn, id)
		}
		tasks = append(tasks, t)
	}
	id := func(t *task.Task) forge.TaskID { return t.ID }
	after := func(t *task.Task) []forge.TaskID { return t.DependsOn }
	if stuck := circle(tasks, id, after); stuck != nil {
		names := make([]string, len(stuck))
		for i, t := range stuck {
			names[i] = string(t.ID)
		}
		return nil, fmt.Errorf("these tasks wait for each other: %s", strings.Join(names, ", "))
	}
	return tasks, nil
}

// circle returns those that wait for each other; nil if there is an order in which
// all can be done.
func circle[T any, ID comparable](list []T, id func(T) ID, after func(T) []ID) []T {
	done := make(map[ID]bool, len(list))
	isOpen := func(d ID) bool { return !done[d] }
	for len(done) < len(list) {
		before := len(done)
		for _, t := range list {
			if !slices.ContainsFunc(after(t), isOpen) {
				done[id(t)] = true
			}
		}
		if len(done) == before {
			return slices.DeleteFunc(slices.Clone(list), func(t T) bool { return done[id(t)] })
		}
	}
	return nil
}

// Titles returns the titles of what is planned, for other intents.
func Titles(tasks []*task.Task, children Children) string {
	titles := make([]string, 0, len(tasks)+len(children))
	for _, t := range tasks {
		titles = append(titles, t.Title)
	}
	for _, c := range children {
		titles = append(titles, c.Intent.Title)
	}
	const most = 10
	if more := len(titles) - most; more > 0 {
		titles = append(titles[:most], fmt.Sprintf("... and %d more", more))
	}
	return strings.Join(titles, "\n")
}
