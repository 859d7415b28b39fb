// Package webhook is the smaller one of the two kinds of chats, and shows that nothing in package chat is about Slack.
//
// It tells a chat by its incoming webhook, and hears nothing: Mattermost, Rocket.Chat, Google Chat and others take the same JSON
// object with one text. Systems that read fields are told by notifications (package notify), as CloudEvents.
package webhook

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// Client is one incoming webhook. It is safe for concurrent use.
type Client struct {
	// urlFile has the address. Whoever knows it can write to the chat, so it is in no error and no log.
	urlFile string
	// secrets are taken out of words of others.
	secrets *redact.Redactor
	now     func() time.Time
}

// maxText bounds a message, in bytes, and maxAnswer the answer.
const (
	maxText   = 3000
	maxAnswer = 64 << 10
)

// New returns the Client of the address in a file, which is a secret and is read for each message.
func New(urlFile string, secrets *redact.Redactor, now func() time.Time) (*Client, error) {
	c := &Client{urlFile: urlFile, secrets: secrets, now: now}
	_, err := c.address()
	return c, err
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

// Post sends a notice. The webhook has one channel, and no message that could be edited. Words of others are only text in the Markdown of
// these chats, without mentions and links.
func (c *Client) Post(ctx context.Context, _ string, n *chat.Notice) (string, error) {
	u, err := c.address()
	if err != nil {
		return "", err
	}
	text := intake.Plain(n.Text(), c.secrets, maxText)
	if n.Link != "" {
		text += "\n" + n.Link
	}
	// A client of its own for each message: the address may be another one by then, and messages are few.
	client := rest.New(rest.Config{
		Name: "the webhook", Called: "the webhook", Base: &url.URL{Scheme: u.Scheme, Host: u.Host}, MaxAnswer: maxAnswer, Hide: true, Now: c.now,
		Authorize: func(context.Context) (string, error) { return "", nil },
	})
	defer client.Close()
	return "", client.Call(ctx, http.MethodPost, u.RequestURI(), map[string]string{"text": text}, nil)
}
