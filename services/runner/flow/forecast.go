package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// overlapping is another task whose change does not merge with a task's as they are
// now. The one that came later has found it, and is to see to it; the other one was
// told.
type overlapping struct {
	forge.Overlap
	told bool
}

// forecastKey names what one task tells another.
type forecastKey struct{ from, to forge.TaskID }

// foresee takes what a task's change does not merge with, and tells the others.
func (s *Intent) foresee(t *task, found []forge.Overlap) {
	for _, o := range t.overlaps {
		if !o.told && !slices.ContainsFunc(found, func(f forge.Overlap) bool { return f.TaskID == o.TaskID }) {
			s.tellOther(t, forge.Overlap{TaskID: o.TaskID})
		}
	}
	kept := slices.DeleteFunc(slices.Clone(t.overlaps), func(o overlapping) bool { return !o.told })
	for _, f := range found {
		if f.TaskID == t.ID || len(f.Files) == 0 {
			continue
		}
		same := func(o overlapping) bool { return !o.told && o.TaskID == f.TaskID && slices.Equal(o.Files, f.Files) }
		if !t.overlapsWith(f) {
			s.adjust(ruleOverlap, t.ID, "%s: %s", f.TaskID, strings.Join(f.Files, ", "))
		}
		if !slices.ContainsFunc(t.overlaps, same) {
			s.tellOther(t, f)
		}
		kept = append(kept, overlapping{Overlap: f})
	}
	t.overlaps = kept
}

// tellOther tells another task what was found about it and this one.
func (s *Intent) tellOther(t *task, o forge.Overlap) {
	t.forecasts++
	f := forge.OverlapChanged{TaskID: o.TaskID, Other: forge.Overlap{TaskID: t.ID, Files: o.Files}, Number: t.forecasts}
	if other := s.task(o.TaskID); other != nil {
		other.hear(f.Other)
		return
	}
	to := o.TaskID.Intent()
	if _, err := forge.ParseIntentID(string(to)); err != nil || to == s.key.Intent {
		return
	}
	key := fmt.Sprintf("overlap/%s/%s", t.ID, o.TaskID)
	s.open.tell(&s.eff, key, false, forge.Event{
		ID: fmt.Sprintf("%s/%d", key, f.Number), To: forge.Key{Project: s.key.Project, Intent: to},
		Actor: string(s.key.Intent), Message: &f,
	})
}

// hear notes what another task has found.
func (t *task) hear(o forge.Overlap) {
	t.overlaps = slices.DeleteFunc(slices.Clone(t.overlaps), func(k overlapping) bool { return k.TaskID == o.TaskID && k.told })
	if len(o.Files) > 0 && !t.ended() {
		t.overlaps = append(t.overlaps, overlapping{Overlap: o, told: true})
	}
}

// overlapsWith reports whether it is known that the task does not merge with another.
func (t *task) overlapsWith(o forge.Overlap) bool {
	return slices.ContainsFunc(t.overlaps, func(k overlapping) bool { return k.TaskID == o.TaskID && slices.Equal(k.Files, o.Files) })
}

// forecast takes what a task of another intent has found.
func (s *Intent) forecast(f *forge.OverlapChanged) (forge.Decision, error) {
	t, key := s.task(f.TaskID), forecastKey{from: f.Other.TaskID, to: f.TaskID}
	if t == nil || t.ended() || f.Number <= s.forecasts[key] {
		return ignore("%s and %s are known to be as they are", f.TaskID, f.Other.TaskID)
	}
	s.forecasts = maps.Clone(s.forecasts)
	s.forecasts[key] = f.Number
	known := t.overlapsWith(f.Other)
	t.hear(f.Other)
	if len(f.Other.Files) > 0 && !known {
		s.adjust(ruleOverlap, t.ID, "%s: %s", f.Other.TaskID, strings.Join(f.Other.Files, ", "))
	}
	return forge.Applied, nil
}

// endForecast forgets what a task that ended did not merge with.
func (s *Intent) endForecast(t *task) {
	for _, o := range t.overlaps {
		if !o.told {
			s.tellOther(t, forge.Overlap{TaskID: o.TaskID})
		}
	}
	t.overlaps = nil
}

// foreseen is what a task's next implementation has to know of.
func (t *task) foreseen() []forge.Overlap {
	var list []forge.Overlap
	for _, o := range t.overlaps {
		if !o.told {
			list = append(list, o.Overlap)
		}
	}
	return list
}
