package bus_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestReadFlood checks that one who reads as much as there is does not keep others from reading,
// nor a runner from deciding, and is told so.
func TestReadFlood(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	r := newReadable(t)
	inbox := r.raw.NewInbox()
	answers, err := r.raw.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	const flood = 2000
	for range flood {
		err := r.raw.PublishRequest("forge.api.shop.by.ada.read", inbox, []byte(`{"read": "next", "subject": "forge.journal.shop.*", "after": 9999, "wait": true}`))
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := 0
	for refused < flood/2 { // at once, not when the others have waited
		m, err := answers.NextMsg(wait.Patience)
		if err != nil {
			t.Fatal(err)
		}
		if m.Header.Get(micro.ErrorCodeHeader) == "429" {
			refused++
		}
	}
	bob, err := nats.Connect(r.raw.ConnectedUrl(), nats.UserInfo("bob", "BOB"), nats.CustomInboxPrefix("_INBOX_bob"))
	if err != nil {
		t.Fatal(err)
	}
	defer bob.Close()
	list, _ := ask(t, bob, "forge.api.bank.by.bob.read", `{"read": "last", "subject": "forge.journal.bank.fix-login"}`)
	if len(list) != 1 {
		t.Errorf("bob reads %d messages", len(list))
	}
	if seq := r.append(t, forge.Key{Project: "shop", Intent: "decided"}, chain.Head{}, "Decided"); seq.Seq == 0 {
		t.Error("nothing is decided")
	}
	wait.Until(t, "she reads again", func() bool { _, err := r.ada.Journal.Summaries(ctx, "shop"); return err == nil })
}

// TestReadsAreAnsweredToTheAsker checks that a read, a list and a decision are answered in no inbox
// but that of whoever asks.
func TestReadsAreAnsweredToTheAsker(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := guardedServer(t)
	decider(ctx, t, connectAs(ctx, t, s, "runner", "RUNNER"))
	ada, _ := as(t, s, "ada")
	spy, _ := as(t, s, "admin")
	targets := []string{
		"_INBOX_bob.x", "_INBOX_runner.x", "_INBOX_services.x", "_INBOX_scanner.x", "_INBOX_ada", "_INBOX_adam.x", "_INBOXx", "forge.wake.shop.a",
		"forge.command.review.any.shop.a.-.1.1", "forge.journal.shop.a", "forge.result.review.shop.a", "$JS.API.STREAM.PURGE.FORGE_COMMANDS",
	}
	var heard []*nats.Subscription
	for _, subject := range targets {
		sub, err := spy.SubscribeSync(subject)
		if err != nil {
			t.Fatal(err)
		}
		heard = append(heard, sub)
	}
	if err := spy.Flush(); err != nil {
		t.Fatal(err)
	}
	own := func(subject, data string) bool {
		m, err := ada.Request(subject, []byte(data), wait.Patience)
		return err == nil && m.Header.Get(micro.ErrorCodeHeader) == ""
	}
	requested := map[string]string{
		"forge.api.shop.by.ada.read": `{"read": "idle"}`, "forge.api.shop.by.ada.list": "{}", "forge.api.shop.by.ada.services": `{"brief": true}`,
	}
	for subject, data := range requested {
		wait.Until(t, "a runner answers", func() bool { return own(subject, data) })
		for _, target := range targets {
			if err := ada.PublishRequest(subject, target, []byte(data)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, target := range targets {
		m := nats.NewMsg("forge.intent.shop.by.ada.cancel")
		m.Header.Set("Forge-Reply", target)
		m.Data = fmt.Appendf(nil, `{"id": "c%d", "to": {"intent": "a"}, "cancel": {}}`, i)
		if _, err := ada.RequestMsgWithContext(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	for subject, data := range requested { // after the others
		wait.Until(t, "a runner answers", func() bool { return own(subject, data) })
	}
	if err := spy.Flush(); err != nil {
		t.Fatal(err)
	}
	for i, sub := range heard {
		if m, err := sub.NextMsg(50 * time.Millisecond); err == nil {
			t.Errorf("%s got %q", targets[i], m.Data)
		}
	}
}
