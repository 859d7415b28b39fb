package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/proof"
)

// guardedWork is a project in which two people approve what others ask for,
// with a recipe whose change is rejected.
var guardedWork = map[string]string{
	"log.txt": "begin\n",
	"pfl-forge.yaml": `base_branch: main
verify:
  - test -s log.txt
policy: {approvals: {count: 2, not_requester: true}}
recipes:
  append:
    params: [{name: LINE, question: "Which line?"}]
    run: echo "$LINE" >> log.txt
  high:
    risk: high
    run: echo high >> log.txt
  bad:
    run: echo bad >> log.txt
    check: test -e never
`,
}

// thief is somebody who has the file of one account's key, the address of the
// server and its certificate, and nothing else.
type thief struct {
	c       *cluster
	account string
	nc      *nats.Conn
	key     *proof.Key
	refused chan error
}

// newThief connects with a stolen credential.
func (c *cluster) newThief(account string) *thief {
	c.t.Helper()
	th := &thief{c: c, account: account, refused: make(chan error, 10_000)}
	var err error
	th.nc, err = c.connect(account, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		select {
		case th.refused <- err:
		default:
		}
	}))
	if err != nil {
		c.t.Fatal(err)
	}
	if th.key, err = bus.SigningKey(c.seed(account), account)(); err != nil {
		c.t.Fatal(err)
	}
	return th
}

// says publishes a message with the thief's signature, once as it is meant and
// once with the answer to go to the subject itself.
func (th *thief) says(subject, id string, data []byte) {
	th.c.t.Helper()
	m := nats.NewMsg(subject)
	m.Data, m.Reply = data, th.nc.NewInbox()
	if id != "" {
		m.Header.Set(nats.MsgIdHdr, id)
	}
	p, err := signed.Sign(th.key, &signed.Message{Subject: subject, ID: id, Payload: data}, time.Now())
	if err != nil {
		th.c.t.Fatal(err)
	}
	m.Header.Set(signed.Header, p.String())
	if err := th.nc.PublishMsg(m); err != nil {
		th.c.t.Fatal(err)
	}
}

// isRefused reports whether the server refuses to let the thief publish on a subject.
func (th *thief) isRefused(subject string) bool {
	th.c.t.Helper()
	const always = "refused.always"
	for _, s := range []string{subject, always} {
		if err := th.nc.PublishRequest(s, th.nc.NewInbox(), nil); err != nil {
			th.c.t.Fatal(err)
		}
	}
	for refused := false; ; {
		err := wait.For(th.c.t, th.refused).Error()
		if refused = refused || strings.Contains(err, `"`+subject+`"`); strings.Contains(err, always) {
			return refused
		}
	}
}

// approves has the thief approve an intent in everybody's name, on every way.
func (th *thief) approves(intent, plan string) {
	ways := []string{"by." + th.account, "by.ada", "by.bob", "by.operator", "by.ada.via.gateway", "by.bob.via.gateway", "by.operator.via.gateway", "by.runner"}
	for _, way := range ways {
		id := fmt.Sprintf("%s-%s-%s", th.account, intent, way)
		text := fmt.Sprintf(`{"id": %q, "to": {"intent": %q}, "approve": {"plan": %q}}`, id, intent, plan)
		if strings.Contains(way, "via") {
			text = strings.Replace(text, `"approve"`, `"account": "token x", "approve"`, 1)
		}
		th.says("forge.intent."+project+"."+way+".approve", "", []byte(text))
	}
	retry := fmt.Sprintf(`{"id": "%s-retry", "to": {"intent": %q}, "retry": {}}`, th.account, intent)
	th.says("forge.intent."+project+".by."+th.account+".retry", "", []byte(retry))
}

// reports has the thief report success of every step, for attempts that there
// were and are, and that there are none of.
func (th *thief) reports(intent, commit string) {
	th.c.t.Helper()
	task := forge.TaskID(intent + "-001")
	for _, step := range forge.Steps() {
		var outputs []forge.Output
		for n := 1; n <= 3; n++ {
			outputs = append(outputs,
				&forge.Review{TaskID: task, Attempt: n, Verdict: forge.VerdictApproved},
				&forge.Rebase{Base: commit, Head: commit, Tree: commit, PatchID: commit, Files: []string{"log.txt"}},
				&forge.Implementation{Base: commit, Head: commit, PatchID: commit, Commits: 1, Files: []string{"log.txt"}},
				&forge.MergeResult{Outcome: forge.MergeDone, Commit: commit, Parent: commit, Tree: commit, PatchID: commit})
		}
		for i, out := range outputs {
			for _, of := range []forge.TaskID{task, ""} {
				data, err := work.MarshalResult(forge.Result{
					To:      forge.Key{Project: project, Intent: forge.IntentID(intent)},
					Attempt: forge.Attempt{Task: of, Step: step, Number: i/4 + 1, Claim: 1}, Replica: "thief-1", Output: out,
				})
				if err != nil {
					th.c.t.Fatal(err)
				}
				th.says("forge.result."+string(step)+"."+project+"."+intent, "", data)
			}
		}
	}
}

// TestThieves gives a thief the credential of each account of an installation that works,
// the file of its key and nothing else. With it the thief has approved what waits for a
// person, reports that what was rejected is good, gives orders, writes decisions, and
// destroys what there is. The runner decides on a real server, and the repository is real:
// main stays where it was, whoever the thief is, others go on, and all that the journals
// have is proven. The gateway's power to speak for people is shown last, with that of auth
// to say who they are, and that a runner decides is left out: all three are inherent.
func TestThieves(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	c := prepareCluster(t, guardedWork)
	c.initKeys("--person", "ada", "--person", "bob")
	c.initKeys("--person", "eve", "--projects", "bank")
	c.initKeys("--follower", "tracker", "--gateway", "--backups", "--logins")
	c.attacked = true
	c.run()
	c.protect()
	for _, recipe := range []string{"high", "bad"} {
		if got := c.forge("create", recipe, "--title", recipe, "--body", "Please.", "--recipe", recipe); got.code != 0 {
			t.Fatalf("create: %+v", got)
		}
	}
	wait.Until(t, "one waits for two people, and one was rejected", func() bool {
		return c.shown("high").Waiting == "approval" && c.shown("bad").Waiting == "failed"
	})
	plan := c.shown("high").Plan
	main := c.mainBranch()

	for _, account := range []string{
		"operator", "ada", "eve", "submitter", "tracker", "analyzer", "implementer", "reviewer", "reflector", "backup", "auth",
	} {
		th := c.newThief(account)
		for _, intent := range []string{"high", "bad"} {
			th.approves(intent, plan)
			th.reports(intent, main)
		}
		th.orders(main)
		th.destroys()
		th.reads()
		if err := th.nc.FlushTimeout(wait.Patience); err != nil {
			t.Fatal(err)
		}
		th.nc.Close()
		wait.Until(t, "all that the thief said is decided", func() bool {
			got := c.forge("run")
			return got.code == 2 || got.code == 3
		})
		if now := c.mainBranch(); now != main {
			t.Fatalf("with the credential of %s main is moved from %s to %s", account, main, now)
		}
		for intent, want := range map[string]string{"high": "approval", "bad": "failed"} {
			if got := c.shown(intent).Waiting; got != want {
				t.Errorf("with the credential of %s, %s waits for %q and not for %s any more", account, intent, got, want)
			}
		}
		// Others go on.
		line := "after " + account
		if got := c.forge("create", "after-"+account, "--title", line, "--body", "Please.", "--recipe", "append", "--with", "LINE="+line); got.code != 0 {
			t.Fatalf("create: %+v", got)
		}
		wait.Until(t, line+" is merged", func() bool {
			now := c.mainBranch()
			moved := now != main
			if moved {
				main = now
			}
			return moved
		})
	}
	// The approval of the thief with ada's key counts as hers, as nothing tells
	// it from one. It takes another's.
	if got := c.forge("show", "high"); !strings.Contains(got.stdout, "1 of 2 approvals (ada)") {
		t.Errorf("high is\n%s", got.stdout)
	}
	if got := c.forge("audit-log", "verify", "--trusted-keys", filepath.Join(c.keys, "allowed_signers")); got.code != 0 {
		t.Errorf("verify: %+v", got)
	}
	r := c.clone()
	if log := r.read("log.txt"); strings.Contains(log, "high") || strings.Contains(log, "bad") || strings.Count(log, "after ") != 11 {
		t.Errorf("main has\n%s", log)
	}
	c.proven(11)

	// A gateway speaks for people: the names of two are two approvals. What was
	// rejected is not good by that.
	th := c.newThief("gateway")
	th.reports("bad", main)
	th.orders(main)
	th.destroys()
	th.reads()
	th.approves("bad", plan)
	th.approves("high", plan)
	wait.Until(t, "what two people approve through a gateway is merged", func() bool { return c.shown("high").Status == "done" })
	if got := c.shown("bad").Waiting; got != "failed" {
		t.Errorf("with the credential of the gateway, bad waits for %q", got)
	}
	c.proven(12)

	// The account auth says who is a person: two that it makes up are two
	// approvals. It says nothing else, and what was rejected stays so.
	if got := c.forge("create", "higher", "--title", "higher", "--body", "Please.", "--recipe", "high"); got.code != 0 {
		t.Fatalf("create: %+v", got)
	}
	wait.Until(t, "another one waits for two people", func() bool { return c.shown("higher").Waiting == "approval" })
	c.newThief("auth").certifies(c.shown("bad").Plan, c.shown("higher").Plan)
	wait.Until(t, "what two made-up people approve is merged", func() bool { return c.shown("higher").Status == "done" })
	if got := c.shown("bad").Waiting; got != "failed" {
		t.Errorf("with the credential of auth, bad waits for %q", got)
	}
	if got := c.forge("audit-log", "verify", "--trusted-keys", filepath.Join(c.keys, "allowed_signers")); got.code != 0 {
		t.Errorf("verify: %+v", got)
	}
	c.proven(13)
}

// standing is how an intent stands.
type standing struct{ Status, Waiting, Plan string }

// shown returns how an intent stands.
func (c *cluster) shown(intent string) (s standing) {
	c.t.Helper()
	got := c.forge("show", intent, "-o", "json")
	if got.code != 0 {
		return s
	}
	if err := json.Unmarshal([]byte(got.stdout), &s); err != nil {
		c.t.Fatalf("%v: %s", err, got.stdout)
	}
	return s
}

// mainBranch returns the newest commit of the origin's main.
func (c *cluster) mainBranch() string {
	c.t.Helper()
	head, err := os.ReadFile(filepath.Join(c.origin, "refs", "heads", "main"))
	if errors.Is(err, os.ErrNotExist) { // packed
		return strings.TrimSpace((&repo{t: c.t, dir: c.origin}).git("rev-parse", "main"))
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimSpace(string(head))
}

// orders has the thief write what runners alone write: decisions, events
// between machines, timers, commands; and have the server do so.
func (th *thief) orders(commit string) {
	th.c.t.Helper()
	subjects := []string{
		"forge.journal." + project + ".high", "forge.project." + project, "forge.wake." + project, "forge.wake." + project + ".high",
		"forge.timer." + project + ".high.x", "forge.command.merge.any." + project + ".bad.bad-001.9.1", "forge.control." + project + ".high",
		"forge.event." + project + ".high.done", "forge.refusal." + project + ".submitter", "forge.epoch.commands", "forge.intent." + project + ".submit",
	}
	for _, s := range subjects {
		if !th.isRefused(s) {
			th.c.t.Errorf("%s may publish on %s", th.account, s)
		}
		for _, from := range []string{"FORGE_LEASES", "FORGE_JOURNAL", "FORGE_TRANSCRIPTS", "OBJ_FORGE", "FORGE_HOOKS"} {
			if err := th.nc.PublishRequest("$JS.API.DIRECT.GET."+from, s, []byte(`{"seq": 1, "no_hdr": true}`)); err != nil {
				th.c.t.Fatal(err)
			}
		}
		for _, step := range forge.Steps() {
			if err := th.nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.FORGE_COMMANDS."+string(step), s, []byte(`{"batch": 9, "no_wait": true}`)); err != nil {
				th.c.t.Fatal(err)
			}
		}
	}
	_ = commit
}

// destroys has the thief take things away. Of all that, workers may purge the
// store of what they hand on to one another, and nobody anything else; nobody
// does so here, as work under way would be made anew.
func (th *thief) destroys() {
	th.c.t.Helper()
	workers := []string{"analyzer", "implementer", "reviewer", "reflector"}
	for _, stream := range []string{
		"FORGE_INTENTS", "FORGE_JOURNAL", "FORGE_PROJECTS", "FORGE_COMMANDS", "FORGE_WAKES", "FORGE_LEASES", "FORGE_DEAD", "FORGE_EVENTS",
		"FORGE_REFUSALS", "FORGE_HOOKS", "FORGE_INTAKE", "FORGE_TRANSCRIPTS", "OBJ_FORGE", "OBJ_FORGE_TRANSCRIPTS", "OBJ_FORGE_SNAPSHOTS",
	} {
		for _, call := range []string{"STREAM.DELETE.", "STREAM.PURGE.", "STREAM.MSG.DELETE.", "STREAM.UPDATE.", "STREAM.CREATE.", "STREAM.RESTORE."} {
			restores := th.account == "backup" && (call == "STREAM.RESTORE." || call == "STREAM.MSG.DELETE." && stream == "FORGE_PROJECTS")
			purges := slices.Contains(workers, th.account) && call == "STREAM.PURGE." && stream == "OBJ_FORGE"
			if restores || purges {
				continue
			}
			if !th.isRefused("$JS.API." + call + stream) {
				th.c.t.Errorf("%s may call %s%s", th.account, call, stream)
			}
			// An answer of the server without a text is a request without one.
			for _, next := range []string{"EVENTS.tracker", "COMMANDS.review", "COMMANDS.implement", "COMMANDS.analyze", "COMMANDS.open_pull"} {
				next = "FORGE_" + next
				if err := th.nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+next, "$JS.API."+call+stream, []byte(`{"batch": 1, "no_wait": true}`)); err != nil {
					th.c.t.Fatal(err)
				}
			}
		}
	}
	for _, consumer := range []string{"FORGE_INTENTS.runner", "FORGE_WAKES.runner"} {
		for _, call := range []string{"$JS.API.CONSUMER.DELETE.", "$JS.API.CONSUMER.MSG.NEXT.", "$JS.ACK."} {
			subject := call + consumer
			if call == "$JS.ACK." {
				subject += ".1.1.1.1.1"
			}
			if !th.isRefused(subject) {
				th.c.t.Errorf("%s may publish on %s", th.account, subject)
			}
		}
	}
}

// reads has the thief read what there is, and checks who reads what.
func (th *thief) reads() {
	th.c.t.Helper()
	all := []string{"analyzer", "implementer", "reviewer", "reflector"}
	for what, who := range map[string][]string{
		"$JS.API.STREAM.MSG.GET.FORGE_JOURNAL":                 append(slices.Clone(all), "gateway", "backup"),
		"$JS.API.STREAM.MSG.GET.FORGE_PROJECTS":                append(slices.Clone(all), "gateway", "backup"),
		"$JS.API.STREAM.MSG.GET.FORGE_TRANSCRIPTS":             all,
		"$JS.API.STREAM.MSG.GET.OBJ_FORGE":                     all,
		"$JS.API.STREAM.MSG.GET.FORGE_COMMANDS":                all,
		"$JS.API.STREAM.MSG.GET.FORGE_EVENTS":                  {"gateway"},
		"$JS.API.STREAM.MSG.GET.FORGE_HOOKS":                   {"gateway"},
		"$JS.API.STREAM.MSG.GET.FORGE_INTAKE":                  {"gateway"},
		"$JS.API.STREAM.MSG.GET.FORGE_INTENTS":                 nil,
		"$JS.API.STREAM.MSG.GET.FORGE_DEAD":                    nil,
		"$JS.API.STREAM.SNAPSHOT.FORGE_JOURNAL":                {"backup"},
		"forge.api." + project + ".by.operator.read":           {"operator"},
		"forge.api." + project + ".by." + th.account + ".read": {"operator", "ada"},
	} {
		if refused := th.isRefused(what); refused == slices.Contains(who, th.account) {
			th.c.t.Errorf("%s is refused %s: %t", th.account, what, refused)
		}
	}
}
