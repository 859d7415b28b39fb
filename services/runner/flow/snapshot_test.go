package flow_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/projects"
)

// TestSnapshots plays testdata/scripts with machines that are written out and read
// back after every event: they show the same, have the same in force, and go on in the
// same way.
func TestSnapshots(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		t.Helper()
		s := newScript()
		s.after = func(to forge.Key) {
			if to.IsProject() {
				s.project = copyOfProject(t, to, s.project)
				return
			}
			s.intents[to.Intent] = copyOf(t, to, s.intents[to.Intent])
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			s.out.Reset()
			s.play(t, d)
			if d.Rewrite {
				return d.Expected // TestScripts rewrites
			}
			return s.out.String()
		})
	})
}

// copyOf returns an intent as its snapshot has it.
func copyOf(t *testing.T, key forge.Key, m *flow.Intent) *flow.Intent {
	t.Helper()
	data, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	next, err := flow.RestoreIntent(key, data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m.View(), next.View()); diff != "" {
		t.Fatalf("the copy of %s shows something else: %s", key, diff)
	}
	if diff := cmp.Diff(m.Pending(), next.Pending()); diff != "" {
		t.Fatalf("the copy of %s has something else in force: %s", key, diff)
	}
	return next
}

// copyOfProject returns a project as its snapshot has it.
func copyOfProject(t *testing.T, key forge.Key, m *projects.Project) *projects.Project {
	t.Helper()
	data, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	next, err := projects.Restore(key, data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m.Summary(), next.Summary()); diff != "" {
		t.Fatalf("the copy of %s shows something else: %s", key, diff)
	}
	if diff := cmp.Diff(m.Pending(), next.Pending()); diff != "" {
		t.Fatalf("the copy of %s has something else in force: %s", key, diff)
	}
	return next
}
