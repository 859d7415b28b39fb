package turns

import (
	"context"
	"errors"
	"sync"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
)

// TestTurns: one has the turn of an intent at a time, those of other intents do
// not wait, and who gives up leaves nothing behind.
func TestTurns(t *testing.T) {
	turns, key := New(), forge.Key{Project: "shop", Intent: "one"}
	count, inside := 0, 0
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			release, err := turns.Take(t.Context(), key)
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			if inside++; inside != 1 {
				t.Error("two have the turn")
			}
			count++
			inside--
		})
	}
	all.Wait()
	release, err := turns.Take(t.Context(), key)
	if err != nil || count != 50 {
		t.Fatal(count, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := turns.Take(over, key); !errors.Is(err, ErrBusy) {
		t.Errorf("who gives up: %v", err)
	}
	other, err := turns.Take(t.Context(), forge.Key{Project: "shop", Intent: "two"})
	if err != nil {
		t.Fatal(err)
	}
	other()
	release()
	if len(turns.each) > 0 {
		t.Errorf("%d are kept", len(turns.each))
	}
}
