package local

import (
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

// timed is a machine that waits for a timer, and counts as idle all the same.
type timed struct{ at time.Time }

func (timed) Step(rules.Version, forge.Event) (eff forge.Effects, r forge.Ruling) { return eff, r }

func (timed) Rules() rules.Version       { return rules.Newest }
func (m timed) Pending() forge.Effects   { return forge.Effects{Timers: []forge.Timer{{At: m.at}}} }
func (timed) Summary() (s forge.Summary) { return s }
func (timed) Snapshot() ([]byte, error)  { return nil, nil }

// TestDueTimers has a run not end before a timer has fired whose time has come,
// however short it is: a look at a red base branch would never take place
// otherwise, but in a run that is not one-shot.
func TestDueTimers(t *testing.T) {
	now := time.Now()
	all := func(forge.Key) bool { return true }
	for _, test := range []struct {
		name     string
		view     machineView
		concerns func(forge.Key) bool
		want     bool
	}{
		{"later", machineView{machine: timed{now.Add(time.Minute)}}, all, false},
		{"due", machineView{machine: timed{now.Add(-time.Minute)}}, all, true},
		{"of another intent", machineView{machine: timed{now.Add(-time.Minute)}}, func(forge.Key) bool { return false }, false},
		{"of a damaged one", machineView{machine: timed{now.Add(-time.Minute)}, lost: &forge.Summary{}}, all, false},
	} {
		v := newViews()
		v.machines[forge.Key{Project: "shop", Intent: "one"}] = &test.view
		if got := v.due(now, test.concerns); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
