package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestEachWhileWritten: what is written while the journals are read does not
// look like a manipulation.
func TestEachWhileWritten(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	s := bustest.StartServer(t)
	b := s.Connect(t)
	chained(t, s, b)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		heads := map[forge.Key]chain.Head{}
		for n := 0; ctx.Err() == nil; n++ {
			from, to := key, key.ProjectKey()
			if n%2 == 1 {
				from, to = to, from
			}
			for _, k := range []forge.Key{from, to} {
				if _, ok := heads[k]; !ok {
					heads[k], _ = b.Journal.Last(ctx, k)
				}
			}
			head := heads[from]
			ref, err := chain.NewRef(from, &head)
			if err != nil {
				t.Error(err)
				return
			}
			rec := record(to, n)
			rec.Events[0].Anchor = ref.String()
			if heads[to], err = b.Journal.Append(ctx, to, heads[to], rec); err != nil {
				return
			}
		}
	}()
	reader := s.Connect(t)
	for range 20 {
		if found := audit(t, reader, forge.Key{}, nil).Findings(); len(found) != 0 {
			t.Errorf("found %+v", found)
			break
		}
	}
	stop()
	<-ended
}

// TestFollowTellsBreaks: who follows journals is told of a break before the record there, once.
func TestFollowTellsBreaks(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	a := chained(t, s, b)
	list := a.read(keyJournal)
	a.rewrite(keyJournal, append(list[:2:2], list[3:]...))
	enough := errors.New("enough")
	var told []string
	err := b.Journal.Follow(wait.Context(t), key.Project, 0, journal.Follower{
		Record: func(k forge.Key, _ uint64, rec forge.Record) error {
			told = append(told, fmt.Sprint(k.Intent, " ", rec.Events[0].ID))
			return nil
		},
		Broken: func(k forge.Key, _ chain.Break) {
			told = append(told, fmt.Sprint(k.Intent, " broken"))
		},
		CaughtUp: func() error { return enough },
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	got, want := strings.Join(told, "\n"), "fix-login broken\nfix-login shop/fix-login-11\n"
	if strings.Count(got, "broken") != 1 || !strings.Contains(got, want) {
		t.Errorf("it was told\n%s\nwant in it\n%s", got, want)
	}
}

// TestReaderVerifies: a person's right to read is enough to verify, and a break
// neither stops a reader nor is lost on it.
func TestReaderVerifies(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := guardedServer(t)
	runner := connectAs(ctx, t, s, "runner", "RUNNER")
	if err := runner.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	head, err := runner.Journal.Append(ctx, key, chain.Head{}, record(key, 0))
	if err != nil {
		t.Fatal(err)
	}
	servesReads(t, runner)
	reader := connectAs(ctx, t, s, "ada", "ADA")
	wait.Until(t, "a runner reads for people", func() bool { _, err := reader.Journal.Summaries(ctx, key.Project); return err == nil })
	if found := audit(t, reader, forge.Key{Project: key.Project}, nil).Findings(); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
	if _, err := runner.Journal.Append(ctx, key, chain.Head{Seq: head.Seq, Hash: chain.Start("x")}, record(key, 1)); err != nil {
		t.Fatal(err)
	}
	if found := audit(t, reader, key, nil).Findings(); len(found) != 1 || found[0].Kind != chain.Broken || found[0].Seq != 2 {
		t.Errorf("found %+v", found)
	}
	if list, head, err := reader.Journal.Load(ctx, key); err != nil || len(list) != 2 || head.Broken == nil || head.Broken.Seq != 2 {
		t.Errorf("a reader loads %d records, %+v, %v", len(list), head.Broken, err)
	}
}
