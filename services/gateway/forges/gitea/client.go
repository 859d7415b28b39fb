package gitea

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

// Config says which forge it is, and as whom we are there.
type Config struct {
	// URL is the forge's, such as https://git.example.com. Without TLS it has to be on this
	// machine.
	URL string
	// TokenFile has a token of our account. It is read for each request, so that it can be
	// replaced.
	TokenFile string
	// Bots are logins of accounts that are programs. Gitea does not tell.
	Bots []string
	// MaxAnswer bounds an answer, in bytes; 0 is 8 MiB.
	MaxAnswer int
	// Now is the clock; nil for that of the machine.
	Now func() time.Time
}

// Client is a forges.Forge.
type Client struct {
	*rest.Client
	queued
	texts
	words

	cfg Config
}

const (
	// page is how many things one request lists.
	page = 50
	// later is the reason for a merge that is refused because Gitea has not computed yet whether
	// it can be done. It has no other sign.
	later = "Please try again later"
)

// New returns a Client, or an error that names the setting.
func New(cfg Config) (*Client, error) {
	base, err := rest.ParseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Client{cfg: cfg, Client: rest.New(rest.Config{
		Name: "Gitea", Base: base.JoinPath("/api/v1"), Now: cfg.Now, MaxAnswer: cfg.MaxAnswer,
		Authorize: func(context.Context) (string, error) {
			token, err := rest.ReadToken(cfg.TokenFile)
			return "token " + token, err
		},
		Again: func(code int, message string) bool { return code == http.StatusMethodNotAllowed && message == later },
	})}
	c.queued, c.texts, c.words = queued{c}, texts{c}, words{c}
	_, err = rest.ReadToken(cfg.TokenFile)
	return c, err
}

// isBot reports whether an account is a program: by its number, which is negative for those of
// Gitea itself, by the operator's word, or by the name that bots have on other forges.
func (c *Client) isBot(id int64, login string) bool {
	return id <= 0 || strings.HasSuffix(login, "[bot]") ||
		slices.ContainsFunc(c.cfg.Bots, func(b string) bool { return strings.EqualFold(b, login) })
}
