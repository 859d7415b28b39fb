package control

import (
	"fmt"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// TestRetriesInParts: of more failures than one command retries, those that
// failed first have their turn, and the next call has the rest.
func TestRetriesInParts(t *testing.T) {
	const more = 3
	begin := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	var list []failed
	for n := range maxRetries + more { // the newest first
		list = append(list, failed{ID: forge.IntentID(fmt.Sprintf("i%03d", n)), At: begin.Add(-time.Duration(n) * time.Minute)})
	}
	first, left := oldest(list)
	if left != more || len(first) != maxRetries || first[0].ID != "i202" || first[maxRetries-1].ID != "i003" {
		t.Errorf("%d intents from %s to %s, %d left", len(first), first[0].ID, first[len(first)-1].ID, left)
	}
	for i := range list { // a run of them all that failed at the same time
		list[i].At = begin
	}
	first, left = oldest(list)
	for i := range first { // which fail again at once
		first[i].At = begin.Add(time.Hour)
	}
	again, _ := oldest(append(first, list[maxRetries:]...))
	if left != more || first[0].ID != "i000" || again[0].ID != "i200" || again[more-1].ID != "i202" {
		t.Errorf("%d left, first %s, then %s to %s", left, first[0].ID, again[0].ID, again[more-1].ID)
	}
	if first, left = oldest(list[:2]); len(first) != 2 || left != 0 {
		t.Errorf("of two: %v, %d left", first, left)
	}
}
