package sim

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

var (
	seeds  = flag.Int("seeds", testsize.Of(100, 2000), "how many seeds to run")
	first  = flag.Uint64("first", 1, "the first seed")
	one    = flag.Uint64("seed", 0, "run only this seed and print what happens")
	enough = flag.Int("enough", 3, "after how many failing seeds to stop")
)

// TestThousand plays few seeds with a thousand intents each, or quickly one with a
// hundred: none is forgotten, and what happens grows with their number alone.
func TestThousand(t *testing.T) {
	intents := testsize.Of(100, 1000)
	for seed := range uint64(testsize.Of(1, 2)) {
		w := newWorld(seed)
		w.populate()
		w.people.ids = nil
		for i := range intents {
			w.people.ids = append(w.people.ids, forge.IntentID(fmt.Sprintf("i%d", i)))
		}
		w.money.budget = forge.Budget{}
		w.runners, w.down = w.runners[:1], w.down[:1]
		for i := range 300 {
			w.repo.Files = append(w.repo.Files, fmt.Sprintf("g%d", i))
		}
		w.bound, w.deep = 400*intents, true
		if err := w.play(); err != nil {
			t.Fatalf("seed %d: %.2000s", seed, err)
		}
		t.Logf("seed %d: %d intents in %d actions", seed, len((checker{w}).intents()), w.steps)
	}
}

// TestSeeds plays many seeds. A failing one is played again with:
//
//	go test ./services/runner/sim -run TestSeeds -seed N
func TestSeeds(t *testing.T) {
	if *one != 0 {
		if f := Run(*one, true); f != nil {
			t.Fatalf("%v\n%s", f, strings.Join(f.Trace, "\n"))
		}
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(5000)) // worlds are small and short-lived
	var next atomic.Uint64
	next.Store(*first)
	end := *first + uint64(*seeds)
	var failed atomic.Int32
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := next.Add(1) - 1; seed < end && int(failed.Load()) < *enough; seed = next.Add(1) - 1 {
				if f := Run(seed, false); f != nil {
					failed.Add(1)
					t.Errorf("%v\nreplay: go test ./services/runner/sim -run TestSeeds -seed %d", f, seed)
				}
			}
		})
	}
	wg.Wait()
}

// TestBusyBase makes sure that the worlds with a busy base branch have what they are for: changes
// that are overtaken more often than anything is tried that fails, and that are merged in the end.
func TestBusyBase(t *testing.T) {
	worlds, long := 0, 0
	for seed := uint64(10); seed <= 320; seed += 16 {
		w := newWorld(seed)
		w.populate()
		if err := w.play(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		worlds++
		if w.origin.Turns.Most >= 8 {
			long++
		}
	}
	if worlds < 10 || long < worlds/2 {
		t.Errorf("%d of %d busy worlds have changes that were overtaken 8 times; want half of them", long, worlds)
	}
}

// TestLongTrains makes sure that the crowded worlds have what they are for: changes that are
// tried on top of three others and more. The rules about trains are seldom reached otherwise.
func TestLongTrains(t *testing.T) {
	worlds, long := 0, 0
	for seed := uint64(1); seed <= 320; seed++ {
		w := newWorld(seed)
		w.populate()
		if !w.workers.train.crowded {
			continue
		}
		if err := w.play(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		worlds++
		if w.workers.train.Longest >= 3 {
			long++
		}
	}
	if worlds < 10 || long < worlds/2 {
		t.Errorf("%d of %d crowded worlds have long trains; want half of them", long, worlds)
	}
}
