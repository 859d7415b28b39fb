package bus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/bus/decide"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// guardedServer runs a server with the permissions of package access: the five
// services, the account auth, the system scanner, the follower tracker and the person
// ada, these for the project shop, and an administrator who may do everything. bob is
// a person for the project bank. Each has its name in capitals as password.
func guardedServer(t *testing.T, edits ...string) *server.Server {
	t.Helper()
	var users []access.User
	for _, account := range guardedAccounts(t) {
		users = append(users, access.User{Account: account, Proof: fmt.Sprintf("user: %s, password: %s", account.Name, strings.ToUpper(account.Name))})
	}
	conf := access.Conf(users, access.Accounts(users))
	conf = strings.Replace(conf, "users: [", "users: [ { user: admin, password: ADMIN }", 1)
	conf = strings.NewReplacer(edits...).Replace(conf)
	path := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	opts.Host, opts.Port, opts.JetStream, opts.StoreDir, opts.NoLog, opts.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, t.TempDir(), true, true
	return start(t, opts)
}

// guardedAccounts returns the accounts of guardedServer.
func guardedAccounts(t *testing.T) []access.Account {
	t.Helper()
	var list []access.Account
	add := func(role access.Role, name string, projects ...forge.ProjectID) {
		account, err := access.NewAccount(role, name, projects...)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, account)
	}
	for _, role := range access.Services() {
		add(role, "")
	}
	add(access.Auth, "")
	add(access.Backup, "")
	add(access.Gateway, "")
	add(access.Submitter, "scanner", "shop")
	add(access.Follower, "tracker", "shop")
	add(access.Operator, "ada", "shop")
	add(access.Operator, "bob", "bank")
	list[len(list)-1].NoClean = true
	return list
}

// as is a connection of a user, which tells what it is refused.
func as(t *testing.T, s *server.Server, user string) (nc *nats.Conn, refused chan error) {
	t.Helper()
	refused = make(chan error, 100)
	nc, err := nats.Connect(s.ClientURL(), nats.UserInfo(user, strings.ToUpper(user)), nats.CustomInboxPrefix("_INBOX_"+user),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc, refused
}

// people are the users who read through a runner.
var people = []string{"ada", "bob", "eve"}

// connectAs is a bus of a user.
func connectAs(ctx context.Context, t *testing.T, s *server.Server, user, password string) *bus.Bus {
	t.Helper()
	cfg := bus.Config{
		URL: strings.Replace(s.ClientURL(), "://", "://"+user+":"+password+"@", 1), Replicas: 1, InboxPrefix: "_INBOX_" + user,
		Singly: !slices.Contains([]string{"runner", "admin"}, user),
	}
	if slices.Contains(people, user) {
		cfg.Person, cfg.Project = user, "shop"
	}
	b, err := bus.Connect(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// decider is a runner that journals submissions and says yes to everything.
func decider(ctx context.Context, t *testing.T, b *bus.Bus) <-chan forge.Event {
	t.Helper()
	if err := b.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	seen := make(chan forge.Event, 100)
	serve(t, b, func(ctx context.Context, d *decide.Delivery) error {
		if submit := forge.As[*forge.Submit](d.Event.Message); submit != nil {
			in := submit.Intent
			_, err := b.Journal.Append(ctx, d.Event.To, chain.Head{}, forge.Record{Events: []forge.Event{d.Event}, Summary: forge.Summary{
				Key: d.Event.To, Title: in.Title, Status: forge.StatusProposed, Source: in.Source, RunSummary: forge.RunSummary{
					Run: 1,
				},
			}})
			if err != nil && !errors.Is(err, bus.ErrConflict) {
				return err
			}
		}
		d.Respond(ctx, forge.Ruling{EventID: d.Event.ID, Decision: forge.Applied, Intent: d.Event.To.Intent})
		seen <- d.Event
		return nil
	})
	tellChanges(t, b)
	ending, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		err := b.Submissions.Serve(ending, requests.ServeConfig{Report: func(context.Context, forge.Key) (forge.View, document.Work, error) {
			return forge.View{}, document.Work{}, nil
		}})
		if err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	servesReads(t, b)
	return seen
}

// servesReads is a runner that reads for people, until it is stopped or the test ends.
func servesReads(t *testing.T, b *bus.Bus) (stop func()) {
	t.Helper()
	ending, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := b.Submissions.ServeReads(ending, requests.ReadsConfig{Idle: b.Events.IdleIn}); err != nil {
			t.Error(err)
		}
	})
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return stop
}

const finding = `{"title": "t", "body": "b", "origin": {"event_id": "1"}}`

func TestPublisherMayOnlySubmit(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := guardedServer(t)
	seen := decider(ctx, t, connectAs(ctx, t, s, "runner", "RUNNER"))
	nc, refused := as(t, s, "scanner")
	if _, err := nc.RequestWithContext(ctx, "forge.intent.shop.from.scanner.submit", []byte(finding)); err != nil {
		t.Fatal(err)
	}
	ev := wait.For(t, seen)
	submit := forge.As[*forge.Submit](ev.Message)
	if submit == nil || submit.Intent.Source != forge.SourceSystem || submit.Intent.Origin.System != "scanner" {
		t.Errorf("got %+v", ev)
	}
	wait.Until(t, "somebody answers", func() bool {
		_, err := nc.Request("forge.api.shop.from.scanner.submit", []byte(finding), time.Second)
		return err == nil
	})
	if len(refused) > 0 {
		t.Error(<-refused)
	}
	for _, subject := range []string{
		"forge.intent.shop.submit", "forge.intent.bank.from.scanner.submit", "forge.intent.shop.from.ci.submit", "forge.intent.shop.by.ada.approve",
		"forge.intent.shop.by.scanner.submit", "forge.api.shop.submit", "forge.api.shop.from.scanner.list", "forge.api.shop.from.scanner.show",
		"forge.api.shop.by.ada.read",
		"forge.event.shop.a.done",
		"forge.api.shop.by.scanner.clean", "forge.api.shop.by.ada.clean", "forge.cleaned.shop",
		"forge.journal.shop.a", "forge.project.shop", "forge.command.analyze.any.shop.a.-.1.1", "forge.wake.shop.a", "forge.timer.shop.a.x",
		"forge.result.analyze.shop.a", "forge.control.shop.a", "$SRV.PING", "$JS.API.INFO", "$JS.API.STREAM.MSG.GET.FORGE_INTENTS",
		"$JS.API.STREAM.DELETE.FORGE_JOURNAL", "$JS.API.CONSUMER.CREATE.FORGE_EVENTS.scanner.forge.event.shop.>",
	} {
		deniedPublish(ctx, t, nc, refused, subject)
	}
	for _, subject := range []string{"forge.event.shop.>", "forge.intent.>", "_INBOX.>", "_INBOX_ada.>", "forge.progress.shop.*", ">"} {
		deniedSubscribe(ctx, t, nc, refused, subject)
	}
}

// A sender that wants to be answered on a subject of somebody else is not.
func TestAnswersGoToInboxes(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := guardedServer(t)
	b := connectAs(ctx, t, s, "runner", "RUNNER")
	seen := decider(ctx, t, b)
	nc, _ := as(t, s, "scanner")
	spy, _ := as(t, s, "admin")
	sub, err := spy.SubscribeSync("forge.wake.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := spy.Flush(); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the endpoint is there", func() bool {
		_, err := nc.Request("forge.api.shop.from.scanner.submit", []byte(finding), time.Second)
		return err == nil
	})
	wait.For(t, seen)
	if err := nc.PublishRequest("forge.api.shop.from.scanner.submit", "forge.wake.shop.a", []byte(finding)); err != nil {
		t.Fatal(err)
	}
	m := nats.NewMsg("forge.intent.shop.from.scanner.submit")
	m.Header.Set("Forge-Reply", "forge.wake.shop.a")
	m.Data = []byte(`{"title": "t", "body": "b", "origin": {"event_id": "2"}}`)
	if _, err := nc.RequestMsgWithContext(ctx, m); err != nil {
		t.Fatal(err)
	}
	wait.For(t, seen)
	if _, err := nc.Request("forge.api.shop.from.scanner.submit", []byte(finding), wait.Patience); err != nil { // after the others
		t.Fatal(err)
	}
	if err := spy.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, _ := sub.Pending(); n > 0 {
		t.Error("a runner published where a sender wanted it to")
	}
}

func TestFollowerMayOnlyFollow(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := guardedServer(t)
	b := connectAs(ctx, t, s, "runner", "RUNNER")
	decider(ctx, t, b)
	if err := b.Changes.AddFollower(ctx, changes.Follower{Name: "tracker"}); err != nil {
		t.Fatal(err)
	}
	if err := connectAs(ctx, t, s, "admin", "ADMIN").Submissions.Send(ctx, submit(key)); err != nil {
		t.Fatal(err)
	}
	nc, refused := as(t, s, "tracker")
	m, err := nc.Request("$JS.API.CONSUMER.MSG.NEXT.FORGE_EVENTS.tracker", []byte(`{"batch": 1, "expires": 10000000000}`), wait.Patience)
	if err != nil || m.Subject == "" || !strings.Contains(string(m.Data), "io.pfl-forge.intent.submitted.v1") {
		t.Fatalf("got %+v, %v", m, err)
	}
	if err := m.Respond([]byte("+ACK")); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the follower has it all", func() bool {
		behind, err := b.Changes.Behind(ctx, "tracker")
		return err == nil && behind == 0
	})
	if len(refused) > 0 {
		t.Error(<-refused)
	}
	for _, subject := range []string{
		"forge.event.shop.a.done", "forge.intent.shop.submit", "forge.intent.shop.by.tracker.approve", "forge.api.shop.by.tracker.list",
		"$JS.API.CONSUMER.MSG.NEXT.FORGE_EVENTS.notify-chat", "$JS.ACK.FORGE_EVENTS.notify-chat.1.1.1.1.1", "$JS.API.CONSUMER.DELETE.FORGE_EVENTS.tracker",
		"$JS.API.CONSUMER.CREATE.FORGE_EVENTS.tracker", "$JS.API.STREAM.MSG.GET.FORGE_EVENTS", "$JS.API.CONSUMER.MSG.NEXT.FORGE_JOURNAL.tracker",
	} {
		deniedPublish(ctx, t, nc, refused, subject)
	}
	for _, subject := range []string{"forge.event.>", "_INBOX_ada.>"} {
		deniedSubscribe(ctx, t, nc, refused, subject)
	}
}

func deniedPublish(ctx context.Context, t *testing.T, nc *nats.Conn, refused chan error, subject string) {
	t.Helper()
	if err := nc.Publish(subject, nil); err != nil {
		t.Fatal(err)
	}
	denied(ctx, t, nc, refused, fmt.Sprintf("Publish to %q", subject), subject)
}

func deniedSubscribe(ctx context.Context, t *testing.T, nc *nats.Conn, refused chan error, subject string) {
	t.Helper()
	sub, err := nc.SubscribeSync(subject)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	denied(ctx, t, nc, refused, fmt.Sprintf("Subscription to %q", subject), subject)
}

func denied(ctx context.Context, t *testing.T, nc *nats.Conn, refused chan error, want, subject string) {
	t.Helper()
	if err := nc.FlushWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-refused:
		if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
			t.Errorf("%s: %v", subject, err)
		}
	case <-ctx.Done():
		t.Errorf("%s is allowed", subject)
	}
}
