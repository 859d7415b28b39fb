package task_test

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// TestReplace has the numbers of attempts go on over a time in which there is no
// plan, and begin anew by older rules, as in the journals that those have written.
func TestReplace(t *testing.T) {
	for by, want := range map[rules.Version]int{rules.UsedNumbers.Since: 3, rules.UsedNumbers.Since - 1: 1} {
		before := &task.Task{}
		before.ID = "a-001"
		before.Implement.Next()
		before.Implement.Next()
		s := &task.Set{Tasks: []*task.Task{before}}
		s.Replace(by, nil)
		if len(s.Tasks) != 0 {
			t.Fatal("the tasks of a plan that is given up are still there")
		}
		same, other := &task.Task{}, &task.Task{}
		same.ID, other.ID = "a-001", "a-002"
		s.Replace(by, []*task.Task{same, other})
		for _, x := range []struct {
			of   *task.Task
			want int
		}{{same, want}, {other, 1}} {
			x.of.Implement.Next()
			if got := x.of.Implement.Attempt(x.of.ID, forge.StepImplement).Number; got != x.want {
				t.Errorf("by rules %d, the first attempt of %s is number %d, want %d", by, x.of.ID, got, x.want)
			}
		}
	}
}
