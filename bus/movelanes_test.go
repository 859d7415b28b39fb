package bus_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestLanesOfEarlierVersion checks that the journals of lanes which an earlier version
// kept among the intents' are moved as they are, by several runners at once, and also
// when that was begun before.
func TestLanesOfEarlierVersion(t *testing.T) {
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	js := jetStream(t, raw(t, s))
	shop, bank := forge.Key{Project: "shop"}, forge.Key{Project: "bank"}
	last := map[forge.Key]uint64{}
	for n := range 7 {
		for _, k := range []forge.Key{shop, bank, key} {
			seq, err := b.Append(ctx, k, last[k], record(k, n))
			if err != nil {
				t.Fatal(err)
			}
			last[k] = seq
		}
	}
	want, _, err := b.Load(ctx, shop)
	if err != nil {
		t.Fatal(err)
	}
	// As it was before: everything in one stream, and a move that was cut off.
	lanes, err := js.Stream(ctx, "FORGE_LANES")
	if err != nil {
		t.Fatal(err)
	}
	var old []*jetstream.RawStreamMsg
	for seq := uint64(1); seq <= 14; seq++ {
		m, err := lanes.GetMsg(ctx, seq)
		if err != nil {
			t.Fatal(err)
		}
		old = append(old, m)
	}
	declared := configs(t, js)
	if err := js.DeleteStream(ctx, "FORGE_LANES"); err != nil {
		t.Fatal(err)
	}
	earlier := declared["FORGE_JOURNAL"]
	earlier.Subjects = []string{"forge.journal.*.*", "forge.lane.*"}
	if _, err := js.UpdateStream(ctx, earlier); err != nil {
		t.Fatal(err)
	}
	putAll(t, js, old)
	if _, err := js.UpdateStream(ctx, declared["FORGE_JOURNAL"]); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(ctx, declared["FORGE_LANES"]); err != nil {
		t.Fatal(err)
	}
	putAll(t, js, old[:5])
	var group sync.WaitGroup
	for range 3 {
		conn := s.Connect(t)
		group.Go(func() {
			if err := conn.Ensure(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, k := range []forge.Key{shop, bank} {
		got, seq, err := b.Load(ctx, k)
		if err != nil || len(got) != 7 || fmt.Sprint(got[6].Summary.UpdatedAt) != fmt.Sprint(want[6].Summary.UpdatedAt) {
			t.Errorf("%s has %d records, %v", k, len(got), err)
		}
		if _, err := b.Append(ctx, k, seq, record(k, 7)); err != nil {
			t.Errorf("%s does not go on: %v", k, err)
		}
	}
	if got, seq, err := b.Load(ctx, key); err != nil || len(got) != 7 || seq != last[key] {
		t.Errorf("the intent has %d records up to %d, %v", len(got), seq, err)
	}
	stream, err := js.Stream(ctx, "FORGE_JOURNAL")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := stream.Info(ctx, jetstream.WithSubjectFilter(">")); err != nil || len(info.State.Subjects) != 1 {
		t.Errorf("the intents' stream holds %v, %v", info.State.Subjects, err)
	}
}

func putAll(t testing.TB, js jetstream.JetStream, list []*jetstream.RawStreamMsg) {
	t.Helper()
	for _, m := range list {
		if _, err := js.Publish(wait.Context(t), m.Subject, m.Data); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoRunnerYet checks that there is nothing to list where no runner has been.
func TestNoRunnerYet(t *testing.T) {
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	js := jetStream(t, raw(t, s))
	for name := range configs(t, js) {
		if err := js.DeleteStream(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	for what, list := range map[string]func(context.Context, forge.ProjectID) ([]forge.Summary, error){"intents": b.Summaries, "lanes": b.LaneSummaries} {
		if got, err := list(ctx, ""); err != nil || len(got) != 0 {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
}
