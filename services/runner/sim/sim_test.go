package sim

import (
	"flag"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	seeds = flag.Int("seeds", 2000, "how many seeds to run")
	first = flag.Uint64("first", 1, "the first seed")
	one   = flag.Uint64("seed", 0, "run only this seed and print what happens")
)

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
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // worlds are small and short-lived
	var next atomic.Uint64
	next.Store(*first)
	end := *first + uint64(*seeds)
	var failed atomic.Int32
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := next.Add(1) - 1; seed < end && failed.Load() < 3; seed = next.Add(1) - 1 {
				if f := Run(seed, false); f != nil {
					failed.Add(1)
					t.Errorf("%v\nreplay: go test ./services/runner/sim -run TestSeeds -seed %d", f, seed)
				}
			}
		})
	}
	wg.Wait()
}
