package slacktest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// carryOut carries a request out, and returns the answer.
func (f *Fake) carryOut(method string, r *http.Request, body []byte) object {
	f.mu.Lock()
	defer f.mu.Unlock()
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if want := map[bool]string{true: AppToken, false: BotToken}[method == "apps.connections.open"]; token != want {
		return failed("invalid_auth")
	}
	var in request
	if len(body) > 0 && json.Unmarshal(body, &in) != nil {
		return failed("invalid_json")
	}
	if in.Channel != "" && in.Channel != Channel {
		return failed("channel_not_found")
	}
	switch method {
	case "auth.test":
		return object{"ok": true, "team_id": Team, "bot_id": Bot, "user_id": "U0FORGE01"}
	case "apps.connections.open":
		ticket := strconv.Itoa(len(f.tickets) + 1)
		f.tickets[ticket] = true
		return object{"ok": true, "url": strings.Replace(f.srv.URL, "http:", "ws:", 1) + "/link?ticket=" + ticket}
	case "chat.postMessage", "chat.update", "chat.delete", "chat.postEphemeral":
		return f.write(method, &in)
	case "conversations.history":
		return f.history(r)
	case "views.open":
		if !f.triggers[in.Trigger] {
			return failed("expired_trigger_id")
		}
		delete(f.triggers, in.Trigger)
		f.views = append(f.views, View{in.Trigger, in.View.Private, string(body)})
		return object{"ok": true}
	}
	return failed("unknown_method")
}

// request has the fields of all methods.
type request struct {
	Channel     string          `json:"channel"`
	TS          string          `json:"ts"`
	Thread      string          `json:"thread_ts"`
	User        string          `json:"user"`
	Text        string          `json:"text"`
	Parse       string          `json:"parse"`
	UnfurlLinks *bool           `json:"unfurl_links"`
	UnfurlMedia *bool           `json:"unfurl_media"`
	Metadata    json.RawMessage `json:"metadata"`
	Trigger     string          `json:"trigger_id"`
	Blocks      []block         `json:"blocks"`
	View        struct {
		Private string `json:"private_metadata"`
	} `json:"view"`
}

// write posts, edits or deletes a message.
func (f *Fake) write(method string, in *request) object {
	shown, buttons, word := read(in.Blocks)
	if word != "" {
		return failed(word)
	}
	if method == "chat.postEphemeral" {
		f.told = append(f.told, Told{in.Channel, in.User, in.Text})
		return object{"ok": true}
	}
	if method == "chat.postMessage" {
		if in.UnfurlLinks == nil || *in.UnfurlLinks || in.UnfurlMedia == nil || *in.UnfurlMedia {
			return failed("test_unfurls")
		}
		m := &Message{
			TS: f.stamp(), Channel: in.Channel, Text: in.Text, Thread: in.Thread, Shown: shown, Buttons: buttons, bot: Bot, metadata: in.Metadata,
		}
		f.messages = append(f.messages, m)
		return object{"ok": true, "ts": m.TS, "channel": in.Channel}
	}
	m := f.find(in.TS)
	if m == nil || m.bot != Bot {
		return failed("message_not_found")
	}
	if method == "chat.delete" {
		f.messages = slices.DeleteFunc(f.messages, func(o *Message) bool { return o == m })
		return object{"ok": true}
	}
	m.Text, m.Shown, m.Buttons, m.metadata, m.Edits = in.Text, shown, buttons, in.Metadata, m.Edits+1
	return object{"ok": true, "ts": m.TS}
}

// pageOf is how many messages a page of a channel has, however many are asked for.
const pageOf = 3

// history answers with a page of the channel, the newest first. Metadata is
// there only if it is asked for.
func (f *Fake) history(r *http.Request) object {
	q := r.URL.Query()
	if r.Method != http.MethodGet || q.Get("channel") != Channel {
		return failed("channel_not_found")
	}
	oldest, _ := strconv.ParseFloat(q.Get("oldest"), 64)
	var list []object
	for _, m := range slices.Backward(f.messages) {
		at, _ := strconv.ParseFloat(m.TS, 64)
		if m.Thread != "" || at < oldest {
			continue
		}
		one := object{"type": "message", "ts": m.TS, "text": m.Text, "bot_id": m.bot}
		if q.Get("include_all_metadata") == "true" && len(m.metadata) > 0 {
			one["metadata"] = m.metadata
		}
		list = append(list, one)
	}
	from, _ := strconv.Atoi(q.Get("cursor"))
	from = min(max(from, 0), len(list))
	to := min(from+pageOf, len(list))
	next := ""
	if to < len(list) {
		next = strconv.Itoa(to)
	}
	return object{"ok": true, "messages": list[from:to], "has_more": next != "", "response_metadata": object{"next_cursor": next}}
}
