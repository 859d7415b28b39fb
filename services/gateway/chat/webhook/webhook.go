// Package webhook is the smaller one of the two kinds of chats, and shows that
// nothing in package chat is about Slack.
//
// It tells a chat by its incoming webhook, and hears nothing: Mattermost, Rocket.Chat,
// Google Chat and others take the same JSON object with one text. Systems that read
// fields are told by notifications (package notify), as CloudEvents.
package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// Client is one incoming webhook. It is safe for concurrent use.
type Client struct {
	// urlFile has the address. Whoever knows it can write to the chat, so it is
	// in no error and no log.
	urlFile string
	// secretFile has the key that signs each message; empty for none.
	secretFile string
	// guard keeps messages out of the gateway's own network.
	guard *rest.Guard
	// secrets are taken out of words of others.
	secrets *redact.Redactor
	now     func() time.Time
}

const (
	// maxText bounds a message, in bytes, and maxAnswer the answer.
	maxText   = 3000
	maxAnswer = 64 << 10
	// leastKey is the length of a key that the Standard Webhooks ask for, in bytes.
	leastKey = 24
)

// Config says where a webhook is.
type Config struct {
	// URLFile is the path of the file with the address, which is a secret, and
	// is read for each message.
	URLFile string
	// SecretFile is the path of the file with the key that signs each message,
	// as the Standard Webhooks do; read for each as well. Empty: none.
	SecretFile string
	// Private lets the address be one of a private network. Where it is this
	// machine's, it has to say so itself.
	Private bool
	// Secrets are taken out of words of others.
	Secrets *redact.Redactor
	// Now is the clock.
	Now func() time.Time
}

// New returns the Client of a webhook. An error begins with the field that is wrong.
func New(cfg Config) (*Client, error) {
	c := &Client{
		urlFile: cfg.URLFile, secretFile: cfg.SecretFile, guard: &rest.Guard{Private: cfg.Private}, secrets: cfg.Secrets, now: cfg.Now,
	}
	if _, err := c.address(); err != nil {
		return c, err
	}
	_, err := c.key()
	return c, err
}

// key returns the key that signs as it is now; nil for none. An error does not repeat it.
func (c *Client) key() ([]byte, error) {
	if c.secretFile == "" {
		return nil, nil
	}
	text, err := rest.ReadToken(c.secretFile)
	if err != nil {
		return nil, errors.New("secret_file: it cannot be read, or holds no key of one line")
	}
	encoded, ok := strings.CutPrefix(text, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) < leastKey {
		return nil, errors.New("secret_file: the key has to be whsec_ and 24 bytes or more in base64, such as: echo whsec_$(head -c 32 /dev/urandom | base64)")
	}
	return key, nil
}

// sign returns the headers of a signed message, as Standard Webhooks are. The id is
// the same when the message is sent again, and another one for a later notice in
// the same words: receivers take what has the id of another message for that one.
func (c *Client) sign(n *chat.Notice, body []byte) (http.Header, error) {
	key, err := c.key()
	if err != nil || key == nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte(n.Mark().Text+"."), body...))
	id, at := "msg_"+hex.EncodeToString(sum[:16]), strconv.FormatInt(c.now().Unix(), 10)
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(id + "." + at + "."))
	_, _ = mac.Write(body)
	return http.Header{
		"Webhook-Id": {id}, "Webhook-Timestamp": {at}, "Webhook-Signature": {"v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}, nil
}

// address returns the address as it is now. An error does not repeat it.
func (c *Client) address() (*url.URL, error) {
	text, err := rest.ReadToken(c.urlFile)
	if err != nil {
		return nil, errors.New("url_file: it cannot be read, or holds no address of one line")
	}
	u, err := rest.ParseAddress(text)
	if err != nil {
		return nil, errors.New("url_file: the address in it has to begin with https, unless it is on this machine")
	}
	return u, nil
}

// Post sends a notice. The webhook has one channel, and no message that could be edited.
// Words of others are only text in the Markdown of these chats, without mentions and links.
func (c *Client) Post(ctx context.Context, _ string, n *chat.Notice) (string, error) {
	u, err := c.address()
	if err != nil {
		return "", err
	}
	lines := []string{intake.Plain(n.Text(), c.secrets, maxText)}
	for _, line := range n.Hidden {
		lines = append(lines, intake.Plain(line, c.secrets, maxText))
	}
	if n.Link != "" {
		lines = append(lines, n.Link)
	}
	text := strings.Join(lines, "\n")
	// A client of its own for each message: the address may be another one by
	// then, and messages are few.
	client := rest.New(rest.Config{
		Name: "the webhook", Called: "the webhook", Base: &url.URL{Scheme: u.Scheme, Host: u.Host}, MaxAnswer: maxAnswer, Hide: true, Now: c.now,
		Authorize: func(context.Context) (string, error) { return "", nil }, Guard: c.guard,
		Sign: func(body []byte) (http.Header, error) { return c.sign(n, body) },
	})
	defer client.Close()
	return "", client.Call(ctx, http.MethodPost, u.RequestURI(), map[string]string{"text": text}, nil)
}
