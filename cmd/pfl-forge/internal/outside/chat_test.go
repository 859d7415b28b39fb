package outside

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/notify"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat/slack"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat/slack/slacktest"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// chatWorld is an installation with a workspace of Slack: a runner, a gateway
// with the door for what people press, and watchers.
type chatWorld struct {
	*world

	slack *slacktest.Fake
	dir   string
	// alone says that no other workspace is configured.
	alone bool
}

// accounts are those of people at Slack, by their entries in the file of tokens.
var accounts = map[string]string{"ada": "U0ADA0001", "bob": "U0BOB0001", "viewer": "U0VIC0001"}

// withSlack starts everything but a watcher.
func withSlack(t *testing.T) *chatWorld {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"secret": slacktest.Secret, "bot": slacktest.BotToken, "app": slacktest.AppToken,
		"hooks.yaml": "hooks:\n  - {name: presses, kind: slack, secrets: [" + filepath.Join(dir, "secret") + "]}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := &chatWorld{slack: slacktest.New(), dir: dir}
	t.Cleanup(w.slack.Close)
	w.world = start(t, gateway.Settings{Hooks: filepath.Join(dir, "hooks.yaml")})
	return w
}

// decided is withSlack with a runner.
func decided(t *testing.T) *chatWorld {
	t.Helper()
	w := withSlack(t)
	w.decides(quota.Limits{})
	return w
}

// client returns a client of the workspace.
func (w *chatWorld) client() *slack.Client {
	w.t.Helper()
	c, err := slack.New(slack.Config{
		URL: w.slack.URL(), Team: slacktest.Team, Alone: w.alone, TokenFile: filepath.Join(w.dir, "bot"), AppTokenFile: filepath.Join(w.dir, "app"),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// config returns the settings of a watcher with a bus of its own.
func (w *chatWorld) config(c chat.Chat) chat.Config {
	w.t.Helper()
	b := w.nats.Connect(w.t)
	log := slog.New(slog.NewTextHandler(w.log, nil))
	book, err := tokens.Open(w.file, log, time.Now)
	if err != nil {
		w.t.Fatal(err)
	}
	return chat.Config{
		Name: "work", Gateway: "gateway", Chat: c, Team: slacktest.Team, Hooks: []string{"presses"}, Link: "https://forge.example.com",
		Channels: []chat.Channel{{
			ID: slacktest.Channel, Projects: []forge.ProjectID{"shop"}, Submit: "shop",
			On: []notify.Kind{notify.KindWaiting, notify.KindBudget, notify.KindFailed},
		}},
		API: api.New(api.Config{Bus: b, Account: "gateway", Tokens: book, Log: log}), Tokens: book,
		Submissions: b.Submissions, Deliveries: b.Deliveries, Changes: b.Changes, Log: log,
		Words: chat.Words{Secrets: redact.New()}, Every: time.Hour, Debounce: 20 * time.Millisecond, Pace: time.Millisecond, Lease: 2 * time.Second,
	}
}

// watch runs a watcher until what it returns is called, or the test ends.
func (w *chatWorld) watch(cfg chat.Config) (stop func()) {
	w.t.Helper()
	return w.loop(chat.New(cfg).Run)
}

// loop runs something until what it returns is called, or the test ends.
func (w *chatWorld) loop(run func(context.Context) error) (stop func()) {
	w.t.Helper()
	return runs(w.t, run)
}

// message waits for the only message of the channel to hold a text, and returns it.
func (w *chatWorld) message(text string) (m slacktest.Message) {
	w.t.Helper()
	wait.Until(w.t, "the message says "+text, func() bool {
		list := w.slack.Messages()
		if len(list) > 1 {
			w.t.Fatalf("there are %d messages: %+v", len(list), list)
		}
		if len(list) == 0 || !strings.Contains(list[0].Shown, text) {
			return false
		}
		m = list[0]
		return true
	})
	return m
}

// deliver sends a form to the door, as Slack does, and returns the status.
func (w *chatWorld) deliver(form url.Values) int {
	w.t.Helper()
	r, err := slacktest.Signed(wait.Context(w.t), w.base+"/hooks/presses", slacktest.Secret, form, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// press has a person press a button of a message.
func (w *chatWorld) press(who string, m *slacktest.Message, label string) {
	w.t.Helper()
	b, ok := m.Button(label)
	if !ok {
		w.t.Fatalf("there is no button %q: %+v", label, m.Buttons)
	}
	payload := w.slack.Press(accounts[who], slacktest.Team, m, b)
	if got := w.deliver(slacktest.Form(payload)); got != http.StatusOK {
		w.t.Fatalf("Slack is answered with %d", got)
	}
}

// told waits for a person to be told a text, alone.
func (w *chatWorld) told(who, text string) {
	w.t.Helper()
	id := accounts[who]
	if id == "" {
		id = who
	}
	wait.Until(w.t, who+" is told "+text, func() bool { return strings.Contains(strings.Join(w.slack.Told(id), "\n"), text) })
}

// shown returns the fields of an intent.
func (w *chatWorld) shown(path string) map[string]any {
	return w.request("ada", http.MethodGet, path, "").body
}

// events returns the decisions of a kind in the journal of an intent.
func events[M forge.Message](w *chatWorld, path string) (list []forge.Event) {
	w.t.Helper()
	key := forge.Key{Project: "shop", Intent: forge.IntentID(path[strings.LastIndexByte(path, '/')+1:])}
	records, _, err := w.bus.Journal.Load(wait.Context(w.t), key)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range records {
		for _, ev := range r.Events {
			if _, ok := ev.Message.(M); ok {
				list = append(list, ev)
			}
		}
	}
	return list
}

// TestChatApproves: what waits is in the channel, once; a person approves it there
// in their own name, through the gateway, and the message says how it goes on.
func TestChatApproves(t *testing.T) {
	t.Parallel()
	w := decided(t)
	w.watch(w.config(w.client()))
	path, plan := w.proposed("approve")
	m := w.message("waits for approval")
	if !strings.Contains(m.Shown, "Risky") || !strings.Contains(m.Shown, plan[:12]) || !strings.Contains(m.Shown, "Asked for by ada") {
		t.Errorf("the message says %q", m.Shown)
	}
	w.press("bob", &m, "Approve")
	wait.Until(t, "it is approved", func() bool { return w.shown(path)["waiting"] != "approval" })
	w.message("is executing")
	list := events[*forge.Approve](w, path)
	if len(list) != 1 {
		t.Fatalf("it was approved %d times", len(list))
	}
	ev := list[0]
	if ev.Actor != "bob" || ev.Via != "gateway" || !strings.Contains(ev.Account, accounts["bob"]) || !strings.Contains(ev.Account, slacktest.Team) ||
		!strings.Contains(ev.Ref, slacktest.Channel) || !strings.Contains(ev.Ref, m.TS) || forge.As[*forge.Approve](ev.Message).Plan != plan {
		t.Errorf("it was approved by %+v", ev)
	}
	if said := w.slack.Told(accounts["bob"]); len(said) != 0 {
		t.Errorf("bob was told %q", said)
	}
}

// TestChatWords: what needs words is asked for in a dialog: changes of a plan,
// a reason for an end. The words are the person's.
func TestChatWords(t *testing.T) {
	t.Parallel()
	w := withSlack(t)
	w.analysis = func(c *forge.Command) *forge.Analysis {
		out := &forge.Analysis{Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}}}
		if c.Wish != nil {
			out.Tasks[0].Title = c.Wish.Words
		}
		return out
	}
	w.decides(quota.Limits{})
	w.watch(w.config(w.client()))
	path, _ := w.proposed("words")
	m := w.message("waits for approval")
	w.press("bob", &m, "Ask for changes")
	view := w.view(1)
	if got := w.deliver(slacktest.Form(w.slack.Submit(accounts["bob"], view, "Keep the <old> name."))); got != http.StatusOK {
		t.Fatalf("the dialog is answered with %d", got)
	}
	wait.Until(t, "changes are asked for", func() bool { return len(events[*forge.RequestChanges](w, path)) == 1 })
	if ev := events[*forge.RequestChanges](w, path)[0]; ev.Actor != "bob" || forge.As[*forge.RequestChanges](ev.Message).Words != "Keep the <old> name." {
		t.Errorf("asked for is %+v", ev)
	}
	again := w.message("Keep the &lt;old&gt; name.")
	w.press("bob", &again, "Reject")
	w.deliver(slacktest.Form(w.slack.Submit(accounts["bob"], w.view(2), "")))
	w.message("is rejected")
	if m := w.message("is rejected"); len(m.Buttons) != 1 { // the link
		t.Errorf("one that ended has the buttons %+v", m.Buttons)
	}
}

// view waits for the n-th dialog.
func (w *chatWorld) view(n int) slacktest.View {
	w.t.Helper()
	wait.Until(w.t, "a dialog opens", func() bool { return len(w.slack.Views()) >= n })
	return w.slack.Views()[n-1]
}

// TestChatAnswers: a question is answered by a suggestion and in words.
func TestChatAnswers(t *testing.T) {
	t.Parallel()
	w := withSlack(t)
	w.analysis = func(c *forge.Command) *forge.Analysis {
		if len(c.Intent.Clarifications) == 0 {
			return &forge.Analysis{Clarifications: []forge.Clarification{
				{Question: "Which <!channel> one?", SuggestedAnswers: []string{"blue", "red"}}, {Question: "How many?"},
			}}
		}
		return &forge.Analysis{Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{
			Name: "one", Title: "paint: " + *c.Intent.Clarifications[0].Answer + " " + *c.Intent.Clarifications[1].Answer,
		}}}
	}
	w.decides(quota.Limits{})
	w.watch(w.config(w.client()))
	w.request("ada", http.MethodPost, intents, `{"title": "Paint", "body": "Paint it."}`).wants(t, "submit", http.StatusCreated)
	m := w.message("Question 2: How many?")
	w.press("ada", &m, "red")
	wait.Until(t, "one question is left", func() bool {
		m = w.message("waits")
		return !strings.Contains(m.Shown, "Question 1")
	})
	w.press("ada", &m, "Answer 2…")
	view := w.view(1)
	w.deliver(slacktest.Form(w.slack.Submit(accounts["ada"], view, " Approve")))
	w.told("ada", "a change is approved in the console, where it is shown")
	w.deliver(slacktest.Form(w.slack.Submit(accounts["ada"], view, "two")))
	w.message("paint: red two")
}

// TestChatSubmits: a command asks for a change where the channel allows it, in
// the person's name, once.
func TestChatSubmits(t *testing.T) {
	t.Parallel()
	w := decided(t)
	w.watch(w.config(w.client()))
	form := w.slack.Command(accounts["ada"], slacktest.Channel, "Mend the cart\nIt loses <items>.")
	for range 2 {
		if got := w.deliver(form); got != http.StatusOK {
			t.Fatalf("the command is answered with %d", got)
		}
	}
	w.told("ada", "It is asked for, as shop/")
	m := w.message("Mend the cart")
	w.deliver(w.slack.Command(accounts["viewer"], slacktest.Channel, "Do it"))
	w.told("viewer", "may not submit")
	w.deliver(w.slack.Command(accounts["ada"], "C0OTHER01", "Do it"))
	w.told("ada", "Nothing is decided from this channel")
	w.deliver(w.slack.Command(accounts["ada"], slacktest.Channel, "  "))
	w.told("ada", "Say what is to be done")
	var listed struct{ Intents []struct{ Requester string } }
	if err := json.Unmarshal([]byte(w.request("ada", http.MethodGet, intents, "").text), &listed); err != nil {
		t.Fatal(err)
	}
	if len(listed.Intents) != 1 || listed.Intents[0].Requester != "ada" || m.TS == "" {
		t.Errorf("there are %+v", listed)
	}
}

// decode reads the JSON of a request.
func decode(r *http.Request, into any) { _ = json.NewDecoder(r.Body).Decode(into) }
