package bus_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// leastTricks is how many distinct attempts each account makes that it must not.
const leastTricks = 300

// trick is one attempt of an account: to publish, with a subject for the answer, or to listen.
type trick struct {
	listen         bool
	subject, reply string
	data           string
	header         nats.Header
}

// about returns the trick as a line of an error.
func (tr *trick) about() string {
	if tr.listen {
		return "listens on " + tr.subject
	}
	return fmt.Sprintf("publishes on %s (answer to %q) %s", tr.subject, tr.reply, tr.data)
}

// replies are where content would do harm if the server sent it there as an answer.
var replies = []string{
	"", "_INBOX_bob.x", "_INBOX_runner.x", "forge.result.review.shop.a", "forge.intent.shop.by.bob.approve", "forge.journal.shop.a",
	"forge.wake.shop.a", "forge.command.review.any.shop.a.-.1.1", "forge.lease.review.shop.a.-", "$O.FORGE.M.eA==",
}

// calls are those of the JetStream API about a stream, with %s for its name.
var calls = []string{
	"STREAM.INFO.%s", "STREAM.CREATE.%s", "STREAM.UPDATE.%s", "STREAM.DELETE.%s", "STREAM.PURGE.%s", "STREAM.MSG.GET.%s", "STREAM.MSG.DELETE.%s",
	"STREAM.SNAPSHOT.%s", "STREAM.RESTORE.%s", "STREAM.PEER.REMOVE.%s", "STREAM.LEADER.STEPDOWN.%s",
	"DIRECT.GET.%s", "DIRECT.GET.%s.forge.journal.bank.a", "CONSUMER.CREATE.%s", "CONSUMER.CREATE.%s.x", "CONSUMER.CREATE.%s.x.forge.>",
	"CONSUMER.DURABLE.CREATE.%s.x", "CONSUMER.LIST.%s", "CONSUMER.NAMES.%s", "CONSUMER.INFO.%s.runner", "CONSUMER.DELETE.%s.runner",
	"CONSUMER.MSG.NEXT.%s.runner", "CONSUMER.PAUSE.%s.runner", "CONSUMER.UNPIN.%s.runner", "CONSUMER.RESET.%s.runner", "CONSUMER.LEADER.STEPDOWN.%s.runner",
}

// tricks returns every attempt: on each stream each call, those that answer
// with content with each reply; acknowledgements; streams that copy ours;
// schedules; objects; and what accounts publish and hear.
func tricks() []trick {
	var list []trick
	publish := func(subject, data string) { list = append(list, trick{subject: subject, data: data}) }
	listen := func(subject string) { list = append(list, trick{listen: true, subject: subject}) }
	for _, cfg := range streams.All(1) {
		for _, call := range calls {
			publish("$JS.API."+fmt.Sprintf(call, cfg.Name), "{}")
		}
		for _, reply := range replies { // of the ways to have content sent somewhere
			for _, call := range []string{"STREAM.MSG.GET.", "DIRECT.GET."} {
				list = append(list, trick{subject: "$JS.API." + call + cfg.Name, reply: reply, data: `{"seq": 1}`})
			}
			list = append(list, trick{subject: "$JS.API.CONSUMER.MSG.NEXT." + cfg.Name + ".runner", reply: reply, data: `{"batch": 1, "no_wait": true}`})
			if reply != "" { // a push consumer delivers wherever it was told to
				list = append(list, trick{
					subject: "$JS.API.CONSUMER.CREATE." + cfg.Name + ".push",
					data:    `{"stream_name": "` + cfg.Name + `", "config": {"name": "push", "deliver_subject": "` + reply + `"}}`,
				})
			}
		}
		publish("$JS.ACK."+cfg.Name+".runner.1.1.1.1.1", "+ACK")
		publish("$JS.ACK."+cfg.Name+".runner.1.1.1.1.1", "+TERM")
		publish("$JS.ACK._.hash."+cfg.Name+".runner.1.1.1.1.1.x", "-NAK")
		publish("$JS.API.STREAM.CREATE.COPY", `{"name": "COPY", "mirror": {"name": "`+cfg.Name+`"}}`)
		publish("$JS.API.STREAM.CREATE.COPY", `{"name": "COPY", "sources": [{"name": "`+cfg.Name+`"}]}`)
		publish("$JS.API.STREAM.CREATE.COPY", `{"name": "COPY", "subjects": ["copy"], "republish": {"src": ">", "dest": "`+strings.ToLower(cfg.Name)+`.>"}}`)
		listen("$JS.EVENT.ADVISORY.CONSUMER.*." + cfg.Name + ".*")
	}
	for subject := range mayPublish {
		publish(subject, "x")
	}
	for subject := range mayListen {
		listen(subject)
	}
	for _, subject := range []string{
		"forge.dead.intents.shop", "forge.dead.intents.bank", "forge.dead.commands.shop", "forge.dead.x.-", "$KV.x.y", "$O.FORGE_TRANSCRIPTS.M.x",
		"forge.timer.shop.a.y", "forge.epoch.wakes", "$SYS.REQ.ACCOUNT.PING", "$SYS.ACCOUNT.G.CONNECT", "forge.intent.bank.by.bob.cancel",
	} {
		publish(subject, "x")
		list = append(list, trick{subject: subject, data: "x", header: nats.Header{
			"Nats-Schedule": {"@at 2020-01-01T00:00:00Z"}, "Nats-Schedule-Target": {"forge.wake.shop.a"},
		}})
	}
	for _, call := range []string{"STREAM.LIST", "STREAM.NAMES", "ACCOUNT.INFO", "INFO", "SERVER.REMOVE", "META.LEADER.STEPDOWN", "ACCOUNT.STREAM.MOVE.x.y"} {
		publish("$JS.API."+call, "{}")
	}
	return list
}

// TestEveryTrick has each account try everything that its rights do not have, and the people,
// systems and followers everything on JetStream at all: the server refuses each attempt, and
// afterwards all streams, their consumers and what others hear are as before.
func TestEveryTrick(t *testing.T) {
	t.Parallel()
	s := guardedServer(t)
	accounts := guardedAccounts(t)
	tryTricks(t, s, accounts, accounts, func(account string) (*nats.Conn, chan error) { return as(t, s, account) })
}

// tryTricks does that on a server, with some of all its accounts, by connections that as makes.
func tryTricks(t *testing.T, s *server.Server, accounts, everybody []access.Account, as func(account string) (*nats.Conn, chan error)) {
	t.Helper()
	ctx := wait.Context(t)
	if err := connectAs(ctx, t, s, "admin", "ADMIN").Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	admin, _ := as("admin")
	js, err := jetstream.New(admin)
	if err != nil {
		t.Fatal(err)
	}
	before := installation(ctx, t, js)
	var harmed []*nats.Subscription
	for _, reply := range replies[1:] {
		sub, err := admin.SubscribeSync(reply)
		if err != nil {
			t.Fatal(err)
		}
		harmed = append(harmed, sub)
	}
	if err := admin.Flush(); err != nil {
		t.Fatal(err)
	}
	all := tricks()
	for _, account := range accounts {
		may := allowed(account, everybody)
		nc, refused := as(account.Name)
		tried := map[string]bool{}
		for i := range all {
			tr := &all[i]
			if may(tr) || tried[tr.about()+fmt.Sprint(tr.header)] {
				continue
			}
			tried[tr.about()+fmt.Sprint(tr.header)] = true
			if first := firstRefusal(t, nc, refused, func() error { return tr.try(nc) }); !strings.Contains(first, `"`+tr.subject+`"`) {
				t.Errorf("%s %s, and is not refused", account.Name, tr.about())
			}
		}
		if len(tried) < leastTricks {
			t.Errorf("%s tried only %d tricks; want %d at least", account.Name, len(tried), leastTricks)
		}
		if account.Role != access.Operator && account.Role != access.Submitter {
			continue
		}
		// Of these the table itself has nothing on JetStream, whatever its subjects.
		for _, r := range account.Rights(everybody) {
			for _, subject := range append(slices.Clone(r.Publish), r.Subscribe...) {
				if strings.HasPrefix(subject, "$") {
					t.Errorf("%s has the right %s", account.Name, subject)
				}
			}
		}
	}
	if after := installation(ctx, t, js); after != before {
		t.Errorf("the streams were\n%s\nand are\n%s", before, after)
	}
	for i, sub := range harmed {
		if n, _, err := sub.Pending(); n > 0 || err != nil {
			t.Errorf("%d messages came to %s, %v", n, replies[i+1], err)
		}
	}
}

// try makes the attempt; the server's word on it comes beside.
func (tr *trick) try(nc *nats.Conn) error {
	if !tr.listen {
		return nc.PublishMsg(&nats.Msg{Subject: tr.subject, Reply: tr.reply, Data: []byte(tr.data), Header: tr.header})
	}
	sub, err := nc.SubscribeSync(tr.subject)
	if err == nil {
		defer func() { _ = sub.Unsubscribe() }()
		err = nc.Flush()
	}
	return err
}

// allowed returns a function that says whether the table of rights has the subject of a trick. A
// person, a system and a follower may do only that.
func allowed(account access.Account, all []access.Account) func(*trick) bool {
	var publish, deny, listen []*regexp.Regexp
	for _, r := range account.Rights(all) {
		publish, deny, listen = append(publish, patterns(r.Publish)...), append(deny, patterns(r.Deny)...), append(listen, patterns(r.Subscribe)...)
	}
	in := func(list []*regexp.Regexp, subject string) bool {
		return slices.ContainsFunc(list, func(p *regexp.Regexp) bool { return p.MatchString(subject) })
	}
	return func(tr *trick) bool {
		if tr.listen {
			return in(listen, tr.subject)
		}
		return in(publish, tr.subject) && !in(deny, tr.subject)
	}
}

// patterns returns subjects with wildcards as patterns of subjects. A wildcard that is asked for
// counts as a token.
func patterns(subjects []string) []*regexp.Regexp {
	var list []*regexp.Regexp
	for _, s := range subjects {
		p := strings.ReplaceAll(regexp.QuoteMeta(s), `\*`, `[^.>]+`)
		if rest, ok := strings.CutSuffix(p, ">"); ok {
			p = rest + ".+"
		}
		list = append(list, regexp.MustCompile("^"+p+"$"))
	}
	return list
}

// installation returns all streams with their messages and consumers, as text.
func installation(ctx context.Context, t *testing.T, js jetstream.JetStream) string {
	t.Helper()
	var b strings.Builder
	list := js.ListStreams(ctx)
	for info := range list.Info() {
		fmt.Fprintln(&b, info.Config.Name, info.State.Msgs, info.State.LastSeq, info.State.Consumers, info.Config.Subjects)
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
