package runner_test

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// What follows is in docs/guide-systems.md, word for word.

// askForChange stores a submission and returns once it is durable.
func askForChange(ctx context.Context, nc *nats.Conn, finding string) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	data, err := json.Marshal(map[string]any{
		"title":  "Update the formatter",
		"body":   "It drops the last line of a file without a newline.",
		"risk":   "low",
		"origin": map[string]string{"system": "scanner", "event_id": finding},
	})
	if err != nil {
		return err
	}
	_, err = js.Publish(ctx, "forge.intent.shop.from.scanner.submit", data)
	return err // try again as often as you like: it is one intent
}

// followChanges calls do with every change of the project's intents until ctx ends.
func followChanges(ctx context.Context, nc *nats.Conn, do func(what string, event []byte) error) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	cons, err := js.Consumer(ctx, "FORGE_EVENTS", "tracker")
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		batch, err := cons.Fetch(100, jetstream.FetchContext(ctx))
		if err != nil {
			return err
		}
		for m := range batch.Messages() {
			tokens := strings.Split(m.Subject(), ".")
			if err := do(tokens[len(tokens)-1], m.Data()); err != nil {
				return err // not acknowledged: it comes again
			}
			if err := m.Ack(); err != nil {
				return err
			}
		}
	}
	return nil
}
