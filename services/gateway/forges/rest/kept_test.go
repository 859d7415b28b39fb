package rest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestKeptIsBounded: each sweep asks for what is new since another time, so by
// another address. Answers with nothing in them are bounded as well.
func TestKeptIsBounded(t *testing.T) {
	t.Parallel()
	var s store
	header := http.Header{"Etag": {`"x"`}, "Link": {strings.Repeat("x", 1000)}}
	for n := range 50_000 {
		s.put(fmt.Sprintf("/issues?since=%d", n), &answer{header: header, body: []byte("[]")})
	}
	if most := maxKept / 1000; len(s.by) > most {
		t.Errorf("%d answers are kept, want %d at most", len(s.by), most)
	}
	if s.get("/issues?since=49999") == nil {
		t.Error("the last one is not kept")
	}
	counted := s.bytes
	for range 3 {
		s.put("/issues?since=49999", &answer{header: header, body: []byte("[]")})
	}
	if s.bytes != counted {
		t.Errorf("an answer in the place of the same one counts as %d bytes more", s.bytes-counted)
	}
}
