package outside

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat/slack"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat/slack/slacktest"
)

// TestChatStrangers: who is in no mapping, comes from another team, lacks the
// role, is a system, or acts elsewhere decides nothing, and is told so alone.
func TestChatStrangers(t *testing.T) {
	t.Parallel()
	w := decided(t)
	w.watch(w.config(w.client()))
	path, _ := w.proposed("strangers")
	m := w.message("waits for approval")
	b, _ := m.Button("Approve")
	elsewhere := m
	elsewhere.Channel = "C0OTHER01"
	bank := b
	bank.Value = strings.Replace(b.Value, `"p":"shop"`, `"p":"bank"`, 1)
	for _, one := range []struct {
		user, home string
		m          *slacktest.Message
		b          slacktest.Button
		want       string
	}{
		{"U0EVE0001", slacktest.Team, &m, b, "is not known here"},
		{accounts["bob"], "T0OTHER01", &m, b, "is not known here"},
		{accounts["viewer"], slacktest.Team, &m, b, "may not approve"},
		{accounts["bob"], slacktest.Team, &m, bank, "Nothing is decided from this channel"},
	} {
		before := len(w.slack.Told(one.user))
		if got := w.deliver(slacktest.Form(w.slack.Press(one.user, one.home, one.m, one.b))); got != http.StatusOK {
			t.Errorf("%s of %s is answered with %d", one.user, one.home, got)
		}
		wait.Until(t, one.user+" is told", func() bool { return len(w.slack.Told(one.user)) > before })
		if said := w.slack.Told(one.user)[before]; !strings.Contains(said, one.want) {
			t.Errorf("%s of %s is told %q, want %q", one.user, one.home, said, one.want)
		}
	}
	// What is told to nobody, since nothing is known of where: it is in the log.
	w.deliver(slacktest.Form(w.slack.Press(accounts["bob"], slacktest.Team, &elsewhere, b)))
	for name, value := range map[string]string{"garbage": "x", "another": `{"p":"shop","i":"fix","do":"destroy","s":"00"}`} {
		b.Value = value
		if got := w.deliver(slacktest.Form(w.slack.Press(accounts["bob"], slacktest.Team, &m, b))); got != http.StatusOK {
			t.Errorf("%s is answered with %d", name, got)
		}
	}
	wait.Until(t, "they are read", func() bool { return strings.Count(w.log.String(), "cannot read what came from a chat") == 2 })
	if len(events[*forge.Approve](w, path)) != 0 || w.shown(path)["waiting"] != "approval" {
		t.Error("a stranger decided")
	}
}

// TestChatForgeries: a signature of another secret, an old time, a body that
// was changed, a repetition and a body of any size decide nothing.
func TestChatForgeries(t *testing.T) {
	t.Parallel()
	w := decided(t)
	w.watch(w.config(w.client()))
	path, _ := w.proposed("forgeries")
	m := w.message("waits for approval")
	b, _ := m.Button("Approve")
	form := slacktest.Form(w.slack.Press(accounts["bob"], slacktest.Team, &m, b))
	for what, one := range map[string]struct {
		secret string
		form   url.Values
		at     time.Time
		change func(*http.Request)
		want   int
	}{
		"another secret": {strings.Repeat("1", 32), form, time.Now(), nil, http.StatusUnauthorized},
		"an old time":    {slacktest.Secret, form, time.Now().Add(-6 * time.Minute), nil, http.StatusUnauthorized},
		"a later time":   {slacktest.Secret, form, time.Now().Add(6 * time.Minute), nil, http.StatusUnauthorized},
		"another time": {slacktest.Secret, form, time.Now().Add(-time.Minute), func(r *http.Request) {
			r.Header.Set("X-Slack-Request-Timestamp", "1")
		}, http.StatusUnauthorized},
		"no signature": {slacktest.Secret, form, time.Now(), func(r *http.Request) { r.Header.Del("X-Slack-Signature") }, http.StatusUnauthorized},
		"a huge body":  {slacktest.Secret, url.Values{"payload": {strings.Repeat("x", 2<<20)}}, time.Now(), nil, http.StatusRequestEntityTooLarge},
	} {
		r, err := slacktest.Signed(wait.Context(t), w.base+"/hooks/presses", one.secret, one.form, one.at)
		if err != nil {
			t.Fatal(err)
		}
		if one.change != nil {
			one.change(r)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != one.want {
			t.Errorf("%s is answered with %d, want %d", what, resp.StatusCode, one.want)
		}
	}
	if w.shown(path)["waiting"] != "approval" {
		t.Fatal("a forgery decided")
	}
	// The very same request counts once, however often it comes.
	at := time.Now()
	for range 3 {
		r, err := slacktest.Signed(wait.Context(t), w.base+"/hooks/presses", slacktest.Secret, form, at)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
			t.Errorf("a repetition is answered with %d", resp.StatusCode)
		}
	}
	w.message("is executing")
	if n := len(events[*forge.Approve](w, path)); n != 1 || len(w.slack.Told(accounts["bob"])) != 0 {
		t.Errorf("it was approved %d times, and bob was told %q", n, w.slack.Told(accounts["bob"]))
	}
}

// TestChatStale: a press on what is not there any more decides nothing, its person is told so, and
// the message is the newest. The same holds for words that were typed for it, which are not lost.
func TestChatStale(t *testing.T) {
	t.Parallel()
	w := decided(t)
	stop := w.watch(w.config(w.client()))
	path, plan := w.proposed("stale")
	old := w.message("waits for approval")
	w.press("bob", &old, "Ask for changes")
	view := w.view(1)
	stop()
	w.request("ada", http.MethodPost, path+"/edit", `{"body": "Do something else."}`).wants(t, "edit", http.StatusOK)
	wait.Until(t, "there is another plan", func() bool {
		now := w.shown(path)
		return now["waiting"] == "approval" && now["plan"] != plan
	})
	w.press("bob", &old, "Approve")
	w.deliver(slacktest.Form(w.slack.Submit(accounts["bob"], view, "Keep the name.")))
	w.watch(w.config(w.client()))
	w.told("bob", "it has changed since you saw it")
	w.told("bob", "The last decision was edit, by ada")
	w.told("bob", "Your words were: Keep the name.")
	now, _ := w.shown(path)["plan"].(string)
	m := w.message(now[:12])
	if len(events[*forge.Approve](w, path))+len(events[*forge.RequestChanges](w, path)) != 0 {
		t.Error("what was not seen is decided")
	}
	if replies := w.slack.Replies(old.TS); len(replies) != 1 || !strings.Contains(replies[0].Text, "waits for approval") {
		t.Errorf("the news are %+v", replies)
	}
	// What is there now can be approved, once.
	w.press("bob", &m, "Approve")
	w.press("bob", &m, "Approve")
	w.message("is executing")
	if n := len(events[*forge.Approve](w, path)); n != 1 {
		t.Errorf("it was approved %d times", n)
	}
}

// TestChatOwnApproval: who asked for it is not let approve it by the rules, wherever they press.
func TestChatOwnApproval(t *testing.T) {
	t.Parallel()
	w := withSlack(t)
	policy := policied(t, "policy: {approvals: {not_requester: true}}\n", commit(1))
	policy.Approvals.NotRequester = true
	w.analysis = func(*forge.Command) *forge.Analysis {
		return &forge.Analysis{Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}}, Policy: policy}
	}
	w.decides(quota.Limits{})
	w.watch(w.config(w.client()))
	path, _ := w.proposed("own")
	m := w.message("waits for approval")
	w.press("ada", &m, "Approve")
	w.told("ada", "Nothing was done")
	if w.shown(path)["waiting"] != "approval" {
		t.Fatal("ada approved what she asked for")
	}
	w.press("bob", &m, "Approve")
	w.message("is executing")
}

// TestChatApprovesNothingUnseen: a plan of which a message has no room for all
// has no button that approves it, and one that was pressed before, or is made
// up, approves nothing. What it says in place of the button leads to the whole.
func TestChatApprovesNothingUnseen(t *testing.T) {
	t.Parallel()
	w := withSlack(t)
	w.analysis = func(c *forge.Command) *forge.Analysis {
		out := &forge.Analysis{Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "one", Plan: "Do it."}}}
		if c.Wish == nil {
			out.Tasks[0].Steps = []string{strings.Repeat("Look. ", 2000) + "Delete all."}
		}
		return out
	}
	w.decides(quota.Limits{})
	w.watch(w.config(w.client()))
	path, plan := w.proposed("unseen")
	m := w.message("`pfl-forge show " + path[strings.LastIndexByte(path, '/')+1:] + "`")
	if _, ok := m.Button("Approve"); ok || strings.Contains(m.Shown, "Delete all.") || !strings.Contains(m.Shown, plan[:12]) {
		t.Fatalf("what is cut has the buttons %+v", m.Buttons)
	}
	made, ok := m.Button("Ask for changes")
	if !ok {
		t.Fatal("it cannot be changed")
	}
	made.Value = strings.Replace(made.Value, `"do":"changes"`, `"do":"approve"`, 1)
	if got := w.deliver(slacktest.Form(w.slack.Press(accounts["bob"], slacktest.Team, &m, made))); got != http.StatusOK {
		t.Fatalf("Slack is answered with %d", got)
	}
	w.told("bob", "Nothing was done")
	if len(events[*forge.Approve](w, path)) != 0 || w.shown(path)["waiting"] != "approval" {
		t.Fatal("what was not shown is approved")
	}
	// A plan that a message has room for is approved there.
	w.press("bob", &m, "Ask for changes")
	w.deliver(slacktest.Form(w.slack.Submit(accounts["bob"], w.view(1), "Shorter.")))
	wait.Until(t, "it has the button", func() bool {
		list := w.slack.Messages()
		m = list[0]
		_, ok := m.Button("Approve")
		return ok
	})
	w.press("bob", &m, "Approve")
	w.message("is executing")
}

// cutOff is a workspace whose gateway is killed as soon as it reads what a
// person did, after its claim.
type cutOff struct {
	*slack.Client

	kill  context.CancelFunc
	reads int
}

// Read reads, and kills the second time: the first one is to find out whose act it is.
func (c *cutOff) Read(d *deliveries.Delivery) (*chat.Act, error) {
	if c.reads++; c.reads > 1 {
		c.kill()
	}
	return c.Client.Read(d)
}

// TestChatKilled: a press that was stored and not decided is decided once by
// the next watcher, whatever those before had done of it.
func TestChatKilled(t *testing.T) {
	t.Parallel()
	w := decided(t)
	stop := w.watch(w.config(w.client()))
	path, _ := w.proposed("killed")
	m := w.message("waits for approval")
	stop()
	w.press("bob", &m, "Approve")
	ctx, kill := context.WithCancel(wait.Context(t))
	if err := chat.New(w.config(&cutOff{Client: w.client(), kill: kill})).Run(ctx); err != nil {
		t.Fatal(err)
	}
	if w.shown(path)["waiting"] != "approval" {
		t.Fatal("it was decided by the one that was cut off")
	}
	// The next one is cut off when the decision is in the journal, before or
	// after it has stored that it was done.
	stop = w.watch(w.config(w.client()))
	wait.Until(t, "it is approved", func() bool { return len(events[*forge.Approve](w, path)) > 0 })
	stop()
	w.watch(w.config(w.client()))
	w.message("is executing")
	w.watch(w.config(w.client()))
	second, _ := w.proposed("second")
	wait.Until(t, "there are two messages", func() bool { return len(w.slack.Messages()) == 2 })
	if n := len(events[*forge.Approve](w, path)); n != 1 || len(events[*forge.Approve](w, second)) != 0 {
		t.Errorf("it was approved %d times", n)
	}
}

// TestChatOfTwoGateways: two gateways at one moment post one message and decide a
// press once, by whichever of them; a twin that came about all the same is removed.
func TestChatOfTwoGateways(t *testing.T) {
	w := decided(t)
	for range 2 {
		cfg := w.config(w.client())
		cfg.Every = 100 * time.Millisecond
		w.watch(cfg)
	}
	path, _ := w.proposed("two")
	m := w.message("waits for approval")
	w.slack.Twin(m.TS)
	wait.Until(t, "the twin is removed", func() bool { return len(w.slack.Messages()) == 1 })
	if now := w.message("waits for approval"); now.TS != m.TS {
		t.Errorf("the older one, %s, was removed, and %s is there", m.TS, now.TS)
	}
	b, _ := m.Button("Approve")
	for _, who := range []string{"bob", "ada"} { // at one moment, and the same one twice
		for range 2 {
			w.deliver(slacktest.Form(w.slack.Press(accounts[who], slacktest.Team, &m, b)))
		}
	}
	w.message("is executing")
	if n := len(events[*forge.Approve](w, path)); n != 1 {
		t.Errorf("it was approved %d times", n)
	}
}

// TestChatOfABadSlack: whatever is limited, at fault, away or unanswered, there is one
// message in the end, it is the newest, and nothing is asked before the time that Slack says.
func TestChatOfABadSlack(t *testing.T) {
	t.Parallel()
	w := decided(t)
	soon := http.Header{"Retry-After": {"1"}}
	w.slack.Script(
		slacktest.Fault{Method: "auth.test", Status: 503, Header: soon}, slacktest.Fault{Method: "conversations.history", Status: 429, Header: soon},
		slacktest.Fault{Method: "chat.postMessage", Status: 500, Header: soon, After: true}, // it was posted
		slacktest.Fault{Method: "chat.update", Status: 429, Header: soon},
	)
	cfg := w.config(w.client())
	w.watch(cfg)
	w.proposed("bad")
	m := w.message("waits for approval")
	if n := w.slack.Calls("chat.postMessage"); n != 1 {
		t.Errorf("it was posted %d times", n)
	}
	w.press("bob", &m, "Approve")
	w.message("is executing")
	if n := w.slack.Calls("chat.update"); n < 2 {
		t.Errorf("it was edited %d times", n)
	}
	if early := w.slack.Early(); len(early) > 0 {
		t.Errorf("called before their time were %q", early)
	}
}

// TestChatIsFoundAgain: a watcher that begins finds the messages of the ones
// before, page by page, and believes nothing that another account wrote.
func TestChatIsFoundAgain(t *testing.T) {
	t.Parallel()
	w := decided(t)
	stop := w.watch(w.config(w.client()))
	path, _ := w.proposed("found")
	m := w.message("waits for approval")
	stop()
	for range 7 {
		w.slack.Forge("B0OTHER01", `{"event_type": "pfl_forge_intent", "event_payload": {"project": "shop", "intent": "`+
			path[strings.LastIndexByte(path, '/')+1:]+`", "open": true}}`)
	}
	w.request("bob", http.MethodPost, path+"/reject", `{"reason": "No."}`).wants(t, "reject", http.StatusOK)
	w.watch(w.config(w.client()))
	wait.Until(t, "the message is the newest", func() bool { return strings.Contains(w.slack.Messages()[0].Shown, "is rejected") })
	if list := w.slack.Messages(); len(list) != 8 || list[0].TS != m.TS {
		t.Errorf("there are %d messages", len(list))
	}
}

// TestChatShowsTextAsText: whatever a requester or an agent writes, it calls
// nobody, links nothing, and has an end.
func TestChatShowsTextAsText(t *testing.T) {
	t.Parallel()
	w := withSlack(t)
	const evil = "<!channel> <@U0ADA0001> <https://evil.test|Approve> & *bold* \u202e"
	w.analysis = func(*forge.Command) *forge.Analysis {
		return &forge.Analysis{Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "\u202e" + evil + strings.Repeat("<", 5000)}}}
	}
	w.decides(quota.Limits{})
	w.watch(w.config(w.client()))
	w.request("ada", http.MethodPost, intents, `{"title": "`+evil+` xoxb-0123456789-fake", "body": "Do it."}`).wants(t, "submit", http.StatusCreated)
	m := w.message("&lt;!channel&gt; &lt;@U0ADA0001&gt; &lt;https://evil.test|Approve&gt; &amp;")
	for what, text := range map[string]string{"the blocks": m.Shown, "the line": m.Text} {
		if strings.ContainsAny(text, "<>\u202e") || strings.Contains(text, "fake") || len(text) > 40_000 {
			t.Errorf("%s have %q", what, text)
		}
	}
}

// TestChatExpiredDialog: a person for whom a dialog could not be opened in time
// is told to press again.
func TestChatExpiredDialog(t *testing.T) {
	t.Parallel()
	w := decided(t)
	stop := w.watch(w.config(w.client()))
	w.proposed("late")
	m := w.message("waits for approval")
	stop()
	w.press("bob", &m, "Reject")
	w.slack.Expire()
	w.watch(w.config(w.client()))
	w.told("bob", "press it again")
}

// TestChatReplyElsewhere: an address for answers that is not Slack's is sent nothing.
func TestChatReplyElsewhere(t *testing.T) {
	t.Parallel()
	w := decided(t)
	w.watch(w.config(w.client()))
	asked := make(chan string, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	t.Cleanup(srv.Close)
	for _, address := range []string{srv.URL + "/a", "http://169.254.169.254/", "file:///etc/passwd", "https://hooks.slack.com@evil.test/"} {
		form := w.slack.Command(accounts["viewer"], slacktest.Channel, "Do it")
		form.Set("response_url", address)
		w.deliver(form)
	}
	wait.Until(t, "they are refused", func() bool { return strings.Count(w.log.String(), "the response_url is no address of Slack") == 4 })
	if len(asked) != 0 {
		t.Errorf("asked is %s", <-asked)
	}
}
