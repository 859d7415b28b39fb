package bus_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

const (
	everyService  = "runner analyzer implementer reviewer reflector"
	everyWorker   = "analyzer implementer reviewer reflector"
	takesCommands = everyWorker + " gateway" // of a gateway those of its own steps
	nobody        = ""
)

// mayPublish says which accounts may publish on a subject; all others are refused.
var mayPublish = map[string]string{
	// What workers found out.
	"forge.result.analyze.shop.a": "analyzer", "forge.result.intake.shop.a": "analyzer", "forge.result.implement.shop.a": "implementer",
	"forge.result.rebase.shop.a": "implementer", "forge.result.merge.shop.a": "implementer", "forge.result.execute.shop.a": "implementer",
	"forge.result.review.shop.a": "reviewer", "forge.result.judge.shop.a": "reviewer", "forge.result.reflect.shop.a": "reflector",
	"forge.result.summarize.shop.a": "reflector", "forge.result.unknown.shop.a": nobody,
	"forge.lease.review.shop.a.-": "reviewer", "forge.lease.merge.shop.a.-": "implementer",
	"forge.transcript.shop.a.-.review.1.1": "reviewer", "forge.transcript.shop.a.-.implement.1.1": "implementer",
	"forge.progress.shop.a": takesCommands, "forge.cleaned.shop": "implementer",
	// What runners decide.
	"forge.journal.shop.a": "runner", "forge.project.shop": "runner", "forge.command.review.any.shop.a.-.1.1": "runner",
	"forge.wake.shop.a": "runner", "forge.timer.shop.a.x": "runner", "forge.event.shop.a.done": "runner", "forge.control.shop.a": "runner",
	"forge.refusal.shop.scanner": "runner", "forge.epoch.commands": "runner",
	// What people and systems want.
	"forge.intent.shop.by.ada.approve": "ada", "forge.intent.bank.by.ada.approve": nobody, "forge.intent.shop.by.bob.approve": nobody,
	"forge.intent.shop.from.scanner.submit": "scanner", "forge.intent.bank.from.scanner.submit": nobody, "forge.intent.shop.from.ci.submit": nobody,
	"forge.intent.shop.by.ada.via.gateway.approve": "gateway", "forge.intent.shop.by.ada.via.other.approve": nobody,
	"forge.intent.shop.by.ada.via.gateway.teach":        nobody,
	"forge.intent.shop.from.scanner.via.gateway.submit": "gateway",
	"forge.intent.shop.by.gateway.approve":              nobody, "forge.intent.shop.from.gateway.submit": nobody,
	"forge.hook.github.x": "gateway", "$JS.API.STREAM.MSG.GET.FORGE_HOOKS": "gateway", "$JS.API.CONSUMER.CREATE.FORGE_HOOKS.x.forge.hook.>": nobody,
	"forge.intake.github": "gateway", "$JS.API.STREAM.MSG.GET.FORGE_INTAKE": "gateway", "$JS.API.STREAM.PURGE.FORGE_INTAKE": nobody,
	"forge.api.shop.from.gateway.list": "gateway", "forge.api.shop.from.gateway.submit": nobody, "forge.api.shop.by.gateway.read": nobody,
	"$JS.API.STREAM.MSG.GET.FORGE_EVENTS":                  "runner gateway",
	"$JS.API.CONSUMER.CREATE.FORGE_EVENTS.x.forge.event.>": "runner",
	"forge.intent.shop.submit":                             "runner", "forge.api.shop.from.scanner.submit": "scanner", "forge.api.shop.submit": nobody,
	"forge.api.shop.list": nobody, "forge.api.shop.by.ada.list": "ada", "forge.api.bank.by.ada.list": nobody, "forge.api.shop.by.bob.list": nobody,
	"forge.api.shop.by.ada.read": "ada", "forge.api.bank.by.ada.read": nobody, "forge.api.shop.by.bob.read": nobody, "forge.api.shop.from.ada.read": nobody,
	"forge.api.shop.by.ada.clean": "ada", "forge.api.shop.by.bob.clean": nobody, "forge.api.bank.by.bob.clean": nobody,
	// Who takes what.
	"$JS.API.CONSUMER.MSG.NEXT.FORGE_COMMANDS.review": "reviewer", "$JS.ACK.FORGE_COMMANDS.review.1.1.1.1.1": "reviewer",
	"$JS.ACK._.hash.FORGE_COMMANDS.review.1.1.1.1.1.x": "reviewer", "$JS.API.CONSUMER.MSG.NEXT.FORGE_COMMANDS.review-on-reviewer-0": everyWorker,
	"$JS.API.CONSUMER.MSG.NEXT.FORGE_COMMANDS.open_pull": "gateway", "$JS.ACK.FORGE_COMMANDS.merge_pull.1.1.1.1.1": "gateway",
	"$JS.API.CONSUMER.CREATE.FORGE_COMMANDS.open_pull.forge.command.open_pull.any.>": "runner", "$JS.API.STREAM.MSG.GET.FORGE_COMMANDS": everyService,
	"$JS.API.CONSUMER.CREATE.FORGE_COMMANDS.review.forge.command.review.any.>":     "runner reviewer",
	"$JS.API.CONSUMER.CREATE.FORGE_COMMANDS.x.forge.command.review.on.x.>":         "reviewer",
	"$JS.API.CONSUMER.CREATE.FORGE_COMMANDS.review.forge.command.implement.on.x.>": nobody,
	"$JS.API.CONSUMER.CREATE.FORGE_COMMANDS.x.forge.command.>":                     nobody,
	"$JS.API.CONSUMER.CREATE.FORGE_COMMANDS.x":                                     nobody,
	"$JS.API.CONSUMER.DURABLE.CREATE.FORGE_COMMANDS.x":                             nobody,
	"$JS.API.CONSUMER.MSG.NEXT.FORGE_INTENTS.runner":                               "runner",
	"$JS.ACK.FORGE_INTENTS.runner.1.1.1.1.1":                                       "runner",
	"$JS.API.CONSUMER.MSG.NEXT.FORGE_EVENTS.tracker":                               "runner tracker",
	"$JS.API.CONSUMER.MSG.NEXT.FORGE_EVENTS.notify-chat":                           "runner",
	"$JS.API.CONSUMER.CREATE.FORGE_JOURNAL.x":                                      nobody,
	"$JS.API.CONSUMER.CREATE.FORGE_JOURNAL.x.forge.journal.shop.*":                 nobody,
	"$JS.API.CONSUMER.DELETE.FORGE_INTENTS.runner":                                 nobody,
	"$JS.API.CONSUMER.DELETE.FORGE_COMMANDS.review":                                nobody,
	"$JS.API.CONSUMER.PAUSE.FORGE_INTENTS.runner":                                  nobody,
	"$JS.API.CONSUMER.LEADER.STEPDOWN.FORGE_INTENTS.runner":                        nobody,
	// Who is sent messages as they are stored can have them sent elsewhere, as what they are not.
	"$JS.API.DIRECT.GET.FORGE_JOURNAL":                            "runner",
	"$JS.API.DIRECT.GET.FORGE_PROJECTS":                           "runner",
	"$JS.API.DIRECT.GET.FORGE_LEASES":                             nobody,
	"$JS.API.DIRECT.GET.FORGE_HOOKS":                              nobody,
	"$JS.API.DIRECT.GET.FORGE_EVENTS":                             nobody,
	"$JS.API.DIRECT.GET.FORGE_TRANSCRIPTS":                        "runner",
	"$JS.API.DIRECT.GET.OBJ_FORGE_TRANSCRIPTS":                    "runner",
	"$JS.API.DIRECT.GET.FORGE_LEASES.forge.lease.review.shop.a.-": nobody,
	"$JS.API.DIRECT.GET.FORGE_INTENTS":                            nobody,
	"$JS.API.DIRECT.GET.FORGE_COMMANDS":                           nobody,
	"$JS.API.DIRECT.GET.FORGE_DEAD":                               "runner",
	"$JS.API.STREAM.MSG.GET.FORGE_DEAD":                           nobody,
	"$JS.API.CONSUMER.LIST.FORGE_COMMANDS":                        "runner",
	"$JS.API.CONSUMER.LIST.FORGE_JOURNAL":                         nobody,
	"$JS.API.DIRECT.GET.OBJ_FORGE":                                nobody,
	"$JS.API.STREAM.MSG.GET.OBJ_FORGE":                            everyWorker,
	"$O.FORGE.C.x":                                                everyWorker,
	"$O.FORGE_SNAPSHOTS.C.x":                                      "runner",
	"$JS.API.STREAM.MSG.GET.OBJ_FORGE_SNAPSHOTS":                  "runner",
	"$JS.API.STREAM.PURGE.OBJ_FORGE_SNAPSHOTS":                    "runner",
	"$JS.API.STREAM.DELETE.OBJ_FORGE_SNAPSHOTS":                   nobody,
	// Nobody takes anything away.
	"$JS.API.STREAM.DELETE.FORGE_JOURNAL": nobody, "$JS.API.STREAM.DELETE.FORGE_PROJECTS": nobody, "$JS.API.STREAM.DELETE.FORGE_INTENTS": nobody,
	"$JS.API.STREAM.DELETE.FORGE_LEASES": nobody, "$JS.API.STREAM.DELETE.FORGE_DEAD": nobody, "$JS.API.STREAM.DELETE.FORGE_EVENTS": nobody,
	"$JS.API.STREAM.DELETE.FORGE_REFUSALS": nobody, "$JS.API.STREAM.DELETE.FORGE_TRANSCRIPTS": nobody, "$JS.API.STREAM.DELETE.OBJ_FORGE": nobody,
	"$JS.API.STREAM.DELETE.OBJ_FORGE_TRANSCRIPTS": nobody, "$JS.API.STREAM.DELETE.FORGE_COMMANDS": "runner", "$JS.API.STREAM.DELETE.FORGE_WAKES": "runner",
	"$JS.API.STREAM.PURGE.FORGE_JOURNAL": nobody, "$JS.API.STREAM.PURGE.FORGE_PROJECTS": nobody, "$JS.API.STREAM.PURGE.FORGE_INTENTS": nobody,
	"$JS.API.STREAM.PURGE.FORGE_TRANSCRIPTS": nobody, "$JS.API.STREAM.PURGE.FORGE_COMMANDS": "runner",
	"$JS.API.STREAM.PURGE.OBJ_FORGE": everyWorker, "$JS.API.STREAM.PURGE.OBJ_FORGE_TRANSCRIPTS": nobody,
	"$JS.API.STREAM.MSG.DELETE.FORGE_JOURNAL": nobody, "$JS.API.STREAM.MSG.DELETE.FORGE_INTENTS": nobody, "$JS.API.STREAM.MSG.DELETE.OBJ_FORGE": nobody,
	"$JS.API.STREAM.UPDATE.FORGE_JOURNAL": "runner", "$JS.API.STREAM.CREATE.FORGE_JOURNAL": "runner", "$JS.API.STREAM.CREATE.MIRROR": nobody,
	"$JS.API.STREAM.SNAPSHOT.FORGE_JOURNAL": "backup", "$JS.API.STREAM.RESTORE.FORGE_JOURNAL": "backup", "$JS.API.STREAM.SNAPSHOT.FORGE_LEASES": nobody,
	"$JS.API.STREAM.MSG.DELETE.FORGE_PROJECTS": "backup", "$JS.SNAPSHOT.ACK.FORGE_JOURNAL.x.1.1": "backup",
	"$JS.SNAPSHOT.RESTORE.FORGE_JOURNAL.x": "backup", "_INBOX_backup.x": nobody,
	"$JS.API.STREAM.LEADER.STEPDOWN.FORGE_JOURNAL": nobody,
	"$JS.API.STREAM.PEER.REMOVE.FORGE_JOURNAL":     nobody, "$JS.API.ACCOUNT.PURGE.x": nobody, "$JS.API.META.LEADER.STEPDOWN": nobody, "$JS.API.INFO": nobody,
	// Who answers whom, and who asks who is there.
	"_INBOX_runner.x": "runner", "_INBOX_reviewer.x": "runner", "_INBOX_ada.x": "runner implementer", "_INBOX_scanner.x": "runner", "_INBOX_gateway.x": "runner",
	"_INBOX_services.x": everyService + " gateway", "_INBOX.x": nobody, "$SRV.INFO": "runner", "$SRV.PING": nobody, "$SRV.INFO.pfl-forge-reviewer": nobody,
	"$SYS.REQ.SERVER.PING": nobody,
}

// mayListen says the same of listening.
var mayListen = map[string]string{
	"forge.result.*.*.*": "runner", "forge.result.>": nobody, "forge.result.review.shop.a": "runner",
	">": nobody, "forge.>": nobody, "forge.command.>": nobody, "forge.journal.>": nobody, "forge.journal.*.*": "runner", "forge.project.*": "runner",
	"forge.intent.>": nobody, "forge.wake.>": nobody,
	"forge.lease.>": nobody, "forge.transcript.>": nobody, "forge.event.>": nobody, "forge.event.*.*.*": "gateway",
	"forge.dead.*.*": "runner", "forge.dead.>": nobody,
	"forge.transcript.*.*.*.*.*.*": "runner", "$O.FORGE.>": nobody,
	"forge.api.*.submit": "runner", "forge.api.*.from.*.submit": "runner", "forge.api.*.by.*.list": "runner",
	"forge.api.*.by.*.read":  "runner",
	"forge.api.*.by.*.clean": "implementer", "forge.api.>": nobody,
	"forge.control.*.*": takesCommands, "forge.cleaned.*": takesCommands, "forge.progress.shop.*": "ada", "forge.progress.*.*": nobody,
	"_INBOX.>": nobody, "_INBOX_runner.>": "runner", "_INBOX_reviewer.>": "reviewer", "_INBOX_ada.>": "ada", "_INBOX_scanner.>": "scanner",
	"_INBOX_tracker.>": "tracker", "_INBOX_backup.>": "backup", "_INBOX_services.*": "runner",
	"$SRV.>": nobody, "$SRV.INFO": everyService + " gateway", "$SRV.INFO.pfl-forge-reviewer": "reviewer", "$SRV.PING.pfl-forge-clean": "implementer",
	"$JS.ACK.>": nobody, "$JS.API.>": nobody, "$JS.EVENT.>": nobody, "$SYS.>": nobody,
}

// TestWhoMayWhat tries each subject with each account on a real server: those that are named
// may, and all others are refused.
func TestWhoMayWhat(t *testing.T) {
	t.Parallel()
	s := guardedServer(t)
	for account := range strings.FieldsSeq(everyService + " ada scanner tracker backup gateway") {
		nc, refused := as(t, s, account)
		tryAll(t, account, nc, refused, mayPublish, mayListen)
	}
}

// tryAll publishes and listens on every subject with an account, and compares
// what it may with the tables.
func tryAll(t *testing.T, account string, nc *nats.Conn, refused chan error, publish, listen map[string]string) {
	t.Helper()
	for subject, who := range publish {
		want := slices.Contains(strings.Fields(who), account)
		err := firstRefusal(t, nc, refused, func() error { return nc.Publish(subject, nil) })
		if got := !strings.Contains(err, `Publish to "`+subject+`"`); got != want {
			t.Errorf("%s publishes on %s: %t, want %t", account, subject, got, want)
		}
	}
	for subject, who := range listen {
		want := slices.Contains(strings.Fields(who), account)
		err := firstRefusal(t, nc, refused, func() error {
			sub, err := nc.SubscribeSync(subject)
			if err == nil {
				defer func() { _ = sub.Unsubscribe() }()
				err = nc.Flush()
			}
			return err
		})
		if got := !strings.Contains(err, `Subscription to "`+subject+`"`); got != want {
			t.Errorf("%s listens on %s: %t, want %t", account, subject, got, want)
		}
	}
}

// firstRefusal returns what the server refuses first: what do sends, or else what follows it
// and is always refused.
func firstRefusal(t *testing.T, nc *nats.Conn, refused chan error, do func() error) string {
	t.Helper()
	const always = "refused.always"
	if err := do(); err != nil {
		t.Fatal(err)
	}
	if err := nc.Publish(always, nil); err != nil {
		t.Fatal(err)
	}
	first := wait.For(t, refused).Error()
	for err := first; !strings.Contains(err, always); {
		err = wait.For(t, refused).Error()
	}
	return first
}

// TestRelayedMessages checks that nobody takes what the server delivered as the answer to a direct
// get for a result, a request, an event or a command. No account of a worker may make a direct get
// any more (TestWhoMayWhat): an administrator makes it here. The dead letters tell of it.
func TestRelayedMessages(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := guardedServer(t)
	runner := connectAs(ctx, t, s, "runner", "RUNNER")
	seen := decider(ctx, t, runner)
	a := forge.Attempt{Task: "fix-login-001", Step: forge.StepReview, Number: 1, Claim: 1}
	review := &forge.Review{TaskID: a.Task, Attempt: 1, Verdict: forge.VerdictApproved}
	approved, err := work.MarshalResult(forge.Result{To: key, Attempt: a, Replica: "reviewer-0", Output: review})
	if err != nil {
		t.Fatal(err)
	}
	wake, err := wire.Events.Marshal(&forge.Event{ID: "x", To: key, Message: &forge.RunAdmitted{Run: 1}})
	if err != nil {
		t.Fatal(err)
	}
	order := command(7)
	ordered, err := wire.Commands.Marshal(&order)
	if err != nil {
		t.Fatal(err)
	}
	orders, err := subjects.Groups{}.Command(&order)
	if err != nil {
		t.Fatal(err)
	}
	taken := make(chan forge.Command, 1)
	consume(t, connectAs(ctx, t, s, "analyzer", "ANALYZER"), work.Config{}, func(_ context.Context, job *work.Job) error {
		taken <- job.Command
		return nil
	})
	worker, _ := as(t, s, "implementer")
	relay, _ := as(t, s, "admin")
	for _, attack := range []struct{ stored, target string }{
		{string(wake), "forge.wake.shop.fix-login"},
		{string(ordered), orders},
		{string(approved), "forge.result.review.shop.fix-login"},
		{`{"id": "x", "to": {"intent": "fix-login"}, "approve": {"plan": "d6b94d4dcc51"}}`, "forge.intent.shop.by.ada.approve"},
		{finding, "forge.intent.shop.from.scanner.submit"},
	} {
		const place = "forge.lease.implement.shop.fix-login.-" // which an implementer may write
		if _, err := worker.RequestWithContext(ctx, place, []byte(attack.stored)); err != nil {
			t.Fatal(err)
		}
		err := relay.PublishRequest("$JS.API.DIRECT.GET.FORGE_LEASES", attack.target, []byte(`{"last_by_subj": "`+place+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		admin := connectAs(ctx, t, s, "admin", "ADMIN")
		wait.Until(t, "the dead letters tell of "+attack.target, func() bool {
			dead, err := admin.Dead(ctx)
			return err == nil && slices.ContainsFunc(dead, func(d bus.DeadLetter) bool {
				return d.Subject == attack.target && strings.Contains(d.Reason, `copy from stream "FORGE_LEASES"`)
			})
		})
	}
	if len(seen) > 0 {
		t.Errorf("a runner was given %+v", <-seen)
	}
	if len(taken) > 0 {
		t.Errorf("a worker was given %+v", <-taken)
	}
}

// TestRelayedRecords checks that nobody makes an intent by having the server relay a record to
// its journal: no reader takes the copy for a record, and the journal goes on after it.
func TestRelayedRecords(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := guardedServer(t)
	runner := connectAs(ctx, t, s, "runner", "RUNNER")
	if err := runner.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	ghost := forge.Key{Project: "shop", Intent: "ghost"}
	record := forge.Record{
		Events:  []forge.Event{{ID: "x", To: ghost, Message: &forge.Submit{Intent: forge.Intent{ID: ghost.Intent}}}},
		Summary: forge.Summary{Key: ghost, Title: "Ghost", Status: forge.StatusApproved},
	}
	data, err := wire.Records.Marshal(&record)
	if err != nil {
		t.Fatal(err)
	}
	const place = "forge.lease.implement.shop.ghost.-" // which an implementer may write
	worker, _ := as(t, s, "implementer")
	if _, err := worker.RequestWithContext(ctx, place, data); err != nil {
		t.Fatal(err)
	}
	relay, _ := as(t, s, "admin") // as no worker may any more
	err = relay.PublishRequest("$JS.API.DIRECT.GET.FORGE_LEASES", "forge.journal.shop.ghost", []byte(`{"last_by_subj": "`+place+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	var last chain.Head
	wait.Until(t, "the server has relayed it", func() bool {
		last, err = runner.Journal.Last(ctx, ghost)
		return err == nil && last.Seq > 0
	})
	servesReads(t, runner)
	person := connectAs(ctx, t, s, "ada", "ADA")
	check := func(want int) {
		t.Helper()
		records, _, err := runner.Journal.Load(ctx, ghost)
		if len(records) != want || err != nil {
			t.Errorf("%d records are loaded, want %d; %v", len(records), want, err)
		}
		list, err := runner.Journal.Summaries(ctx, "shop")
		if len(list) != want || err != nil {
			t.Errorf("%d intents are listed, want %d; %v", len(list), want, err)
		}
		if one, err := runner.Journal.Summary(ctx, ghost); (err == nil) != (want > 0) {
			t.Errorf("the summary is %+v; %v", one, err)
		}
		followed := 0
		caughtUp := errors.New("caught up")
		err = person.Journal.Follow(ctx, "shop", 0, journal.Follower{
			Record:   func(forge.Key, uint64, forge.Record) error { followed++; return nil },
			CaughtUp: func() error { return caughtUp },
		})
		if followed != want || !errors.Is(err, caughtUp) {
			t.Errorf("%d records are followed, want %d; %v", followed, want, err)
		}
	}
	check(0)
	if _, err := runner.Journal.Append(ctx, ghost, last, record); err != nil {
		t.Fatal(err)
	}
	check(1)
}
