package bus_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/bustest"
)

// TestGivenUp checks that what the server gives up, whoever consumed it, is
// among the dead letters.
func TestGivenUp(t *testing.T) {
	ctx := within(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	if err := b.PublishResult(ctx, result(1, "a")); err != nil {
		t.Fatal(err)
	}
	cons, err := jetStream(t, raw(t, s)).CreateConsumer(ctx, "FORGE_RESULTS", jetstream.ConsumerConfig{
		Durable: "other", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 10 * time.Millisecond, MaxDeliver: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	for {
		batch, err := cons.Fetch(1, jetstream.FetchMaxWait(20*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		for range batch.Messages() { // and nobody acknowledges
		}
		dead, err := b.Dead(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(dead) == 0 {
			continue
		}
		if d := dead[0]; d.Stream != "FORGE_RESULTS" || d.Seq != 1 || !strings.Contains(d.Reason, "given up after 2 deliveries") {
			t.Errorf("dead letter %+v", d)
		}
		return
	}
}
