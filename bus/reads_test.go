package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/bus/transcripts"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// secret is in everything of the project bank, which ada has no right to read.
const secret = "SECRET"

// readable is a server with a runner and something to read of two projects.
type readable struct {
	runner, worker *bus.Bus
	ada            *bus.Bus
	raw            *nats.Conn // of ada
	server         *server.Server
	stop           func()
}

// newReadable fills the streams with what is of shop and of bank.
func newReadable(t *testing.T) *readable {
	t.Helper()
	ctx := wait.Context(t)
	s := guardedServer(t)
	r := &readable{server: s, runner: connectAs(ctx, t, s, "runner", "RUNNER"), worker: connectAs(ctx, t, s, "implementer", "IMPLEMENTER")}
	if err := r.runner.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	admin, _ := as(t, s, "admin")
	for _, project := range []forge.ProjectID{"bank", "shop"} {
		title := map[forge.ProjectID]string{"bank": secret, "shop": "Mine"}[project]
		to := forge.Key{Project: project, Intent: "fix-login"}
		r.append(t, to, chain.Head{}, title)
		r.append(t, forge.Key{Project: project}, chain.Head{}, title)
		a := try("fix-login-001", 1)
		if err := r.worker.Transcripts.Append(ctx, to, a, "w/0", []byte(title+"\n")); err != nil {
			t.Fatal(err)
		}
		if err := r.worker.Objects.Put(ctx, objects.TranscriptName(to, a), strings.NewReader(title)); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.RequestWithContext(ctx, "forge.dead.intents."+string(project), []byte(title)); err != nil {
			t.Fatal(err)
		}
	}
	r.stop = servesReads(t, r.runner)
	r.ada = connectAs(ctx, t, s, "ada", "ADA")
	r.raw, _ = as(t, s, "ada")
	wait.Until(t, "a runner reads for people", func() bool { _, err := r.ada.Journal.Summaries(ctx, "shop"); return err == nil })
	return r
}

// append adds a record with a title to a journal.
func (r *readable) append(t *testing.T, to forge.Key, after chain.Head, title string) chain.Head {
	t.Helper()
	seq, err := r.runner.Journal.Append(t.Context(), to, after, forge.Record{
		Events:  []forge.Event{{ID: title, To: to, Message: &forge.Reflect{}}},
		Summary: forge.Summary{Key: to, Title: title, Status: forge.StatusProposed},
	})
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// ask sends a read as it is, and returns the messages and the end of the answer.
func ask(t *testing.T, nc *nats.Conn, subject, request string) (list []*nats.Msg, end *nats.Msg) {
	t.Helper()
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := nc.PublishRequest(subject, inbox, []byte(request)); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := sub.NextMsg(wait.Patience)
		if err != nil {
			t.Fatalf("%s: %v", request, err)
		}
		if m.Header.Get("Nats-Sequence") == "" {
			return list, m
		}
		list = append(list, m)
	}
}

// TestReadsOfOneProject attacks each field of a read: nothing of another project is answered, and
// every mistake is told with the name of its field.
func TestReadsOfOneProject(t *testing.T) {
	t.Parallel()
	r := newReadable(t)
	all, err := r.runner.Objects.List(t.Context(), objects.Name{Project: "bank", Kind: objects.Transcript})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	meta := streams.BucketTranscripts.Meta
	const foreign, own = "bank/fix-login/fix-login-001/transcript/implement-1", "shop/fix-login/fix-login-001/transcript/implement-1"
	var tried int
	refused := func(field, request string) {
		tried++
		list, end := ask(t, r.raw, "forge.api.shop.by.ada.read", request)
		var said requests.Refused
		if err := json.Unmarshal(end.Data, &said); err != nil {
			t.Fatal(err)
		}
		found := false
		for _, e := range said.Errors {
			found = found || e.Field == field
		}
		if len(list) > 0 || !found || end.Header.Get(micro.ErrorCodeHeader) != "400" {
			t.Errorf("%s: %d messages, %s: %s; want field %q", request, len(list), end.Header.Get(micro.ErrorCodeHeader), end.Data, field)
		}
	}
	for _, what := range []string{"last", "first", "next", "lasts"} {
		for _, subject := range []string{
			"", ">", "*", "forge.>", "forge.*.*", "forge.journal.>", "forge.journal.*.*", "forge.journal.bank.*", "forge.journal.bank.fix-login",
			"forge.journal.shop.>", "forge.journal.shop.a.b", "forge.journal.shop", "forge.journal..fix-login", "forge.journal.shop .x", "forge.journal.SHOP.*",
			"forge.project.*", "forge.project.bank", "forge.project.>", "forge.transcript.>", "forge.transcript.bank.*.*.*.*.*", "forge.transcript.*.*.*.*.*.*",
			"forge.transcript.shop.>", "forge.dead.*.*", "forge.dead.*.bank", "forge.dead.intents.bank", "forge.dead.shop.*", "forge.dead.*.-", "forge.dead.>",
			"forge.command.review.any.shop.*.*.*.*", "forge.intent.shop.by.ada.*", "forge.intent.shop.>", "forge.lease.*.shop.*.*", "forge.wake.shop",
			"forge.event.shop.*.*", "forge.timer.shop.*.*", "forge.refusal.shop.*", "forge.api.shop.by.ada.read", "_INBOX_bob.>", "$JS.API.>", "$SYS.>",
			"$O.FORGE.M.>", "$O.FORGE.C.>", "$O.FORGE_TRANSCRIPTS.C.>", "$O.FORGE_TRANSCRIPTS.>", "$O.FORGE_TRANSCRIPTS.M.*.x", "$O.FORGE_TRANSCRIPTS.M.",
			"forge.journal.shop.fix-login\r\nPUB x 0\r\n", "forge.journal.shop.fix\u0000", "forge.journal.sh*p.a",
		} {
			data, err := json.Marshal(map[string]any{"read": what, "subject": subject})
			if err != nil {
				t.Fatal(err)
			}
			field := "subject"
			if strings.HasPrefix(subject, "$O.FORGE_TRANSCRIPTS.M.") {
				field = "read"
				if what == "last" {
					field = "subject"
				}
			}
			refused(field, string(data))
		}
	}
	const journals = `"read": "next", "subject": "forge.journal.shop.*"`
	for request, field := range map[string]string{
		``: "read", `{}`: "read", `[]`: "", `{`: "", `{"read": "all"}`: "read", `{"read": 1}`: "read",
		`{"read": "idle", "subject": "forge.journal.bank.*"}`: "subject",
		`{` + journals + `, "after": -1}`:                     "after",
		`{` + journals + `, "after": 18446744073709551615}`:   "after", `{` + journals + `, "after": 1e99}`: "after",
		`{` + journals + `, "after": "1"}`: "after", `{` + journals + `, "since": "today"}`: "since", `{` + journals + `, "wait": 1}`: "wait",
		`{` + journals + `, "stream": "FORGE_INTENTS"}`: "stream", `{` + journals + `, "project": "bank"}`: "project",
		`{` + journals + `, "subject": "forge.journal.bank.*"}`: "subject", `{` + journals + `, "content": "abc"}`: "subject",
		`{` + journals + `, "content": ">"}`:                                 "content",
		`{"read": "last", "subject": "` + meta(own) + `", "content": "abc"}`: "content", `{"read": "last", "subject": "` + meta(foreign) + `"}`: "subject",
		`{"read": "next", "subject": "` + meta(foreign) + `", "content": "abc"}`: "subject", `{"read": "next", "subject": "` + meta(own) + `"}`: "read",
		`{"read": "last", "subject": "` + meta("shop/../bank/fix-login/transcript/implement-1") + `"}`:      "subject",
		`{"read": "last", "subject": "` + meta("shop/fix-login/fix-login-001/session/x") + `"}`:             "subject",
		`{"read": "last", "subject": "forge.journal.shop.a", "past": "` + strings.Repeat("x", 5<<10) + `"}`: "",
		`{"read": "next", "subject": "` + meta(own) + `", "content": "*"}`:                                  "content",
	} {
		refused(field, request)
	}
	// What is allowed, with any position, never has anything of another project.
	for _, request := range []string{
		`{` + journals + `}`, `{` + journals + `, "after": 4611686018427387903}`, `{` + journals + `, "since": "0001-01-01T00:00:00Z"}`,
		`{` + journals + `, "since": "9999-01-01T00:00:00Z"}`, `{"read": "lasts", "subject": "forge.journal.shop.*", "past": "forge.journal.aaa.a"}`,
		`{"read": "lasts", "subject": "forge.journal.shop.*", "past": "zzz"}`, `{"read": "lasts", "subject": "$O.FORGE_TRANSCRIPTS.M.>"}`,
		`{"read": "lasts", "subject": "$O.FORGE_TRANSCRIPTS.M.>", "past": "$O.FORGE_TRANSCRIPTS.M.A"}`, `{"read": "next", "subject": "forge.dead.*.shop"}`,
		`{"read": "next", "subject": "forge.transcript.shop.*.*.*.*.*"}`, `{"read": "first", "subject": "forge.transcript.shop.*.*.*.*.*"}`,
		`{"read": "last", "subject": "forge.journal.shop.*"}`, `{"read": "next", "subject": "` + meta(own) + `", "content": "ABCDEFGHIJ"}`, `{"read": "idle"}`,
	} {
		tried++
		list, end := ask(t, r.raw, "forge.api.shop.by.ada.read", request)
		for _, m := range append(list, end) {
			if strings.Contains(string(m.Data), secret) || strings.Contains(m.Header.Get("Nats-Subject"), "bank") {
				t.Errorf("%s: she reads %s: %q", request, m.Header.Get("Nats-Subject"), m.Data)
			}
		}
	}
	if tried < 200 {
		t.Errorf("only %d attempts", tried)
	}
	r.readsOwn(t)
}

// readsOwn checks that a person reads what is of the own project through every door.
func (r *readable) readsOwn(t *testing.T) {
	t.Helper()
	ctx := wait.Context(t)
	shop := forge.Key{Project: "shop", Intent: "fix-login"}
	if list, err := r.ada.Journal.Summaries(ctx, "shop"); err != nil || len(list) != 1 || list[0].Title != "Mine" {
		t.Errorf("status: %+v, %v", list, err)
	}
	if list, _, err := r.ada.Journal.Load(ctx, shop); err != nil || len(list) != 1 {
		t.Errorf("show: %+v, %v", list, err)
	}
	if list, err := r.ada.Objects.List(ctx, objects.Name{Kind: objects.Transcript}); err != nil || len(list) != 1 || list[0].Project != "shop" {
		t.Errorf("logs: %+v, %v", list, err)
	}
	if o, err := r.ada.Objects.Read(ctx, objects.TranscriptName(shop, try("fix-login-001", 1))); err != nil || string(o.Content) != "Mine" {
		t.Errorf("logs: %+v, %v", o, err)
	}
	bank := forge.Key{Project: "bank", Intent: "fix-login"}
	if s, err := r.ada.Journal.Summary(ctx, bank); err == nil {
		t.Errorf("she reads %+v", s)
	}
	if list, err := r.ada.Journal.Summaries(ctx, ""); err == nil {
		t.Errorf("she reads %+v", list)
	}
	if o, err := r.ada.Objects.Read(ctx, objects.TranscriptName(bank, try("fix-login-001", 1))); err == nil {
		t.Errorf("she reads %q", o.Content)
	}
	if idle, err := r.ada.Events.Idle(ctx); err != nil || idle {
		t.Errorf("nobody decides here: %t, %v", idle, err)
	}
}

// TestReadsWithoutRunner checks that whoever reads is told at once which service is missing.
func TestReadsWithoutRunner(t *testing.T) {
	t.Parallel()
	r := newReadable(t)
	r.stop()
	ctx := wait.Context(t)
	wait.Until(t, "no runner reads any more", func() bool { _, err := r.ada.Events.Idle(ctx); return errors.Is(err, requests.ErrRunnerDown) })
	for what, do := range map[string]func() error{
		"status": func() error { _, err := r.ada.Journal.Summaries(ctx, "shop"); return err },
		"show":   func() error { _, _, err := r.ada.Journal.Load(ctx, key); return err },
		"doctor": func() error { _, err := r.ada.Dead(ctx); return err },
		"run":    func() error { _, err := r.ada.Events.Idle(ctx); return err },
		"logs":   func() error { _, err := r.ada.Objects.List(ctx, objects.Name{Kind: objects.Transcript}); return err },
		"watch":  func() error { return r.ada.Journal.Follow(ctx, "shop", 0, journal.Follower{Record: nothing}) },
		"logs -f": func() error {
			return r.ada.Transcripts.Follow(ctx, subjects.TranscriptFilter{Project: "shop"}, 0, time.Time{}, transcripts.Follower{
				Lines: func(forge.Key, forge.Attempt, uint64, []byte) error { return nil },
			})
		},
	} {
		if err := do(); !errors.Is(err, requests.ErrRunnerDown) || !strings.Contains(err.Error(), "start forge-runner") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := r.ada.Prepared(ctx); err != nil {
		t.Errorf("what she asks for is stored without a runner: %v", err)
	}
}

func nothing(forge.Key, uint64, forge.Record) error { return nil }

// TestFollowingThroughRunners checks that whoever follows through runners that come, go, and die
// in the middle of an answer sees each record once, in order, and live.
func TestFollowingThroughRunners(t *testing.T) {
	t.Parallel()
	r := newReadable(t)
	ctx, end := context.WithCancel(wait.Context(t))
	var followed sync.WaitGroup
	defer followed.Wait()
	defer end()
	caughtUp, seen := make(chan bool, 1), make(chan string, 1000)
	followed.Go(func() {
		err := r.ada.Journal.Follow(ctx, "shop", 0, journal.Follower{
			Record:   func(_ forge.Key, _ uint64, rec forge.Record) error { seen <- rec.Summary.Title; return nil },
			CaughtUp: func() error { caughtUp <- true; return nil },
		})
		if err != nil {
			t.Error(err)
		}
	})
	wait.For(t, caughtUp)
	if got := wait.For(t, seen); got != "Mine" {
		t.Fatalf("got %q", got)
	}
	n, last := 0, chain.Head{}
	to := forge.Key{Project: "shop", Intent: "more"}
	more := func(count int) {
		t.Helper()
		for range count {
			n++
			last = r.append(t, to, last, fmt.Sprint("record ", n))
		}
	}
	next := 1
	check := func() {
		t.Helper()
		for ; next <= n; next++ {
			if got, want := wait.For(t, seen), fmt.Sprint("record ", next); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	}
	more(3)
	check()
	r.stop() // with nobody there for a while
	more(3)
	stop := servesReads(t, r.runner)
	check()
	servesReads(t, r.runner) // a second one
	more(3)
	stop()
	more(3)
	check()
	// One that dies: it takes its share of the reads, and at most begins to answer.
	dying, err := nats.Connect(r.raw.ConnectedUrl(), nats.UserInfo("admin", "ADMIN"))
	if err != nil {
		t.Fatal(err)
	}
	defer dying.Close()
	died := make(chan bool, 100)
	half, err := dying.QueueSubscribe("forge.api.*.by.*.read", "q", func(m *nats.Msg) {
		begun := &nats.Msg{Subject: m.Reply, Data: []byte("half"), Header: nats.Header{
			"Nats-Stream": {"FORGE_JOURNAL"}, "Nats-Subject": {"forge.journal.shop.more"}, "Nats-Sequence": {fmt.Sprint(last.Seq + 1)},
		}}
		if err := dying.PublishMsg(begun); err == nil {
			select {
			case died <- true:
			default:
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	wait.For(t, died)
	more(3)
	if err := half.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	check()
	if len(seen) > 0 {
		t.Errorf("%q came twice", <-seen)
	}
}
