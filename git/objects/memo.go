package objects

import (
	"sync"

	"github.com/pfl-forge/pfl-forge/git"
)

// memo remembers results about pairs of trees or commits. Names of objects are hashes of
// their content, so a result about a pair stays true. The zero value is ready to use, by
// several goroutines.
type memo[V any] struct {
	mu    sync.Mutex
	known map[[2]git.OID]V
}

// memoSize bounds the pairs of a memo. A change asks about few pairs, and again soon.
const memoSize = 256

func (m *memo[V]) get(a, b git.OID) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.known[[2]git.OID{a, b}]
	return v, ok
}

// put adds a pair. A memo that is full forgets all others.
func (m *memo[V]) put(a, b git.OID, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= memoSize {
		m.known = map[[2]git.OID]V{}
	}
	m.known[[2]git.OID{a, b}] = v
}
