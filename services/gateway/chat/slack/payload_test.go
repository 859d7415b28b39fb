package slack

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat"
)

const form = "application/x-www-form-urlencoded"

// pressed is a payload of a button.
const pressed = `{"type":"block_actions","team":{"id":"T1"},"user":{"id":"U1","team_id":"T1"},"trigger_id":"1.2","container":{"type":"message",` +
	`"message_ts":"1503435956.000247","channel_id":"C1"},"actions":[{"type":"button","action_id":"decide-0","block_id":"decide",` +
	`"value":"{\"p\":\"shop\",\"i\":\"fix\",\"do\":\"cancel\",\"s\":\"0a\"}"}]}`

// read reads a payload that came by HTTP.
func read(payload string) (*chat.Act, error) {
	return (&Client{}).Read(&deliveries.Delivery{ContentType: form, Body: []byte(url.Values{"payload": {payload}}.Encode())})
}

// TestRead: an act is read with the ids of its person and place; whatever has
// none, or is no act, is refused.
func TestRead(t *testing.T) {
	a, err := read(pressed)
	if err != nil || a.Account != "U1" || a.Home != "T1" || a.Team != "T1" || a.Channel != "C1" || a.Message != "1503435956.000247" || a.Press.Do != chat.Cancel {
		t.Fatalf("%+v, %v", a, err)
	}
	for change, want := range map[string]string{
		`"user":{"id":"U1"|"user":{"id":"ada"`:                                "who acted",
		`"user":{"id":"U1"|"user":{"id":""`:                                   "who acted",
		`"team":{"id":"T1"}|"team":null`:                                      "who acted",
		`"team_id":"T1"|"team_id":"T1/../"`:                                   "who acted",
		`"channel_id":"C1"|"channel_id":"C1?x"`:                               "where it was done",
		`1503435956.000247|1503435956`:                                        "where it was done",
		`"trigger_id":"1.2"|"trigger_id":"` + strings.Repeat("1", 3000) + `"`: "too long",
		`\"p\":\"shop\"|\"p\":\"a/b\"`:                                        "p:",
		`"type":"block_actions"|"type":"shortcut"`:                            chat.ErrNothing.Error(),
		`"block_id":"decide"|"block_id":"other"`:                              chat.ErrNothing.Error(),
		`"action_id":"decide-0"|"action_id":"link"`:                           chat.ErrNothing.Error(),
		`"type":"block_actions"|"type":""`:                                    "neither an interaction nor a command",
		`{"type":"block_actions"|"type":`:                                     "cannot be read",
	} {
		old, now, _ := strings.Cut(change, "|")
		if !strings.Contains(pressed, old) {
			t.Fatalf("there is no %s", old)
		}
		if _, err := read(strings.Replace(pressed, old, now, 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %s", now, err, want)
		}
	}
	if _, err := (&Client{}).Read(&deliveries.Delivery{ContentType: "application/json", Body: []byte(pressed)}); !errors.Is(err, chat.ErrNothing) {
		t.Errorf("an event is %v", err)
	}
}

// FuzzRead: whatever Slack signs, an act that is read has ids that can stand in
// an address, and a press that a button can carry.
func FuzzRead(f *testing.F) {
	f.Add([]byte(url.Values{"payload": {pressed}}.Encode()), true)
	f.Add([]byte(pressed), false)
	f.Add([]byte("command=%2Fforge&text=x&team_id=T1&user_id=U1&channel_id=C1&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2F1"), true)
	f.Add([]byte(`{"type":"view_submission","team":{"id":"T1"},"user":{"id":"U1"},"view":{"callback_id":"decide","private_metadata":`+
		`"{\"channel\":\"C1\",\"message\":\"1.0\",\"press\":\"{}\"}","state":{"values":{"words":{"typed":{"value":"x"}}}}}}`), false)
	f.Fuzz(func(t *testing.T, body []byte, http bool) {
		d := &deliveries.Delivery{ContentType: form, Body: body}
		if !http {
			d.Event = chat.Socket
		}
		a, err := (&Client{}).Read(d)
		if err != nil {
			return
		}
		if !isID(a.Account, "UW") || !isID(a.Channel, "CGD") || a.Press == nil && a.Message != "" {
			t.Errorf("%q is %+v", body, a)
		}
		if a.Press != nil {
			from, press, err := carriedBy(carry(a.Channel, a.Message, a.Press))
			if err != nil || *press != *a.Press || from.Channel != a.Channel || from.Message != a.Message {
				t.Errorf("%q is carried as %+v, %v", body, press, err)
			}
		}
	})
}

// FuzzFit: a text that is shown begins nothing of Slack's, and fits.
func FuzzFit(f *testing.F) {
	f.Add("<!channel> & <@U1>", 10)
	f.Add(strings.Repeat("<", 100), 50)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = 1 + max(most, -most)%100
		got := fit(text, max(most, 1))
		if strings.ContainsAny(got, "<>") || utf8.RuneCountInString(got) > max(most, 1) {
			t.Errorf("%q is shown as %q", text, got)
		}
		for rest := got; strings.Contains(rest, "&"); {
			_, rest, _ = strings.Cut(rest, "&")
			if !strings.HasPrefix(rest, "amp;") && !strings.HasPrefix(rest, "lt;") && !strings.HasPrefix(rest, "gt;") {
				t.Errorf("%q is shown as %q", text, got)
			}
		}
	})
}

// TestQuestionsAreShown: what a button answers or lets through is shown with
// it, however much else an intent says; and the message has a bound.
func TestQuestionsAreShown(t *testing.T) {
	d := &document.Detail{Body: "Paint the shed, and then delete all."}
	d.Project, d.Intent, d.Title, d.Status, d.Plan = "shop", "fix", strings.Repeat("&", 300), forge.StatusExecuting, "0a"
	d.Waiting, d.Reason = forge.WaitingClarification, strings.Repeat("r", 1000)
	for i := range 20 {
		d.TaskList = append(d.TaskList, document.TaskState{Title: strings.Repeat("t", 1000)})
		d.Questions = append(d.Questions, document.Clarification{Question: fmt.Sprintf("%d%s", i, strings.Repeat("q", 900)), SuggestedAnswers: []string{"yes"}})
	}
	shown := func() string {
		n := chat.NoticeOf(d, "", chat.Words{})
		data, err := json.Marshal(message("C1", &n)["blocks"])
		if err != nil || len(data) > 13_000 {
			t.Errorf("the blocks have %d bytes, %v", len(data), err)
		}
		return string(data)
	}
	for i := range 3 {
		if !strings.Contains(shown(), fmt.Sprintf("%d%s", i, strings.Repeat("q", 900))) {
			t.Errorf("question %d is not shown", i)
		}
	}
	d.Status, d.Waiting, d.TaskList, d.Questions = forge.StatusProposed, forge.WaitingApproval, nil, nil
	if !strings.Contains(shown(), d.Body) {
		t.Error("the text that is let through is not shown")
	}
}

// TestReplyPath: answers to commands go to Slack and to no other place.
func TestReplyPath(t *testing.T) {
	c := &Client{replies: &url.URL{Scheme: "https", Host: repliesHost}}
	if path, err := c.replyPath("https://hooks.slack.com/commands/T1/2/x"); err != nil || path != "/commands/T1/2/x" {
		t.Errorf("%s, %v", path, err)
	}
	for _, address := range []string{
		"http://hooks.slack.com/x", "https://hooks.slack.com.evil.test/x", "https://hooks.slack.com:8443/x", "https://a@hooks.slack.com/x", "//hooks.slack.com/x",
		"https://hooks.slack.com/../x", "https://127.0.0.1/x", "https://hooks.slack.com", "https://hooks.slack.com/x?y", "https://hooks.slack.com/x#y", "%",
	} {
		if path, err := c.replyPath(address); err == nil {
			t.Errorf("%s is answered at %s", address, path)
		}
	}
}

// TestTheAddressOfAnAnswerStays: whoever knows it can write to the channel, so
// that an answer which is refused does not have it in its error.
func TestTheAddressOfAnAnswerStays(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	file := filepath.Join(t.TempDir(), "bot")
	if err := os.WriteFile(file, []byte("xoxb-1"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{URL: srv.URL + "/api", Team: "T1", TokenFile: file})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Whisper(t.Context(), &chat.Act{Reply: srv.URL + "/commands/T1/hunter2"}, "x"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("it is %v", err)
	}
}

// TestCheckSocket: a connection is opened to Slack and to no other place.
func TestCheckSocket(t *testing.T) {
	c := &Client{}
	for address, good := range map[string]bool{
		"wss://wss-primary.slack.com/link/?ticket=1": true, "wss://slack.com/link": true, "ws://wss-primary.slack.com/": false, "wss://slack.com.evil.test/": false,
		"wss://evilslack.com/": false, "wss://a@wss.slack.com/": false, "https://wss.slack.com/": false, "": false, "wss://127.0.0.1/": false,
	} {
		if err := c.checkSocket(address); (err == nil) != good {
			t.Errorf("%s: %v", address, err)
		}
	}
	// That of a server of one's own is as safe as its other requests.
	for scheme, want := range map[string]string{"https": "wss", "http": "ws, wss"} {
		c := &Client{cfg: Config{URL: "x"}, replies: &url.URL{Scheme: scheme, Host: "127.0.0.1"}}
		for _, s := range []string{"ws", "wss"} {
			if err := c.checkSocket(s + "://127.0.0.1/link"); (err == nil) != slices.Contains(strings.Split(want, ", "), s) {
				t.Errorf("%s beside %s: %v", s, scheme, err)
			}
		}
	}
}
