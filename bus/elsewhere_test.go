package bus_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// protected are subjects of all families on which an account may have the
// server put an answer, whatever the account may publish.
var protected = []string{
	"forge.result.review.shop.fix-login", "forge.result.merge.shop.fix-login",
	"forge.intent.shop.by.ada.approve", "forge.intent.bank.by.bob.cancel", "forge.intent.shop.from.scanner.submit", "forge.intent.shop.submit",
	"forge.intent.shop.by.ada.via.gateway.approve", "forge.api.shop.by.ada.clean", "forge.api.shop.from.scanner.submit", "forge.api.shop.by.ada.read",
	"forge.journal.shop.fix-login", "forge.project.shop", "forge.journal.bank.fix-login", "forge.journal.shop.ghost",
	"forge.wake.shop.fix-login", "forge.wake.shop", "forge.timer.shop.fix-login.x", "forge.epoch.wakes",
	"forge.command.merge.any.shop.fix-login.fix-login-001.1.1", "forge.command.review.on.reviewer-0.shop.fix-login.fix-login-001.1.1",
	"forge.lease.implement.shop.fix-login.fix-login-001", "forge.control.shop.fix-login", "forge.cleaned.shop", "forge.progress.shop.fix-login",
	"forge.event.shop.fix-login.done", "forge.refusal.shop.scanner", "forge.hook.github.x", "forge.dead.intents.shop",
	"forge.transcript.shop.fix-login.fix-login-001.review.1.1", "_INBOX_runner.x", "_INBOX_ada.x", "_INBOX_services.x", "$SRV.PING", "$SRV.INFO",
}

// callsOfTheServer are those that would destroy something if the server took one of its own
// answers for a request. Their answers have no text, or one that the server itself has written.
var callsOfTheServer = []string{
	"$JS.API.STREAM.DELETE.FORGE_JOURNAL", "$JS.API.STREAM.PURGE.FORGE_JOURNAL", "$JS.API.STREAM.MSG.DELETE.FORGE_JOURNAL",
	"$JS.API.STREAM.DELETE.FORGE_INTENTS", "$JS.API.STREAM.PURGE.FORGE_INTENTS", "$JS.API.STREAM.MSG.DELETE.FORGE_PROJECTS",
	"$JS.API.STREAM.PURGE.OBJ_FORGE_TRANSCRIPTS", "$JS.API.STREAM.DELETE.OBJ_FORGE", "$JS.API.STREAM.PURGE.OBJ_FORGE", "$JS.API.STREAM.DELETE.FORGE_EVENTS",
	"$JS.API.CONSUMER.DELETE.FORGE_INTENTS.runner", "$JS.API.CONSUMER.DELETE.FORGE_WAKES.runner", "$JS.API.CONSUMER.DELETE.FORGE_COMMANDS.review",
	"$JS.API.CONSUMER.RESET.FORGE_INTENTS.runner", "$JS.API.STREAM.UPDATE.FORGE_JOURNAL", "$JS.API.STREAM.CREATE.COPY",
	"$JS.ACK.FORGE_INTENTS.runner.1.1.1.1.0", "$JS.ACK.FORGE_COMMANDS.review.1.1.1.1.0",
}

// elicit is a request that has the server answer.
type elicit struct {
	subject string
	data    string
	header  nats.Header
}

// placed is a text of an attacker, which would be obeyed as it is if it came
// where it is not allowed.
type placed struct{ about, data string }

// instead returns what a thief would have in place of answers: true messages of
// each kind, with the right hash for the journal.
func instead(t *testing.T, head chain.Head) (list []placed) {
	t.Helper()
	must := func(about string, data []byte, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, placed{about, string(data)})
	}
	ev := forge.Event{ID: "x", To: key, Message: &forge.RunAdmitted{Run: 1}}
	data, err := wire.Events.Marshal(&ev)
	must("an event", data, err)
	ev = forge.Event{ID: "y", To: forge.Key{Project: key.Project}, Actor: string(key.Intent), Message: &forge.QueueMerge{Task: "fix-login-001"}}
	data, err = wire.Events.Marshal(&ev)
	must("a merge", data, err)
	order := command(1)
	order.Attempt.Step, order.Input = forge.StepMerge, &forge.MergeInput{}
	data, err = wire.Commands.Marshal(&order)
	must("a command", data, err)
	data, err = work.MarshalResult(forge.Result{
		To: key, Attempt: forge.Attempt{Task: "fix-login-001", Step: forge.StepReview, Number: 1, Claim: 1}, Replica: "reviewer-0",
		Output: &forge.Review{TaskID: "fix-login-001", Attempt: 1, Verdict: forge.VerdictApproved},
	})
	must("a result", data, err)
	rec := record(key, 2)
	rec.Previous = head.Next("forge.journal.shop.fix-login").String()
	data, err = wire.Records.Marshal(&rec)
	must("a record", data, err)
	list = append(list, placed{"a mark", fmt.Sprintf(`{"set_aside":{"sequence":%d,"hash":"%s","by":"eve"}}`, head.Seq, head.Hash)},
		placed{"an approval", `{"id": "z", "to": {"intent": "fix-login"}, "approve": {"plan": "d6b94d4dcc51"}}`}, placed{"a submission", finding})
	return list
}

// place returns the beginning of subjects on which an account may store
// anything: leases of one of its steps; empty if it has none.
func place(account access.Account) string {
	for _, step := range forge.Steps() {
		if step.Service() == account.Name {
			return "forge.lease." + string(step) + ".shop.fix-login."
		}
	}
	return ""
}

// elicits returns what an account may ask for that is answered: a request of
// each right. Of messages that are stored it asks for its own texts, too.
func elicits(account access.Account, everybody []access.Account, texts int) (list []elicit) {
	may := allowed(account, everybody)
	add := func(subject string, bodies ...string) {
		for _, body := range bodies {
			if may(&trick{subject: subject}) {
				list = append(list, elicit{subject: subject, data: body})
			}
		}
	}
	var own []string
	for i := range texts {
		own = append(own, fmt.Sprintf(`{"last_by_subj":"%st%d","no_hdr":true}`, place(account), i), fmt.Sprintf(`{"last_by_subj":"%st%d"}`, place(account), i))
	}
	own = append(own, `{"seq":1}`, `{"seq":1,"no_hdr":true}`, `{"seq":1000000}`, ``, `{"seq":1,"batch":500,"next_by_subj":">"}`, `{"multi_last":[">"]}`)
	for _, r := range account.Rights(everybody) {
		for _, right := range r.Publish {
			subject := concrete(right)
			call, isAPI := strings.CutPrefix(subject, "$JS.API.")
			switch {
			case strings.HasPrefix(subject, "forge.api.") && !strings.HasSuffix(subject, ".submit"):
				// Runners answer these themselves, in the asker's inbox alone:
				// TestReadsAreAnsweredToTheAsker.
			case !isAPI && !strings.HasPrefix(subject, "$JS."):
				add(subject, finding)
				for _, header := range []nats.Header{{nats.ExpectedLastMsgIdHdr: {groupIn()}}, {nats.ExpectedLastSeqHdr: {"1000000"}}} {
					list = append(list, elicit{subject: subject, header: header})
				}
			case strings.HasPrefix(call, "STREAM.MSG.GET."), strings.HasPrefix(call, "DIRECT.GET."):
				add(subject, own...)
			case strings.HasPrefix(call, "CONSUMER.MSG.NEXT."):
				for _, name := range consumersOf(right) {
					add("$JS.API.CONSUMER.MSG.NEXT."+name, `{"batch":1,"no_wait":true}`, `{"batch":3,"no_wait":true}`, `{"batch":1,"expires":1000000}`, `{`,
						`{"batch":-1}`, ``, `{"batch":1,"expires":40000000,"idle_heartbeat":15000000}`)
				}
			case strings.HasPrefix(call, "CONSUMER.CREATE."): // see pushes
			case strings.HasPrefix(call, "STREAM.PURGE."):
				add(subject, `{"filter":"none"}`)
			case call == "STREAM.SNAPSHOT."+streams.Events: // of the others it is the same, and each keeps its stream busy
				add(subject, `{"deliver_subject":"forge.journal.shop.fix-login"}`, `{"deliver_subject":"forge.wake.shop.fix-login"}`)
			case strings.HasPrefix(call, "STREAM.SNAPSHOT."):
			case strings.HasPrefix(call, "STREAM.MSG.DELETE."), strings.HasPrefix(call, "STREAM.RESTORE."), strings.HasPrefix(call, "STREAM.DELETE."):
				// its own doing, and not its answer's
			case isAPI:
				add(subject, "{}")
			}
		}
	}
	return list
}

// pushes returns what makes consumers, one for each subject, that deliver to it: a consumer
// delivers where its maker says, and says that there is nothing where there is nothing. They are
// those of groups and replicas of the account's first step: of which there can be any number.
func pushes(account access.Account) (list []elicit) {
	for _, step := range forge.Steps() {
		if step.Service() != account.Name || place(account) != "forge.lease."+string(step)+".shop.fix-login." {
			continue
		}
		for i, target := range append(slices.Clone(protected), callsOfTheServer...) {
			name, filter := fmt.Sprint("p", i), fmt.Sprintf("forge.command.%s.%s.p%d.>", step, []string{"in", "on"}[i%2], i)
			beats := `"idle_heartbeat":100000000,"flow_control":true,`
			if strings.HasPrefix(target, "forge.") || strings.HasPrefix(target, "$O.") {
				beats = "" // where they are stored, they would come for as long as the test counts
			}
			list = append(list, elicit{
				subject: "$JS.API.CONSUMER.CREATE.FORGE_COMMANDS." + name + "." + filter,
				data: fmt.Sprintf(`{"stream_name":"FORGE_COMMANDS","config":{%s"name":%q,"deliver_subject":%q,"filter_subject":%q,"ack_policy":"explicit"}}`,
					beats, name, target, filter),
			})
		}
	}
	return list
}

// concrete returns a subject that a right has.
func concrete(right string) string {
	names := []string{"shop", "fix-login", "fix-login-001", "x", "1", "1"}
	if strings.HasPrefix(right, "$") || strings.HasPrefix(right, "_") {
		names = []string{"x", "x", "x"}
	}
	if strings.HasPrefix(right, "forge.lease.") {
		names[2] = "-"
	}
	n := 0
	tokens := strings.Split(right, ".")
	for i, token := range tokens {
		switch token {
		case "*":
			tokens[i] = names[min(n, len(names)-1)]
			n++
		case ">":
			tokens[i] = "x"
		}
	}
	return strings.Join(tokens, ".")
}

// consumersOf returns the consumers of a right to take messages, each behind its stream.
func consumersOf(right string) (list []string) {
	stream, name, _ := strings.Cut(strings.TrimPrefix(right, "$JS.API.CONSUMER.MSG.NEXT."), ".")
	if name != "*" {
		return []string{stream + "." + name}
	}
	for _, step := range forge.Steps() {
		list = append(list, stream+"."+string(step))
	}
	return append(list, stream+".x")
}

// TestAnswersElsewhere has the account of each role, runners apart, ask for everything that it may
// ask for, with the answer to go to a subject of each protected family, and store true messages of
// every kind where it may store anything: nothing is decided, journaled, ordered or destroyed by
// that, and of the places themselves only what the server says, or the commands of one's own
// steps, gets there. A runner's account is left out: all that is protected here is its word.
func TestAnswersElsewhere(t *testing.T) {
	t.Parallel()
	accounts := guardedAccounts(t)
	for _, account := range accounts {
		if account.Role == access.Runner {
			continue
		}
		t.Run(account.Name, func(t *testing.T) {
			t.Parallel()
			e := newElsewhere(t)
			nc := e.asThief(t, account.Name)
			texts := instead(t, e.head)
			for i, text := range texts {
				if at := place(account); at != "" {
					if _, err := nc.RequestWithContext(wait.Context(t), fmt.Sprint(at, "t", i), []byte(text.data)); err != nil {
						t.Fatal(err)
					}
				}
			}
			asked := elicits(account, accounts, len(texts))
			tried := 0
			for _, push := range pushes(account) {
				if account.Role == access.Gateway {
					break // it makes none: TestForAnyone
				}
				answer, err := nc.RequestWithContext(wait.Context(t), push.subject, []byte(push.data))
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Contains(answer.Data, []byte(`"error"`)) {
					tried++
				}
			}
			for n, target := range append(slices.Clone(protected), callsOfTheServer...) {
				for i, ask := range asked {
					if n < len(protected) && inJSON(ask.subject) && (i+n)%max(1, len(asked)/12) != 0 {
						continue // all are alike, and what is stored is read again below
					}
					if err := nc.PublishMsg(&nats.Msg{Subject: ask.subject, Reply: target, Data: []byte(ask.data), Header: ask.header}); err != nil {
						t.Fatal(err)
					}
					tried++
				}
				if err := nc.FlushWithContext(wait.Context(t)); err != nil {
					t.Fatal(err)
				}
			}
			e.check(t)
			t.Logf("%d requests, each answered to %d subjects: %d", len(asked), len(protected)+len(callsOfTheServer), tried)
		})
	}
}
