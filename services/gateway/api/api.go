package api

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nuid"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

const (
	// maxBody bounds the content of a request, in bytes: a body of 64 KiB, with every
	// character escaped, and the rest.
	maxBody = 512 << 10
	// maxKey bounds an Idempotency-Key, in bytes.
	maxKey = 200
	// atOnce bounds the requests that are answered at the same time, besides those that
	// follow.
	atOnce = 256
	// heartbeat is how often a follower is written to, whatever happens.
	heartbeat = 15 * time.Second
)

// Config says whom an API serves, and how much of it.
type Config struct {
	// Bus is the connection, and Account the name of its account: the gateway through which
	// everybody acts.
	Bus     *bus.Bus
	Account string
	// Direct says that it serves a person on their own machine, who decides in their own name
	// alone, as by their command line. Account is then only where they look.
	Direct bool
	// Tokens says whose a token is.
	Tokens *tokens.Book
	// Logins says who has logged in at the issuer whose names the entries of
	// Tokens have as logins; nil where there is none.
	Logins *identity.Bearer
	Log    *slog.Logger
	// PerSecond and Burst bound the requests of one token. 0 stands for 20 and 60.
	PerSecond float64
	Burst     int
	// Followers bounds those who follow at the same time, and OwnFollowers those of one
	// token. 0 stands for 200 and 10.
	Followers, OwnFollowers int
	// Heartbeat is how often a follower is written to; 0 stands for 15 seconds.
	Heartbeat time.Duration
	// Ending ends those who follow, when it is closed.
	Ending <-chan struct{}
}

// API serves the routes. It is safe for concurrent use.
type API struct {
	cfg       Config
	mux       *http.ServeMux
	rates     *rates
	strangers *strangers
	followers *counts
	// slots has room for the requests that are answered at the same time.
	slots chan struct{}
	// wholes counts the answers of whole that are in memory.
	wholes *counts
}

// New returns an API.
func New(cfg Config) *API {
	cfg.PerSecond, cfg.Burst = cmp.Or(cfg.PerSecond, 20), cmp.Or(cfg.Burst, 60)
	cfg.Followers, cfg.OwnFollowers = cmp.Or(cfg.Followers, 200), cmp.Or(cfg.OwnFollowers, 10)
	cfg.Heartbeat = cmp.Or(cfg.Heartbeat, heartbeat)
	a := &API{
		cfg: cfg, mux: http.NewServeMux(), rates: newRates(cfg.PerSecond, cfg.Burst),
		strangers: newStrangers(cfg.PerSecond, cfg.Burst, time.Now),
		followers: newCounts(cfg.Followers, cfg.OwnFollowers), slots: make(chan struct{}, atOnce), wholes: newCounts(mostWholes, ownWholes),
	}
	// An address with another method is told which it takes.
	methods := map[string][]string{}
	for _, one := range Routes() {
		methods[one.Path] = append(methods[one.Path], one.Method)
		a.mux.Handle(one.Method+" "+one.Path, a.handler(one))
	}
	for pattern, list := range methods {
		p := problem(http.StatusMethodNotAllowed, "this address takes "+strings.Join(list, ", "))
		p.allow = strings.Join(list, ", ")
		a.mux.Handle(pattern, a.fails(p))
	}
	a.mux.Handle("/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { NotFound(w) }))
	return a
}

// NotFound answers that nothing is at an address.
func NotFound(w http.ResponseWriter) {
	problem(http.StatusNotFound, "there is nothing at this address").write(w, nuid.Next())
}

// fails returns a handler that answers everybody with a problem.
func (a *API) fails(p *Problem) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		one := *p
		one.write(w, nuid.Next())
	})
}

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if !Clean(r) {
		NotFound(w)
		return
	}
	a.mux.ServeHTTP(w, r)
}

// Clean reports whether a path is one that leads somewhere as it is. A mux would send the
// client on to what it makes of another one.
func Clean(r *http.Request) bool {
	return path.Clean(r.URL.Path) == strings.TrimSuffix(r.URL.Path, "/") && !strings.Contains(strings.ToLower(r.URL.EscapedPath()), "%2f")
}

// call is a request under way, of a holder who may make it.
type call struct {
	api *API
	w   http.ResponseWriter
	r   *http.Request
	// secret is the token itself: never logged, never handed on. It is empty of a holder who
	// came by other means.
	secret string
	// find finds the token again, while its holder follows.
	find  Finder
	token *tokens.Token
	// login is how the journal names a holder who has logged in at the issuer; empty for others.
	login string
	route *Route
	// id is the request's, in its answer, in the log, and beside what it asked for.
	id      string
	project forge.ProjectID
	intent  forge.IntentID
	body    []byte
	// key is the Idempotency-Key; empty if there is none.
	key string
}

// handler serves a route.
func (a *API) handler(route Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{api: a, w: w, r: r, route: &route, id: nuid.Next()}
		w.Header().Set("Request-Id", c.id)
		err := c.admit()
		if err == nil && !onlyAdmitted(r) {
			err = c.serve()
		}
		if err == nil {
			return
		}
		p := problemOf(err, route.Method == http.MethodGet)
		// A client may send its token where it does not belong, and be told so by name.
		text := err.Error()
		if c.secret != "" {
			text = strings.ReplaceAll(text, c.secret, redact.Mark)
		}
		who := ""
		if c.token != nil {
			who = c.token.Name
		}
		level := slog.LevelInfo
		if p.Status >= http.StatusInternalServerError && c.token != nil { // who is not let in makes no warnings
			level = slog.LevelWarn
		}
		a.cfg.Log.Log(r.Context(), level, "a request was not done", "request", c.id, "verb", string(route.Verb), "token", who,
			"project", string(c.project), "intent", string(c.intent), "status", p.Status, "error", text)
		p.write(w, c.id)
	})
}

// serve has the route serve the call. Only those who follow do not count among the requests
// at once.
func (c *call) serve() error {
	if c.route.Verb != tokens.Follow {
		select {
		case c.api.slots <- struct{}{}:
			defer func() { <-c.api.slots }()
		default:
			p := problem(http.StatusServiceUnavailable, "too many requests at once: nothing was done")
			p.retryAfter = ratePause
			return p
		}
	}
	return c.route.serve(c)
}

// admit checks everything about a request that does not depend on its content. The order
// matters: without a token nothing is learnt, not even which projects there are; without the
// role nothing is read, neither an intent nor the content of the request.
func (c *call) admit() error {
	if err := c.authenticate(); err != nil {
		return err
	}
	if !c.counted() && !c.api.rates.allow(c.token.Name) {
		return tooOften("this token asks too often")
	}
	var err error
	if c.project, err = forge.ParseProjectID(c.r.PathValue("project")); err != nil {
		return wrong("project", err.Error())
	}
	if !c.token.May(c.project, c.route.Verb) {
		return c.barred()
	}
	if id := c.r.PathValue("intent"); c.route.ofIntent() {
		if c.intent, err = forge.ParseIntentID(id); err != nil {
			return wrong("intent", err.Error())
		}
	}
	if err := c.queries(); err != nil {
		return err
	}
	if c.route.Method == http.MethodGet {
		return nil
	}
	if err := c.idempotency(); err != nil {
		return err
	}
	return c.content()
}

// tooOften returns the problem of who asks too often.
func tooOften(detail string) error {
	p := problem(http.StatusTooManyRequests, detail)
	p.retryAfter = ratePause
	return p
}

// barred returns the problem of a holder who may not do this.
func (c *call) barred() error {
	return problem(http.StatusForbidden, c.token.Barred(c.who(), c.route.Verb))
}

// who returns how the holder is called in a problem: by what they came with.
func (c *call) who() string {
	switch h := holderOf(c.r); {
	case h == nil || h.account == "":
		return "this token"
	case h.later:
		return "this hook"
	}
	return "this account"
}

// queries refuses parameters that the route does not have, and those that are repeated and
// have one value.
func (c *call) queries() error {
	p := problem(http.StatusBadRequest, "the request is not understood")
	for name, values := range c.r.URL.Query() {
		known := c.route.parameter(name)
		switch {
		case known == nil:
			p.Errors = append(p.Errors, requests.RefusedField{Field: name, Reason: "is not known here"})
		case !known.Many && len(values) > 1:
			p.Errors = append(p.Errors, requests.RefusedField{Field: name, Reason: "is given twice"})
		}
	}
	if len(p.Errors) > 0 {
		return p
	}
	return nil
}

// idempotency reads the caller's own name of the request.
func (c *call) idempotency() error {
	values := c.r.Header.Values("Idempotency-Key")
	if len(values) > 1 {
		return wrong("Idempotency-Key", "is given twice")
	}
	if len(values) == 0 {
		return nil
	}
	// The draft of the IETF has the key in quotes, and most who use it have not.
	key := strings.TrimSuffix(strings.TrimPrefix(values[0], `"`), `"`)
	visible := func(r rune) bool { return r < '!' || r > '~' }
	if key == "" || len(key) > maxKey || strings.ContainsFunc(key, visible) {
		return wrong("Idempotency-Key", "wants 1 to 200 visible characters of ASCII, without spaces")
	}
	c.key = key
	return nil
}

// content reads the content of a request.
func (c *call) content() error {
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		_ = large
		return problem(http.StatusRequestEntityTooLarge, "the content may have 512 KiB")
	}
	if err != nil {
		return wrong("", "the content did not come as a whole")
	}
	// A form of a web page cannot send these types without asking first, which is not allowed
	// here: there is no CORS.
	if kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); len(body) > 0 && (err != nil || !slices.Contains(c.route.Types(), kind)) {
		return problem(http.StatusUnsupportedMediaType, "send "+strings.Join(c.route.Types(), " or "))
	}
	c.body = body
	return nil
}
