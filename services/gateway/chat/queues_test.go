package chat

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// person is a chat in which every delivery is an act of an account; it can do nothing else.
type person struct {
	Interactive

	act Act
}

func (p person) Read(d *deliveries.Delivery) (*Act, error) {
	if d.Event != "act" {
		return nil, errors.New("it cannot be read")
	}
	return &p.act, nil
}

// TestActsThatWaitAreBounded: what waits to be decided is bounded by its bytes as well as by its
// number, and what strangers send takes no room from people.
func TestActsThatWaitAreBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(file, []byte("tokens:\n  ada: {accounts: {work: U1}, person: ada, projects: {shop: [approver]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	book, err := tokens.Open(file, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	d := newDecider(&Config{Name: "work", Team: "T1", Log: slog.New(slog.DiscardHandler), Tokens: book, Now: time.Now},
		person{act: Act{Team: "T1", Home: "T1", Account: "U1"}}, nil, nil)
	held := func(stranger bool) (size int) {
		for _, what := range d.queue(stranger) {
			size += len(d.open[what].Body)
		}
		return size
	}
	send := func(event string, n, size int) {
		for i := range n {
			d.add(t.Context(), deliveries.Delivery{Hook: "presses", ID: fmt.Sprintf("%s %d %d", event, size, i), Event: event, Body: make([]byte, size)})
		}
	}
	send("stranger", 100, hooks.MaxBody)
	send("act", 100, hooks.MaxBody)
	if people, strangers := len(d.queue(false)), len(d.queue(true)); people != maxBytes/hooks.MaxBody || strangers > maxStrangers {
		t.Errorf("%d acts of people and %d of strangers wait, with %d and %d bytes", people, strangers, held(false), held(true))
	}
	if held(false) > maxBytes || held(true) > maxBytes {
		t.Errorf("%d and %d bytes wait", held(false), held(true))
	}
	clear(d.open)
	send("act", 2*maxOpen, 100)
	if n := len(d.queue(false)); n != maxOpen {
		t.Errorf("%d small acts wait", n)
	}
}
