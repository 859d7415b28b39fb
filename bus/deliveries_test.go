package bus_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestDeliveriesAreStoredOnce: a delivery is there once, as it came, also after
// a restart of the server; one of another hook with the same id is another one.
func TestDeliveriesAreStoredOnce(t *testing.T) {
	t.Parallel()
	srv := bustest.StartServer(t)
	b, ctx := srv.Connect(t), wait.Context(t)
	store := func(hook, id string) bool {
		t.Helper()
		known, err := b.Deliveries.Store(ctx, deliveries.Delivery{
			Hook: hook, ID: id, Event: "issues", ContentType: "application/json", Body: []byte("{\"x\":\n\x00\xff}"),
		})
		if err != nil {
			t.Fatal(err)
		}
		return known
	}
	if store("work", "1") || !store("work", "1") || store("other", "1") || store("work", "2") {
		t.Error("a delivery is known before it was stored, or not after that")
	}
	srv.Restart(t)
	if !store("work", "2") {
		t.Error("a delivery is not known after a restart")
	}
	var all []string
	last, err := b.Deliveries.After(ctx, 1, func(d deliveries.Delivery) error {
		all = append(all, fmt.Sprintf("%s %s %s %s %q", d.Hook, d.ID, d.Event, d.ContentType, d.Body))
		return nil
	})
	want := []string{`other 1 issues application/json "{\"x\":\n\x00\xff}"`, `work 2 issues application/json "{\"x\":\n\x00\xff}"`}
	if fmt.Sprint(all) != fmt.Sprint(want) || last != 3 || err != nil {
		t.Errorf("after the first one there are %q up to %d, %v", all, last, err)
	}
}

// TestDeliveriesThatAreRefused: no text of a sender becomes a header or a token.
func TestDeliveriesThatAreRefused(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	for what, d := range map[string]deliveries.Delivery{
		"a hook with a dot":     {Hook: "a.b", ID: "1"},
		"no hook":               {ID: "1"},
		"no id":                 {Hook: "work"},
		"an id of two lines":    {Hook: "work", ID: "1\r\nNats-Rollup: all"},
		"an event of two lines": {Hook: "work", ID: "1", Event: "x\ny"},
		"a long type":           {Hook: "work", ID: "1", ContentType: strings.Repeat("x", 201)},
		"a body of 9 MiB":       {Hook: "work", ID: "1", Body: make([]byte, 9<<20)},
	} {
		if _, err := b.Deliveries.Store(wait.Context(t), d); err == nil {
			t.Errorf("%s is stored", what)
		}
	}
}

func TestDeliveriesAreHeardOf(t *testing.T) {
	t.Parallel()
	srv := bustest.StartServer(t)
	a, b, ctx := srv.Connect(t), srv.Connect(t), wait.Context(t)
	heard := make(chan struct{}, 1)
	if err := a.Deliveries.OnDelivery(ctx, func() { heard <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Deliveries.Store(ctx, deliveries.Delivery{Hook: "work", ID: "1"}); err != nil {
		t.Fatal(err)
	}
	wait.For(t, heard)
}
