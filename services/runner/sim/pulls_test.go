package sim

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// TestPullRequestWorlds makes sure that the worlds whose changes are merged by pull
// requests have what they are for: changes that are made again for people and for
// checks, pull requests that are closed and edited, remarks to answer, a merge queue
// that takes changes out for each cause, and merges by the forge and by people.
func TestPullRequestWorlds(t *testing.T) {
	told := map[forge.MergeOutcome]int{}
	worlds, byForge, queued, answers := 0, 0, map[string]int{}, 0
	for seed := uint64(3); seed < 16*60; seed += 16 {
		w := newWorld(seed)
		w.populate()
		if err := w.play(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		worlds++
		for _, key := range w.keys {
			for _, rec := range w.journal[key] {
				for _, c := range rec.Effects.Commands {
					if c.Attempt.Step == forge.StepMergePull {
						byForge++
					}
					answers += len(c.Pull().Answers)
				}
				for _, ev := range rec.Events {
					if r := forge.As[*forge.Result](ev.Message); r != nil {
						if p := forge.As[*forge.PullRequest](r.Output); p != nil && p.Queue != nil {
							queued[p.Queue.Cause]++
						}
					}
				}
				for _, ev := range rec.Effects.Outbox {
					if m := forge.As[*forge.MergeEnded](ev.Message); m != nil && m.Result != nil {
						told[m.Result.Outcome]++
					}
				}
			}
		}
	}
	for _, o := range []forge.MergeOutcome{
		forge.MergeDone, forge.MergeUnwanted, forge.MergeChecksFailed, forge.MergeClosed, forge.MergeEdited, forge.MergeProposed,
	} {
		if told[o] < worlds/10 {
			t.Errorf("in %d worlds tasks were told %q %d times", worlds, o, told[o])
		}
	}
	for _, cause := range []string{"", "checks", "conflict", "other"} {
		if queued[cause] < worlds/20 { // one world of four has one
			t.Errorf("in %d worlds a look showed the merge queue %d times with the cause %q", worlds, queued[cause], cause)
		}
	}
	if answers < worlds/10 {
		t.Errorf("in %d worlds %d remarks were to be answered", worlds, answers)
	}
	if byForge < worlds {
		t.Errorf("in %d worlds the forge was asked to merge %d times", worlds, byForge)
	}
}
