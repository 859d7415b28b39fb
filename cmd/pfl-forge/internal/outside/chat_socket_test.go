package outside

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat/slack"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat/slack/slacktest"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat/webhook"
)

// store stores deliveries of a connection, if it may.
type store func(context.Context, deliveries.Delivery) (bool, error)

// socket runs a connection of Socket Mode, and returns when it is open.
func (w *chatWorld) socket(s store) (stop func()) {
	w.t.Helper()
	one := &slack.Socket{
		Client: w.client(), Name: "work", Store: s, Log: slog.New(slog.NewTextHandler(w.log, nil)), First: time.Millisecond, Most: 10 * time.Millisecond,
	}
	stop = w.loop(one.Run)
	wait.Until(w.t, "a connection is open", func() bool { return w.slack.Connected() > 0 })
	return stop
}

// envelope sends a payload through the connection, until one is open that takes
// it, and waits for its acknowledgement.
func (w *chatWorld) envelope(id, kind string, payload []byte) {
	w.t.Helper()
	var acknowledged <-chan struct{}
	wait.Until(w.t, "Slack sends it", func() bool {
		c, err := w.slack.Envelope(wait.Context(w.t), id, kind, payload)
		acknowledged = c
		return err == nil
	})
	wait.For(w.t, acknowledged)
}

// TestChatBySocket: without any request from outside, what people do comes through a connection
// of our own, also over ones that Slack ends; an envelope that comes twice counts once.
func TestChatBySocket(t *testing.T) {
	t.Parallel()
	w := decided(t)
	cfg := w.config(w.client())
	cfg.Hooks = nil
	w.watch(cfg)
	stop := w.socket(cfg.Deliveries.Store)
	path, _ := w.proposed("socket")
	m := w.message("waits for approval")
	w.slack.Disconnect("refresh_requested")
	w.slack.Disconnect("")
	b, _ := m.Button("Approve")
	payload := w.slack.Press(accounts["bob"], slacktest.Team, &m, b)
	for i := range 3 {
		w.envelope(fmt.Sprint("press-", i), "interactive", payload)
	}
	w.message("is executing")
	if n := len(events[*forge.Approve](w, path)); n != 1 || len(w.slack.Told(accounts["bob"])) != 0 {
		t.Errorf("it was approved %d times; bob was told %q", n, w.slack.Told(accounts["bob"]))
	}
	w.envelope("command", "slash_commands", []byte(fmt.Sprintf(`{"command": "/forge", "text": "Mend it", "team_id": %q, "user_id": %q, "channel_id": %q}`,
		slacktest.Team, accounts["ada"], slacktest.Channel)))
	wait.Until(t, "it is asked for", func() bool { return len(w.slack.Messages()) == 2 })
	w.envelope("other", "events_api", []byte(`{}`))
	stop()
}

// TestChatBySocketIsStoredFirst: what could not be stored is not acknowledged,
// so that Slack sends it again.
func TestChatBySocketIsStoredFirst(t *testing.T) {
	t.Parallel()
	w := decided(t)
	cfg := w.config(w.client())
	cfg.Hooks = nil
	w.watch(cfg)
	var full atomic.Bool
	full.Store(true)
	tried := make(chan struct{}, 1)
	w.socket(func(ctx context.Context, d deliveries.Delivery) (bool, error) {
		if full.Load() {
			select {
			case tried <- struct{}{}:
			default:
			}
			return false, errors.New("the store is full")
		}
		return cfg.Deliveries.Store(ctx, d)
	})
	w.proposed("full")
	m := w.message("waits for approval")
	b, _ := m.Button("Approve")
	payload := w.slack.Press(accounts["bob"], slacktest.Team, &m, b)
	acknowledged, err := w.slack.Envelope(wait.Context(t), "first", "interactive", payload)
	if err != nil {
		t.Fatal(err)
	}
	wait.For(t, tried)
	wait.Until(t, "the connection is another one", func() bool { return w.slack.Calls("apps.connections.open") > 1 })
	select {
	case <-acknowledged:
		t.Fatal("it was acknowledged")
	default:
	}
	full.Store(false)
	wait.Until(t, "it is taken", func() bool {
		c, err := w.slack.Envelope(wait.Context(t), "again", "interactive", payload)
		if err != nil {
			return false
		}
		return wait.Poll(wait.Briefly(t, time.Second), func() bool {
			select {
			case <-c:
				return true
			default:
				return false
			}
		})
	})
	w.message("is executing")
}

// received are the texts that a webhook got.
type received struct {
	mu   sync.Mutex
	list []string
}

// take takes a message; the first one is answered by a fault.
func (r *received) take(w http.ResponseWriter, req *http.Request) {
	var in struct{ Text string }
	decode(req, &in)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.list = append(r.list, in.Text); len(r.list) == 1 {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

// texts returns what came.
func (r *received) texts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.list...)
}

// TestChatByWebhook: a chat that is only told gets each state once, with a link,
// whichever gateway tells it, also after a restart; words of others are text in it.
func TestChatByWebhook(t *testing.T) {
	t.Parallel()
	w := withSlack(t)
	w.analysis = func(*forge.Command) *forge.Analysis {
		return &forge.Analysis{Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}}}
	}
	w.decides(quota.Limits{})
	got := &received{}
	srv := httptest.NewServer(http.HandlerFunc(got.take))
	t.Cleanup(srv.Close)
	file := filepath.Join(w.dir, "webhook")
	if err := os.WriteFile(file, []byte(srv.URL+"/hooks/secret?x=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := func() func() {
		c, err := webhook.New(webhook.Config{URLFile: file, Secrets: redact.New(), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		cfg := w.config(c)
		cfg.Channels[0].ID, cfg.Channels[0].Submit, cfg.Hooks, cfg.Every = "", "", nil, 50*time.Millisecond
		return w.watch(cfg)
	}
	one, two := begin(), begin()
	w.request("ada", http.MethodPost, intents, `{"title": "Call @all <b>now</b>", "body": "Do it."}`).wants(t, "submit", http.StatusCreated)
	wait.Until(t, "it is told", func() bool { return len(got.texts()) >= 2 })
	one()
	two()
	begin()
	path, _ := w.proposed("another")
	wait.Until(t, "the other is told", func() bool {
		return strings.Contains(strings.Join(got.texts(), "\n"), path[strings.LastIndexByte(path, '/')+1:])
	})
	list := got.texts()
	if len(list) != 3 {
		t.Errorf("told is %q", list)
	}
	if text := list[1]; strings.Contains(text, "@all") || strings.Contains(text, "<b>") || !strings.Contains(text, "waits for approval") ||
		!strings.Contains(text, "\nhttps://forge.example.com/console/projects/shop/intents/") {
		t.Errorf("told is %q", text)
	}
}

// TestChatOfTheGateway: the gateway serves the chats of its settings, by hooks and by Socket Mode.
func TestChatOfTheGateway(t *testing.T) {
	t.Parallel()
	w := decided(t)
	text := fmt.Sprintf("chats:\n  - name: work\n    kind: slack\n    url: %q\n    team: %s\n    token_file: bot\n    app_token_file: app\n"+
		"    hooks: [presses]\n    link: https://forge.example.com\n    channels: [{channel: %s, projects: [shop]}]\n",
		w.slack.URL(), slacktest.Team, slacktest.Channel)
	if err := os.WriteFile(filepath.Join(w.dir, "chats.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, w.base = w.gateway(gateway.Settings{
		Listen: "127.0.0.1:0", Tokens: w.file, Hooks: filepath.Join(w.dir, "hooks.yaml"), Chats: filepath.Join(w.dir, "chats.yaml"),
	})
	path, _ := w.proposed("settings")
	m := w.message("waits for approval")
	wait.Until(t, "a connection is open", func() bool { return w.slack.Connected() > 0 })
	w.press("bob", &m, "Approve")
	w.message("is executing")
	if n := len(events[*forge.Approve](w, path)); n != 1 {
		t.Errorf("it was approved %d times", n)
	}
}
