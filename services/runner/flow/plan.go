package flow

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// plan gives an analysis's tasks their ids, and refuses dependencies that
// cannot be met.
func plan(intent forge.IntentID, plans []forge.TaskPlan) ([]*task, error) {
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
	tasks := make([]*task, 0, len(plans))
	for i, p := range plans {
		t := &task{stage: stagePending, Task: forge.Task{
			ID: forge.NewTaskID(intent, i+1), IntentID: intent, Title: p.Title, Plan: p.Plan,
			RelevantFiles: p.RelevantFiles, Steps: p.Steps, Context: p.Context, Complexity: p.Complexity,
			Status: forge.TaskPending, Name: p.Name, Item: p.Item, Write: p.Write,
		}}
		for _, d := range p.DependsOn {
			id, ok := ids[d]
			if !ok {
				return nil, fmt.Errorf("task %q depends on %q, which is no task of this plan", p.Title, d)
			}
			t.DependsOn = append(t.DependsOn, id)
		}
		tasks = append(tasks, t)
	}
	return tasks, acyclic(tasks)
}

// acyclic reports tasks that wait for each other.
func acyclic(tasks []*task) error {
	done := make(map[forge.TaskID]bool, len(tasks))
	for len(done) < len(tasks) {
		before := len(done)
		for _, t := range tasks {
			if !slices.ContainsFunc(t.DependsOn, func(d forge.TaskID) bool { return !done[d] }) {
				done[t.ID] = true
			}
		}
		if len(done) == before {
			var stuck []string
			for _, t := range tasks {
				if !done[t.ID] {
					stuck = append(stuck, string(t.ID))
				}
			}
			return fmt.Errorf("these tasks wait for each other: %s", strings.Join(stuck, ", "))
		}
	}
	return nil
}

// hashPlan names a plan, so that an approval is of exactly that plan.
func hashPlan(in forge.Intent, tasks []*task, parts []*part) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q\n", in.Title, in.Body, in.Risk)
	for _, t := range tasks {
		fmt.Fprintf(h, "%q %q %q %q %q %q %q\n", t.ID, t.Title, t.Plan, t.RelevantFiles, t.Steps, t.DependsOn, t.Item)
		if len(t.Criteria) > 0 {
			fmt.Fprintf(h, "%q\n", t.Criteria)
		}
		if t.Write != nil {
			fmt.Fprintf(h, "%q\n", *t.Write)
		}
	}
	for _, p := range parts {
		fmt.Fprintf(h, "%q %q %q %q %q\n", p.intent.ID, p.intent.Title, p.intent.Body, p.intent.Risk, p.intent.DependsOn)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

func (s *Intent) planSummary() string {
	titles := make([]string, 0, len(s.tasks)+len(s.parts))
	for _, t := range s.tasks {
		titles = append(titles, t.Title)
	}
	for _, p := range s.parts {
		titles = append(titles, p.intent.Title)
	}
	const most = 10
	if more := len(titles) - most; more > 0 {
		titles = append(titles[:most], fmt.Sprintf("... and %d more", more))
	}
	return strings.Join(titles, "\n")
}

func joinIDs(ids []forge.IntentID, sep string) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = string(id)
	}
	return strings.Join(list, sep)
}
