package flow

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/projects"
)

// TestRestoredProject tells a project anything in any order, as FuzzTotal does. Before
// every event it is written out and read back; the copy decides as the original.
func TestRestoredProject(t *testing.T) {
	for seed := range uint64(testsize.Of(3, 15)) {
		rng := rand.New(rand.NewPCG(seed, 2))
		key := forge.Key{Project: "p", Intent: "a"}
		s, p := NewIntent(key), projects.New(key.ProjectKey())
		for i := range 200 {
			ev := anyEvent(rng, s, p)
			ev.ID, ev.To, ev.At = fmt.Sprint(i), key.ProjectKey(), time.Unix(int64(i)*3600, 0).UTC()
			ev.Actor = string(rune('a' + rng.IntN(3)))
			snapshot, err := p.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			again, err := projects.Restore(key.ProjectKey(), snapshot)
			if err != nil {
				t.Fatal(err)
			}
			want, wantRuling := p.Step(rules.Newest, ev)
			got, ruling := again.Step(rules.Newest, ev)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d, effects of event %d, %+v (-project +restored):\n%s", seed, i, ev, diff)
			}
			if diff := cmp.Diff(wantRuling, ruling); diff != "" {
				t.Fatalf("seed %d, ruling on event %d, %+v (-project +restored):\n%s", seed, i, ev, diff)
			}
			if diff := cmp.Diff(p.Pending(), again.Pending(), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d, pending after event %d, %+v (-project +restored):\n%s", seed, i, ev, diff)
			}
			p = again
		}
	}
}

// TestRestoredIntent tells an intent anything in any order. Before every event it is
// written out and read back; the copy decides as the original.
func TestRestoredIntent(t *testing.T) {
	for seed := range uint64(testsize.Of(3, 15)) {
		rng := rand.New(rand.NewPCG(seed, 3))
		key := forge.Key{Project: "p", Intent: "a"}
		s, p := NewIntent(key), projects.New(key.ProjectKey())
		for i := range 200 {
			ev := anyEvent(rng, s, p)
			ev.ID, ev.To, ev.At = fmt.Sprint(i), key, time.Unix(int64(i), 0).UTC()
			snapshot, err := s.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			again, err := RestoreIntent(key, snapshot)
			if err != nil {
				t.Fatal(err)
			}
			want, wantRuling := s.Step(rules.Newest, ev)
			got, ruling := again.Step(rules.Newest, ev)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d, effects of event %d, %+v (-intent +restored):\n%s", seed, i, ev, diff)
			}
			if diff := cmp.Diff(wantRuling, ruling); diff != "" {
				t.Fatalf("seed %d, ruling on event %d, %+v (-intent +restored):\n%s", seed, i, ev, diff)
			}
			if diff := cmp.Diff(s.View(), again.View(), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d, view after event %d, %+v (-intent +restored):\n%s", seed, i, ev, diff)
			}
			s = again
		}
	}
}
