package obstacle

import (
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// lacking records the report of an intent that no replica can do a step of it, or that
// none of its steps waits for that any more. No step is held for it: what a replica lacks
// differs from step to step, and the replicas have them all. So it is for people alone.
func (s *State) lacking(id forge.IntentID, m *forge.ObstacleReported, now time.Time) {
	waits := m.Failure.Reason == forge.FailReplica
	if waits && s.find(forge.AnyReplica) == nil {
		s.Closed = append(slices.Clip(s.Closed), closed(forge.AnyReplica, &m.Failure, now))
	}
	switch known := slices.Contains(s.Lacks, id); {
	case waits && !known:
		s.Lacks = append(slices.Clip(s.Lacks), id)
	case !waits:
		s.found(id)
	}
}

// found forgets an intent that does not wait for a replica any more, and the
// fact with the last of them.
func (s *State) found(id forge.IntentID) {
	s.Lacks = slices.DeleteFunc(slices.Clone(s.Lacks), func(l forge.IntentID) bool { return l == id })
	if len(s.Lacks) == 0 {
		s.Closed = slices.DeleteFunc(slices.Clone(s.Closed), func(c forge.Obstacle) bool { return c.Agent == forge.AnyReplica })
	}
}

// Lacking returns the report of an intent to its project when the first of its steps has
// waited for long for a replica that can do it, and when none does any more; nil if the
// project was told. waits counts the answers that none can, with why; 0: nothing waits.
// It is told once more by a later answer if a person has had the project forget it.
func (k *Known) Lacking(run, waits int, why string, now time.Time) *forge.ObstacleReported {
	news := (waits > 0) != (k.Lacks > 0) || waits > k.Lacks && k.Find(forge.AnyReplica, now) == nil
	if !k.Keeps || !news {
		return nil
	}
	k.Lacks = waits
	k.Reports++
	m := &forge.ObstacleReported{Run: run, Number: k.Reports, Seen: k.Number, Agent: forge.AnyReplica}
	if waits > 0 {
		m.Failure = forge.Failure{Reason: forge.FailReplica, Message: why}
	}
	return m
}
