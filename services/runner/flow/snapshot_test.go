package flow_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
)

// TestSnapshots plays every script once more. Before every event the project is
// written out and read back; the copy decides, and has to decide as the original.
func TestSnapshots(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		t.Helper()
		s := newScript()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			s.restore = t
			s.out.Reset()
			s.play(t, d)
			return s.out.String()
		})
	})
}

// stepProject has the project decide on an event. With restore, a copy of it does.
func (s *script) stepProject(ev forge.Event) (forge.Effects, forge.Ruling) {
	if s.restore == nil {
		return s.lane.Step(ev)
	}
	again := restored(s.restore, s.lane, ev.To)
	want, wantRuling := s.lane.Step(ev)
	eff, ruling := again.Step(ev)
	if diff := cmp.Diff(want, eff); diff != "" {
		s.restore.Errorf("effects of %+v (-project +restored):\n%s", ev, diff)
	}
	if diff := cmp.Diff(wantRuling, ruling); diff != "" {
		s.restore.Errorf("ruling on %+v (-project +restored):\n%s", ev, diff)
	}
	s.lane = again
	return eff, ruling
}

// restored returns a copy of a project that was made of its snapshot. It has the
// same in force as the project.
func restored(t *testing.T, p *flow.Project, key forge.Key) *flow.Project {
	t.Helper()
	snapshot, err := p.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	again, err := flow.RestoreProject(key, snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.Pending(), again.Pending()); diff != "" {
		t.Errorf("what has to be in force (-project +restored):\n%s", diff)
	}
	if diff := cmp.Diff(p.Summary(), again.Summary()); diff != "" {
		t.Errorf("the summary (-project +restored):\n%s", diff)
	}
	return again
}
