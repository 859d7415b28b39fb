package rest

import "sync"

// maxKept bounds the bytes of the answers that are kept, with their headers and
// addresses: whoever asks for what is new since some time asks by another
// address each time, and mostly gets nothing but headers.
const maxKept = 16 << 20

// perKept is about what an answer takes besides its texts, in bytes.
const perKept = 500

// store has answers with an ETag, by their address. The forge says of each whether it still
// is so: nothing in here is believed without asking. The zero value is empty.
type store struct {
	mu    sync.Mutex
	by    map[string]*answer
	bytes int
}

// get returns the answer that is kept for an address; nil if there is none.
func (s *store) get(address string) *answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[address]
}

// put keeps an answer. Where there is no room, all others are forgotten: what is looked at
// often is there again with the next look.
func (s *store) put(address string, a *answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.by[address]; old != nil {
		s.bytes -= sizeOf(address, old)
	}
	size := sizeOf(address, a)
	if s.bytes+size > maxKept || s.by == nil {
		s.by, s.bytes = map[string]*answer{}, 0
	}
	if size <= maxKept {
		s.by[address] = a
		s.bytes += size
	}
}

// sizeOf returns about how many bytes an answer takes that is kept.
func sizeOf(address string, a *answer) int {
	n := perKept + len(address) + len(a.body)
	for name, values := range a.header {
		n += len(name)
		for _, value := range values {
			n += len(value)
		}
	}
	return n
}
