package slacktest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// Press returns the payload that Slack sends for a button that was pressed by a user of a team.
func (f *Fake) Press(user, home string, m *Message, b Button) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return marshal(object{
		"type": "block_actions", "team": object{"id": Team}, "user": object{"id": user, "team_id": home, "name": "ada"}, "trigger_id": f.trigger(),
		"container":    object{"type": "message", "message_ts": m.TS, "channel_id": m.Channel},
		"response_url": f.srv.URL + "/commands/" + user,
		"actions":      []object{{"type": "button", "action_id": b.Action, "block_id": "decide", "value": b.Value}},
	})
}

// Submit returns the payload that Slack sends for a dialog that was sent.
func (f *Fake) Submit(user string, v View, words string) []byte {
	return marshal(object{
		"type": "view_submission", "team": object{"id": Team}, "user": object{"id": user, "team_id": Team},
		"view": object{
			"callback_id": "decide", "private_metadata": v.Private,
			"state": object{"values": object{"words": object{"typed": object{"type": "plain_text_input", "value": words}}}},
		},
	})
}

// Command returns the form that Slack sends for a command.
func (f *Fake) Command(user, channel, words string) url.Values {
	f.mu.Lock()
	defer f.mu.Unlock()
	return url.Values{
		"command": {"/forge"}, "text": {words}, "team_id": {Team}, "user_id": {user}, "channel_id": {channel}, "trigger_id": {f.trigger()},
		"response_url": {f.srv.URL + "/commands/" + user},
	}
}

// trigger returns a handle by which one dialog can be opened.
func (f *Fake) trigger() string {
	f.last++
	t := fmt.Sprintf("%d.trigger", f.last)
	f.triggers[t] = true
	return t
}

// Expire ends all handles, as Slack does after three seconds.
func (f *Fake) Expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.triggers)
}

// marshal returns JSON of values that have one.
func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// Form returns the form in which a payload is sent.
func Form(payload []byte) url.Values { return url.Values{"payload": {string(payload)}} }

// Signed returns a request as Slack signs it, with the time at which it is.
func Signed(ctx context.Context, door, secret string, form url.Values, at time.Time) (*http.Request, error) {
	body := form.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, door, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte("v0:" + stamp + ":" + body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Slack-Request-Timestamp", stamp)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return r, nil
}

// replied takes an answer to a command: the path says to whom.
func (f *Fake) replied(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var in request
	if json.Unmarshal(body, &in) != nil || r.Header.Get("Authorization") != "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, Told{"", strings.TrimPrefix(r.URL.Path, "/commands/"), in.Text})
	_, _ = w.Write([]byte("ok"))
}

// link takes a connection of Socket Mode.
func (f *Fake) link(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	ticket := r.URL.Query().Get("ticket")
	good := f.tickets[ticket]
	f.tickets[ticket] = false // it is good once
	f.mu.Unlock()
	if !good {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	if conn.Write(r.Context(), websocket.MessageText, marshal(object{"type": "hello", "num_connections": 1})) != nil {
		return
	}
	f.mu.Lock()
	f.conns = append(f.conns, conn)
	f.mu.Unlock()
	for {
		_, data, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		var ack struct {
			ID string `json:"envelope_id"`
		}
		_ = json.Unmarshal(data, &ack)
		f.mu.Lock()
		if c := f.acks[ack.ID]; c != nil {
			close(c)
			delete(f.acks, ack.ID)
		}
		f.mu.Unlock()
	}
}

// Connected returns how many connections of Socket Mode there were that are not ended.
func (f *Fake) Connected() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.conns)
}

// ErrNoConnection says that there is no connection of Socket Mode.
var ErrNoConnection = errors.New("no connection of Socket Mode is open")

// Envelope sends a payload through the newest connection, and returns what is
// closed when it is acknowledged.
func (f *Fake) Envelope(ctx context.Context, id, kind string, payload []byte) (acknowledged <-chan struct{}, err error) {
	f.mu.Lock()
	if len(f.conns) == 0 {
		f.mu.Unlock()
		return nil, ErrNoConnection
	}
	conn, c := f.conns[len(f.conns)-1], make(chan struct{})
	f.acks[id] = c
	f.mu.Unlock()
	var text bytes.Buffer
	text.Write(marshal(object{"type": kind, "envelope_id": id, "payload": json.RawMessage(payload), "accepts_response_payload": false}))
	return c, conn.Write(ctx, websocket.MessageText, text.Bytes())
}

// Disconnect has Slack end all connections; with a reason it says so first.
func (f *Fake) Disconnect(reason string) {
	f.mu.Lock()
	conns := f.conns
	f.conns = nil
	f.mu.Unlock()
	for _, c := range conns {
		if reason != "" {
			_ = c.Write(context.Background(), websocket.MessageText, marshal(object{"type": "disconnect", "reason": reason}))
		}
		_ = c.CloseNow()
	}
}
