package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

// Config is for a Client.
type Config struct {
	// URL is where the Web API begins; empty for that of Slack.
	URL string
	// Team is the workspace's id. Alone says that there is no other one in the
	// settings: of some people Slack does not say which is theirs, and they are
	// taken for those of that one then, and known by none else.
	Team  string
	Alone bool
	// TokenFile has the bot's token, and AppTokenFile that of the app for
	// Socket Mode; empty without it. They are read for each request.
	TokenFile, AppTokenFile string
	// Now is the clock; nil for that of the machine.
	Now func() time.Time
}

// Client is a workspace of Slack. It is safe for concurrent use.
type Client struct {
	cfg Config
	// bot calls with the token of the bot, app with that of the app, and reply without any.
	bot, app, reply *rest.Client
	// replies is the only place to which answers to commands go.
	replies *url.URL
	// self is the id of our bot, once Introduce has returned.
	self string
}

// The addresses of Slack.
const (
	apiURL      = "https://slack.com/api"
	repliesHost = "hooks.slack.com"
)

const (
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 4 << 20
	// pageSize and maxPages bound a look through a channel: 2,000 messages.
	pageSize = 200
	maxPages = 10
	// unwell is how long Slack is left alone that says it has a fault.
	unwell = 30 * time.Second
	// eventType names our metadata.
	eventType = "pfl_forge_intent"
)

// New returns a Client, or an error that begins with the name of the setting.
func New(cfg Config) (*Client, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Client{cfg: cfg}
	base, err := rest.ParseURL(cmp.Or(cfg.URL, apiURL))
	if err != nil {
		return nil, err
	}
	c.replies = &url.URL{Scheme: "https", Host: repliesHost}
	if cfg.URL != "" { // a server of tests answers for both
		c.replies = &url.URL{Scheme: base.Scheme, Host: base.Host}
	}
	if !isID(cfg.Team, "T") {
		return nil, errors.New("team: has to be the id of the workspace, such as T0123ABCD")
	}
	if _, err := rest.ReadToken(cfg.TokenFile); err != nil {
		return nil, err
	}
	if cfg.AppTokenFile != "" {
		if _, err := rest.ReadToken(cfg.AppTokenFile); err != nil {
			return nil, fmt.Errorf("app_%w", err)
		}
	}
	with := func(base *url.URL, file string) *rest.Client {
		return rest.New(rest.Config{
			Name: "Slack", Called: "Slack", Base: base, MaxAnswer: maxAnswer, Now: cfg.Now, Hide: file == "", // addresses for answers are secrets
			Authorize: func(context.Context) (string, error) {
				if file == "" {
					return "", nil
				}
				token, err := rest.ReadToken(file)
				return "Bearer " + token, err
			},
		})
	}
	c.bot, c.app, c.reply = with(base, cfg.TokenFile), with(base, cfg.AppTokenFile), with(c.replies, "")
	return c, nil
}

// Close closes connections that are idle.
func (c *Client) Close() {
	for _, one := range []*rest.Client{c.bot, c.app, c.reply} {
		one.Close()
	}
}

// ids are the characters of an id of Slack.
const ids = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// isID reports whether a text is an id of Slack that begins with one of these letters.
func isID(s, begins string) bool {
	return len(s) >= 2 && len(s) <= 32 && strings.Contains(begins, s[:1]) && strings.Trim(s, ids) == ""
}

// CheckAccount returns an error for what is no id of an account.
func CheckAccount(s string) error {
	if !isID(s, "UW") {
		return fmt.Errorf("%.40q is no id of an account, such as U0123ABCD: the profile of a person has it as member ID", s)
	}
	return nil
}

// CheckChannel returns an error for what is no id of a channel.
func CheckChannel(s string) error {
	if !isID(s, "CG") {
		return fmt.Errorf("%.40q is no id of a channel, such as C0123ABCD: the details of a channel have it", s)
	}
	return nil
}

// outcome has the fields of every answer. Slack answers a refusal with the status 200.
type outcome struct {
	OK    bool   `json:"ok"`
	Error string `json:"error"`
}

// call calls a method of the Web API. out has an outcome, or is nil.
//
// Methods that write take JSON, by POST. Those that only read take no JSON but a query,
// which is therefore no place for anything secret: the token is in a header in both.
func (c *Client) call(ctx context.Context, by *rest.Client, method, query string, in, out any) error {
	path, verb := "/"+method, http.MethodPost
	if in == nil && query != "" { // what only reads takes no JSON
		path, verb = path+"?"+query, http.MethodGet
	}
	var raw json.RawMessage
	if err := by.Call(ctx, verb, path, in, &raw); err != nil {
		return err
	}
	var said outcome
	if err := json.Unmarshal(raw, &said); err != nil {
		return fmt.Errorf("%s: the answer is not one of Slack: %w", method, err)
	}
	if !said.OK {
		return fmt.Errorf("%s: %w", method, c.refusal(said.Error))
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("%s: the answer is not one of Slack: %w", method, err)
	}
	return nil
}

// The errors of Slack that mean something to us.
//
// A word that is in none of these lists is an error that is tried again in a
// minute, with the word in the log. What is denied is the same: a person has to
// invite the bot, or to give it a scope, and nothing else ends it.
var (
	gone   = []string{"message_not_found", "thread_not_found", "cant_update_message", "cant_delete_message"}
	faulty = []string{"internal_error", "fatal_error", "service_unavailable", "request_timeout", "ratelimited", "rate_limited"}
	denied = []string{
		"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "missing_scope", "no_permission", "not_in_channel",
		"channel_not_found", "is_archived", "restricted_action",
	}
	late = []string{"expired_trigger_id", "trigger_expired", "trigger_exchanged", "invalid_trigger_id", "invalid_trigger"}
)

// refusal returns the error for Slack's word for it.
func (c *Client) refusal(word string) error {
	word = rest.Reason(word)
	switch {
	case slices.Contains(gone, word):
		return fmt.Errorf("%w: %s", forges.ErrNotFound, word)
	case slices.Contains(faulty, word):
		return &forges.ParkedError{Until: c.cfg.Now().Add(unwell), Reason: "Slack says " + word}
	case slices.Contains(denied, word):
		return fmt.Errorf("%w: %s", errDenied, word)
	case slices.Contains(late, word):
		return fmt.Errorf("%w: %s", chat.ErrTyped, word)
	}
	return errors.New("it is refused by Slack: " + word)
}

// errDenied says that our app may not do something. A person has to give it the right.
var errDenied = errors.New("our app may not do that at Slack")

// Introduce finds out who we are. A token of another workspace than that of the settings
// would tell one what belongs to the other, and have the ids of its people stand for ours.
func (c *Client) Introduce(ctx context.Context) error {
	var me struct {
		TeamID string `json:"team_id"`
		BotID  string `json:"bot_id"`
	}
	if err := c.call(ctx, c.bot, "auth.test", "", map[string]any{}, &me); err != nil {
		return err
	}
	if me.TeamID != c.cfg.Team || !isID(me.BotID, "B") {
		return fmt.Errorf("the token is of the team %.40q and the bot %.40q, and the settings say team %s", me.TeamID, me.BotID, c.cfg.Team)
	}
	c.self = me.BotID
	return nil
}

// Post posts a notice as a new message.
func (c *Client) Post(ctx context.Context, channel string, n *chat.Notice) (string, error) {
	var got struct {
		TS string `json:"ts"`
	}
	if err := c.call(ctx, c.bot, "chat.postMessage", "", message(channel, n), &got); err != nil {
		return "", err
	}
	if _, err := instant(got.TS); err != nil {
		return "", err
	}
	return got.TS, nil
}

// Edit has a message say a notice.
func (c *Client) Edit(ctx context.Context, channel, id string, n *chat.Notice) error {
	m := message(channel, n)
	m["ts"] = id
	return c.call(ctx, c.bot, "chat.update", "", m, nil)
}

// Reply says a notice in one line in the thread of a message. Slack tells those who follow the
// thread, and shows in the channel that there is a reply; the buttons are at the message itself.
func (c *Client) Reply(ctx context.Context, channel, id string, n *chat.Notice) error {
	m := line(channel, n.Text())
	m["thread_ts"] = id
	return c.call(ctx, c.bot, "chat.postMessage", "", m, nil)
}

// Remove takes a message of ours away.
func (c *Client) Remove(ctx context.Context, channel, id string) error {
	return c.call(ctx, c.bot, "chat.delete", "", map[string]any{"channel": channel, "ts": id}, nil)
}

// history is a page of a channel.
type history struct {
	Messages []struct {
		TS string `json:"ts"`
		// BotID is Slack's word for who wrote it. A name or a picture can be chosen; this cannot.
		BotID string `json:"bot_id"`
		// Metadata is that of the app which wrote it; empty without any.
		Metadata struct {
			EventType string   `json:"event_type"`
			Payload   markJSON `json:"event_payload"`
		} `json:"metadata"`
	} `json:"messages"`
	// ResponseMetadata has the place of the next page; empty on the last one.
	ResponseMetadata struct {
		NextCursor string `json:"next_cursor"`
	} `json:"response_metadata"`
}

// markJSON is a mark in metadata.
//
// People cannot see or change metadata; apps can read that of each other in a
// channel, so nothing in it is a secret.
type markJSON struct {
	Project string `json:"project"`
	Intent  string `json:"intent"`
	Seen    string `json:"seen"`
	Text    string `json:"text"`
	Open    bool   `json:"open"`
}

// Find returns our messages with a mark since a time, the oldest first. A
// channel with more messages than are read is read from its end.
func (c *Client) Find(ctx context.Context, channel string, since time.Time) (list []chat.Posted, err error) {
	cursor := ""
	for range maxPages {
		q := url.Values{
			"channel": {channel}, "limit": {strconv.Itoa(pageSize)}, "include_all_metadata": {"true"},
			"oldest": {fmt.Sprintf("%d.000000", since.Unix())},
		}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		var page history
		if err := c.call(ctx, c.bot, "conversations.history", q.Encode(), nil, &page); err != nil {
			return nil, err
		}
		list = append(list, c.ours(&page)...)
		if cursor = page.ResponseMetadata.NextCursor; cursor == "" {
			break
		}
	}
	slices.SortFunc(list, func(a, b chat.Posted) int { return a.At.Compare(b.At) })
	return list, nil
}

// ours returns those of our messages on a page that have a mark. Others can
// write the same metadata, but not as our bot.
func (c *Client) ours(page *history) (list []chat.Posted) {
	for _, m := range page.Messages {
		if m.BotID != c.self || c.self == "" || m.Metadata.EventType != eventType {
			continue
		}
		p := &m.Metadata.Payload
		project, err := forge.ParseProjectID(p.Project)
		intent, err2 := forge.ParseIntentID(p.Intent)
		at, err3 := instant(m.TS)
		if errors.Join(err, err2, err3) != nil {
			continue
		}
		list = append(list, chat.Posted{ID: m.TS, At: at, Mark: chat.Mark{
			Key: forge.Key{Project: project, Intent: intent}, Seen: p.Seen, Text: p.Text, Open: p.Open,
		}})
	}
	return list
}

// instant returns the time in the id of a message, such as 1503435956.000247.
func instant(ts string) (time.Time, error) {
	seconds, micros, ok := strings.Cut(ts, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	us, err2 := strconv.ParseInt(micros, 10, 64)
	if !ok || len(ts) > 32 || errors.Join(err, err2) != nil || s < 0 || us < 0 || strings.ContainsAny(ts, "+-") {
		return time.Time{}, fmt.Errorf("%.40q is no id of a message", ts)
	}
	return time.Unix(s, us*int64(time.Microsecond)), nil
}

// Ask opens a dialog in which the person types the words of a press.
func (c *Client) Ask(ctx context.Context, a *chat.Act, p *chat.Press, label string) error {
	return c.call(ctx, c.bot, "views.open", "", map[string]any{"trigger_id": a.Trigger, "view": dialog(a, p, label)}, nil)
}

// Whisper tells the person who acted a line: by a message that only they can
// see in a channel in which our bot is, and for a command, which can be given
// where it is not, by the address that Slack sent with it.
func (c *Client) Whisper(ctx context.Context, a *chat.Act, text string) error {
	if a.Reply == "" {
		m := line(a.Channel, text)
		m["user"] = a.Account
		return c.call(ctx, c.bot, "chat.postEphemeral", "", m, nil)
	}
	path, err := c.replyPath(a.Reply)
	if err != nil {
		return err
	}
	return c.reply.Call(ctx, http.MethodPost, path, map[string]any{
		"response_type": "ephemeral", "replace_original": false, "text": escape(text), "mrkdwn": false, "unfurl_links": false,
	}, nil)
}

// replyPath returns the path of an address for answers, if that is where Slack
// takes them. No other place is asked, whoever signed it.
func (c *Client) replyPath(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != c.replies.Scheme || u.Host != c.replies.Host || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		!strings.HasPrefix(u.Path, "/") || strings.Contains(u.Path, "..") {
		return "", errors.New("the response_url is no address of Slack")
	}
	return u.EscapedPath(), nil
}

// isOfSlack reports whether a host is one of Slack's.
func isOfSlack(host string) bool { return host == "slack.com" || strings.HasSuffix(host, ".slack.com") }
