package agent

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Bounds of one analysis.
const (
	maxTasks = 1000
	maxTitle = 200 // characters; a title becomes the subject of a commit
)

// taskPlans checks and converts the planned tasks. A task without a name is numbered.
func taskPlans(plans []Plan) ([]forge.TaskPlan, error) {
	if len(plans) > maxTasks {
		return nil, invalid("has %d tasks; at most %d are allowed", len(plans), maxTasks)
	}
	var out []forge.TaskPlan
	index := map[string]int{}
	for i, p := range plans {
		if p.Name == "" {
			p.Name = fmt.Sprintf("task-%d", i+1)
		}
		if _, twice := index[p.Name]; twice {
			return nil, invalid("two tasks are named %q", p.Name)
		}
		if p.Title = term.Short(p.Title, maxTitle); p.Title == "" {
			return nil, invalid("tasks[%d].title is empty", i)
		}
		switch forge.Complexity(p.Complexity) {
		case "", forge.ComplexityLow, forge.ComplexityMed, forge.ComplexityHigh:
		default:
			return nil, invalid("tasks[%d].complexity is %q; must be low, med or high", i, p.Complexity)
		}
		needs, err := requirements(fmt.Sprintf("tasks[%d]", i), p.Requirements)
		if err != nil {
			return nil, err
		}
		index[p.Name] = i
		out = append(out, forge.TaskPlan{
			Name: p.Name, Title: p.Title, Plan: p.Plan, RelevantFiles: p.RelevantFiles, Steps: p.Steps,
			Context: p.Context, Complexity: forge.Complexity(p.Complexity), DependsOn: p.DependsOn, Item: p.Item,
			Requirements: needs,
		})
	}
	nodes := make([]node, len(out))
	for i, p := range out {
		nodes[i] = node{p.Name, p.DependsOn}
	}
	return out, dependencies("task", nodes, index)
}

// node is a task or child in the graph of dependencies.
type node struct {
	name      string
	dependsOn []string
}

// dependencies refuses unknown names and cycles. what names the kind of node, for the
// error; index maps names to positions in nodes.
func dependencies(what string, nodes []node, index map[string]int) error {
	waits := make([]int, len(nodes))
	dependents := make([][]int, len(nodes))
	for i, n := range nodes {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(n.dependsOn))) {
			on, ok := index[name]
			if !ok {
				return invalid("%s %q depends on %q, which is no %s of this answer", what, n.name, name, what)
			}
			waits[i]++
			dependents[on] = append(dependents[on], i)
		}
	}
	var ready []int
	for i, n := range waits {
		if n == 0 {
			ready = append(ready, i)
		}
	}
	started := 0
	for ; len(ready) > 0; started++ {
		i := ready[0]
		ready = ready[1:]
		for _, d := range dependents[i] {
			if waits[d]--; waits[d] == 0 {
				ready = append(ready, d)
			}
		}
	}
	if started < len(nodes) {
		return invalid("the depends_on of each %s form a circle", what)
	}
	return nil
}
