package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// Config says which forge it is, and as whom we are there: an account with a token, or an
// App.
type Config struct {
	// URL is https://github.com, or that of an Enterprise Server. Without TLS it has to be on
	// this machine.
	URL string
	// TokenFile has a token of our account. It is read for each request, so that it can be
	// replaced. Empty for an App.
	TokenFile string
	// App is the App; nil for a token.
	App *App
	// Bots are logins of accounts that are programs, beside those of which GitHub says so.
	Bots []string
	// MaxAnswer bounds an answer, in bytes; 0 is 8 MiB.
	MaxAnswer int
	// Now is the clock; nil for that of the machine.
	Now func() time.Time
}

// Client is a forges.Forge and a forges.Pulls.
type Client struct {
	*rest.Client
	queued
	words
	discussions
	texts
	intakes

	cfg Config
	// graph is the other API, GraphQL: it alone has drafts made ready, and says which remarks
	// are resolved.
	graph *rest.Client
	// app makes the tokens; nil for an account with one.
	app *app

	mu sync.Mutex
	// numbers has the number of each repository that was asked for, by its name then.
	numbers map[string]int64
}

const (
	// page is how many things one request lists, the most that GitHub gives.
	page = 100
	// version is that of the API whose answers are read.
	version = "2022-11-28"
	// public is the host whose API has one of its own.
	public = "github.com"
	// enterprise is the last part of the path of the API of an Enterprise Server.
	enterprise = "/v3"
)

// New returns a Client, or an error that names the setting.
func New(cfg Config) (*Client, error) {
	on, err := cfg.rest()
	if err != nil {
		return nil, err
	}
	cfg.Now = on.Now
	c := &Client{cfg: cfg, numbers: map[string]int64{}}
	c.queued, c.discussions, c.texts, c.words = queued{c}, discussions{c}, texts{c}, words{c}
	c.intakes = intakes{c}
	switch {
	case cfg.App != nil && cfg.TokenFile != "":
		return nil, errors.New("app: there is token_file as well; give one of both")
	case cfg.App != nil && cfg.App.Installation <= 0:
		return nil, errors.New("app.installation: has to be the number of the installation")
	case cfg.App != nil:
		if c.app, err = newApp(cfg.App, on); err != nil {
			return nil, err
		}
		on.Authorize, on.Renew = c.app.authorize, c.app.renew
	default:
		on.Authorize = func(context.Context) (string, error) {
			token, err := rest.ReadToken(cfg.TokenFile)
			return "Bearer " + token, err
		}
		if _, err := rest.ReadToken(cfg.TokenFile); err != nil {
			return nil, err
		}
	}
	c.Client = rest.New(on)
	// An Enterprise Server has GraphQL beside this API and not below it.
	on.Base, on.Keep = on.Base.JoinPath(map[bool]string{true: "..", false: "."}[strings.HasSuffix(on.Base.Path, enterprise)]), false
	c.graph = rest.New(on)
	return c, nil
}

// rest returns how the forge is spoken to, without an account yet, or an error
// that names the setting.
func (cfg *Config) rest() (rest.Config, error) {
	base, err := rest.ParseURL(cfg.URL)
	if err != nil {
		return rest.Config{}, err
	}
	on := rest.Config{
		Name: "GitHub", Base: apiOf(base), Now: cfg.Now, MaxAnswer: cfg.MaxAnswer, Follow: moved, Keep: true, Hold: new(rest.Hold),
		Limited: limited, Again: again, Denied: denied,
		Header: http.Header{
			"Accept": {"application/vnd.github+json"}, "X-Github-Api-Version": {version}, "User-Agent": {"pfl-forge"},
		},
	}
	if on.Now == nil {
		on.Now = time.Now
	}
	return on, nil
}

// Close closes connections that are idle.
func (c *Client) Close() {
	c.Client.Close()
	c.graph.Close()
	if c.app != nil {
		c.app.rest.Close()
	}
}

// apiOf returns where the API of a forge begins: an Enterprise Server has it below its own
// address.
func apiOf(base *url.URL) *url.URL {
	if strings.EqualFold(base.Host, public) || strings.EqualFold(base.Host, "www."+public) {
		return &url.URL{Scheme: base.Scheme, Host: "api." + public}
	}
	return base.JoinPath("/api", enterprise)
}

// moved are the statuses with which a repository that was renamed answers.
var moved = []int{http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect}

// limited reports whether a refusal is a secondary limit, which has no header of its own
// where GitHub does not know its end.
func limited(message string) bool {
	m := strings.ToLower(message)
	return strings.Contains(m, "secondary rate limit") || strings.Contains(m, "abuse detection")
}

// again reports whether a merge is refused because GitHub is not done with the one before,
// or with computing.
func again(code int, message string) bool {
	return code == http.StatusMethodNotAllowed && (strings.HasPrefix(message, "Base branch was modified") ||
		strings.HasPrefix(message, "Merge already in progress"))
}

// denied returns the words for a refusal whose reason a person has to know: GitHub has one
// number for all of them.
func denied(_ int, message string) string {
	switch m := strings.ToLower(message); {
	case strings.Contains(m, "suspended"):
		return "the installation of our App is suspended; an owner of the organisation has to let it in again"
	case strings.Contains(m, "not accessible by integration"):
		return "our App has not been given that right, or is not installed in the repository"
	case strings.Contains(m, "not accessible by personal access token"):
		return "our token has not been given that right"
	case strings.Contains(m, "saml"):
		return "the organisation wants our token to be authorized for its single sign-on"
	}
	return ""
}

// known returns an error if a name is another repository than it was: after a rename,
// whoever takes the name over decides about the issues there, and who may write.
func (c *Client) known(name string, id int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := strings.ToLower(name)
	if was := c.numbers[key]; was != 0 && was != id {
		return fmt.Errorf("%w: %s is another repository by now, number %d and not %d: it was renamed, and another one has its name",
			forges.ErrDenied, name, id, was)
	}
	c.numbers[key] = id
	return nil
}

// userJSON is null for an account that is gone.
type userJSON struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	// Type is User, Bot, Organization or Mannequin.
	Type string `json:"type"`
}

// account returns a user, whose permission is not known.
func (c *Client) account(u *userJSON) intake.Account {
	if u == nil {
		return intake.Account{}
	}
	a := intake.Account{ID: u.ID, Login: u.Login}
	if c.isBot(u) {
		a.Kind = intake.Bot
	}
	return a
}

// isBot reports whether an account is a program: by what GitHub says, by the name that Apps
// have, or by the operator's word.
func (c *Client) isBot(u *userJSON) bool {
	return u.ID <= 0 || u.Type != "" && u.Type != "User" || strings.HasSuffix(u.Login, "[bot]") ||
		slices.ContainsFunc(c.cfg.Bots, func(b string) bool { return strings.EqualFold(b, u.Login) })
}
