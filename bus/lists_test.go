package bus_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/encoding/protowire"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestLists: who looks again and again gets what a first look gets, whatever was written,
// taken away or begun anew meanwhile, and only the journals that have gone on are read for it.
func TestLists(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	lists := b.Journal.NewLists()
	reads := readOf(t, s)
	heads := map[forge.IntentID]chain.Head{}
	write := func(project forge.ProjectID, id forge.IntentID) {
		t.Helper()
		k := forge.Key{Project: project, Intent: id}
		head, err := b.Journal.Append(ctx, k, heads[id], record(k, int(heads[id].Seq)))
		if err != nil {
			t.Fatal(err)
		}
		heads[id] = head
	}
	same := func(about string, want ...string) {
		t.Helper()
		reads() // those before
		got, err := lists.Summaries(ctx, "shop")
		if err != nil {
			t.Fatal(about, err)
		}
		if read := reads(); !slices.Equal(read, want) {
			t.Errorf("%s: of %v is read, want %v", about, read, want)
		}
		all, err := b.Journal.Summaries(ctx, "shop")
		if diff := cmp.Diff(all, got); err != nil || diff != "" {
			t.Error(about, err, diff)
		}
	}
	same("nothing")
	for _, id := range []forge.IntentID{"a", "b", "c"} {
		write("shop", id)
	}
	same("all are new", "a", "b", "c")
	same("as before")
	write("shop", "b")
	write("other", "x")
	same("one has gone on", "b")
	write("other", "x")
	same("of another project")
	s.Forget(t, "FORGE_JOURNAL", 2) // the two of the other project
	same("all are taken away")
	maps.DeleteFunc(heads, func(id forge.IntentID, _ chain.Head) bool { return id != "x" })
	write("shop", "a")
	same("begun anew", "a")
	write("other", "x")
	s.Forget(t, "FORGE_JOURNAL", 1)
	delete(heads, "a")
	write("shop", "a")
	same("as many as before, and others", "a")
	s.DeleteStream(t, "FORGE_JOURNAL")
	same("there is no stream")
}

// TestListsOfNewerVersions: a list without an intent that this version cannot
// read would look complete.
func TestListsOfNewerVersions(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	lists := b.Journal.NewLists()
	if _, err := b.Journal.Append(ctx, key, chain.Head{}, record(key, 0)); err != nil {
		t.Fatal(err)
	}
	newer := nats.NewMsg("forge.journal.shop." + string(key.Intent))
	newer.Data = protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), []byte("\xf8\x3f\x01")) // field 1023 of its summary
	newer.Header.Set(wire.HeaderKind, wire.KindRecord)
	if _, err := jetStream(t, raw(t, s)).PublishMsg(ctx, newer); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var unknown *bus.UnknownError
		if list, err := lists.Summaries(ctx, "shop"); !errors.As(err, &unknown) {
			t.Errorf("%+v, %v", list, err)
		}
	}
}

// TestListsAreBounded: of many projects those are read anew that were asked for
// longest ago, and all are listed.
func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	lists := b.Journal.NewLists()
	if _, err := b.Journal.Append(ctx, key, chain.Head{}, record(key, 0)); err != nil {
		t.Fatal(err)
	}
	var asking sync.WaitGroup
	for i := range 600 {
		asking.Go(func() {
			for _, p := range []forge.ProjectID{"shop", forge.ProjectID(fmt.Sprintf("p%d", i))} {
				if list, err := lists.Summaries(ctx, p); err != nil || (len(list) == 1) != (p == "shop") {
					t.Errorf("%s: %+v, %v", p, list, err)
				}
			}
		})
	}
	asking.Wait()
}

// readOf returns a function that returns the intents whose last records were
// asked for since it was called last.
func readOf(t *testing.T, s *bustest.Server) func() []string {
	t.Helper()
	nc := raw(t, s)
	sub, err := nc.SubscribeSync("$JS.API.DIRECT.GET.FORGE_JOURNAL")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return func() (list []string) {
		t.Helper()
		if err := nc.Flush(); err != nil { // what was sent before is here
			t.Fatal(err)
		}
		for {
			n, _, err := sub.Pending()
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				return list
			}
			list = append(list, asked(t, sub)...)
		}
	}
}

// asked returns the intents of whose journals the next request wants the last messages.
func asked(t *testing.T, sub *nats.Subscription) (list []string) {
	t.Helper()
	m, err := sub.NextMsgWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var q struct {
		Lasts []string `json:"multi_last"`
	}
	if err := json.Unmarshal(m.Data, &q); err != nil {
		t.Fatal(err)
	}
	for _, subject := range q.Lasts {
		list = append(list, subject[len("forge.journal.shop."):])
	}
	return list
}
