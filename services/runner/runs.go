package runner

import (
	"sync"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
)

// runs remembers the newest run of the intents whose journals this runner lately read or wrote. The
// log names a trace by it, without asking the server for each line. It is safe for concurrent use.
type runs struct {
	mu     sync.Mutex
	newest map[forge.Key]int
}

// note remembers an intent's newest run; 0, before the first one, and projects are none. As many
// are kept as there are cached machines.
func (r *runs) note(key forge.Key, run int) {
	if run == 0 || key.IsProject() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.newest == nil {
		r.newest = map[forge.Key]int{}
	}
	r.newest[key] = run
	for other := range r.newest {
		if len(r.newest) <= cachedMachines {
			return
		}
		if other != key {
			delete(r.newest, other)
		}
	}
}

// trace returns the id of the trace of an intent's newest run; "" if no run is known.
func (r *runs) trace(key forge.Key) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if run := r.newest[key]; run != 0 {
		return telemetry.Run{Key: key, Number: run}.TraceID()
	}
	return ""
}
