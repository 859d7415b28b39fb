package bus_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/transcripts"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestReadsSingly: an account without direct gets reads the same as one with
// them: journals, lists, transcripts, also more than it reads at a time, and
// with messages between whose headers nobody can read.
func TestReadsSingly(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	singly, err := bus.Connect(ctx, bus.Config{URL: s.URL(), Singly: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(singly.Close)
	const intents, records, lines = 70, 130, 120
	fill(t, b, records, func(n int) forge.Key {
		return forge.Key{Project: "shop", Intent: forge.IntentID(fmt.Sprint("i", n%intents))}
	})
	fill(t, b, records, func(int) forge.Key { return key })
	a := try("fix-login-001", 1)
	for n := range lines {
		if err := b.Transcripts.Append(ctx, key, a, fmt.Sprint("w/", n), []byte(fmt.Sprint(n, "\n"))); err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 {
			publishBroken(t, s, "forge.transcript.shop.fix-login.fix-login-001.implement.1.1", 1)
		}
	}
	type read struct {
		records, each, lines int
		summaries            []forge.Summary
		sequences            map[forge.IntentID]uint64
	}
	readBy := func(b *bus.Bus) (r read) {
		t.Helper()
		loaded, head, err := b.Journal.Load(ctx, key)
		if err != nil || head.Broken != nil {
			t.Errorf("%v, %v", head, err)
		}
		r.records = len(loaded)
		if err := b.Journal.Each(ctx, forge.Key{Project: "shop"}, func(*journal.Entry) error { r.each++; return nil }); err != nil {
			t.Error(err)
		}
		if r.summaries, err = b.Journal.Summaries(ctx, "shop"); err != nil {
			t.Error(err)
		}
		if r.sequences, err = b.Journal.Sequences(ctx, "shop"); err != nil {
			t.Error(err)
		}
		var seen []string
		err = b.Transcripts.ReadFrom(ctx, key, a, 0, func(batch transcripts.Batch) bool {
			if text := string(batch.Lines); text != "x" && !slices.Contains(seen, text) {
				seen = append(seen, text)
			}
			return true
		})
		if r.lines = len(seen); err != nil {
			t.Error(err)
		}
		return r
	}
	want := readBy(b)
	if want.records != records || want.each != 2*records || len(want.summaries) != intents+1 || want.lines != lines {
		t.Errorf("a runner reads %d, %d, %d and %d", want.records, want.each, len(want.summaries), want.lines)
	}
	if got := readBy(singly); !cmp.Equal(want, got, cmp.AllowUnexported(read{})) {
		t.Error(cmp.Diff(want, got, cmp.AllowUnexported(read{})))
	}
}

// publishBroken publishes messages with headers that are none, as no client library does.
func publishBroken(t *testing.T, s *bustest.Server, subject string, times int) {
	t.Helper()
	const header = "NATS/1.0\r\nno colon\r\n\r\n"
	to, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = to.Close() }()
	text := "CONNECT {\"verbose\":false,\"headers\":true}\r\n" +
		strings.Repeat(fmt.Sprintf("HPUB %s %d %d\r\n%sx\r\n", subject, len(header), len(header)+1, header), times) + "PING\r\n"
	if _, err := io.WriteString(to, text); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(to); lines.Scan(); {
		if lines.Text() == "PONG" {
			return
		}
	}
	t.Fatal("the server does not answer")
}

// TestBrokenHeadersEndNothing: a batch of nothing but messages whose headers
// nobody can read is passed over, and not asked for again and again.
func TestBrokenHeadersEndNothing(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	js := jetStream(t, raw(t, s))
	publishBroken(t, s, "forge.dead.x.shop", 600)
	if _, err := js.Publish(ctx, "forge.dead.x.shop", []byte(`{"stream":"S","stream_seq":3,"deliveries":5}`)); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "all are stored", func() bool {
		info, err := js.Stream(ctx, "FORGE_DEAD")
		return err == nil && info.CachedInfo().State.Msgs == 601
	})
	if list, err := b.Dead(ctx); err != nil || len(list) != 1 || list[0].Stream != "S" {
		t.Errorf("%+v, %v", list, err)
	}
}
