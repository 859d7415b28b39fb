package console

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document/setup"
	"github.com/pfl-forge/pfl-forge/internal/together"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/login"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/phrase"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/session"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/tries"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/turns"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// Base is the address below which everything of the console is.
const Base = "/console/"

// BackPath is where the page of an issuer leads back to.
const BackPath = Base + "logged-in"

// maxForm bounds a form, in bytes: the longest text that a person types, with every character
// escaped, and the rest.
const maxForm = 256 << 10

// gather is how long a board waits for more who want to see it, before it is made.
const gather = 15 * time.Millisecond

// askTime is how long a page waits for an answer: a person looks at it.
const askTime = 5 * time.Second

// policy is the content security policy of every answer: styles, scripts and pictures of this
// origin alone, no frame around a page, and no form that leads elsewhere.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// Config says whom a console serves.
type Config struct {
	// API answers everything, in the name of whoever is signed in.
	API *api.API
	// Tokens says whose a token is, and Key seals sessions.
	Tokens *tokens.Book
	Key    []byte
	// Login has people sign in with their account at an issuer; without a Site
	// it is by token alone.
	Login login.Config
	// Projects are those that holders of tokens for every project are shown.
	Projects []forge.ProjectID
	// Trace returns the address at which a person reads a trace; nil where that is not known.
	Trace func(id string) string
	Log   *slog.Logger
	// Now is the clock.
	Now func() time.Time
	// Own is set where the console is a person's own, on their machine.
	Own *Own
}

// Console serves the pages. It is safe for concurrent use.
type Console struct {
	cfg      Config
	sessions *session.Sessions
	// issuer is where people sign in with their account; nil where they do not.
	issuer *login.Issuer
	// tries bounds how often signing in fails, and turns has people who write
	// to one intent do so one after the other.
	tries *tries.Tries
	turns *turns.Turns
	// boards has the boards that several look at made once.
	boards together.Group[[]byte]
	mux    *http.ServeMux
	origin *http.CrossOriginProtection
	// stamp is part of the addresses of static files, so that a new version is a new address.
	stamp string
	pages *template.Template
}

//go:embed static
var static embed.FS

// New returns a console.
func New(cfg Config) *Console {
	c := &Console{
		cfg: cfg, mux: http.NewServeMux(), origin: http.NewCrossOriginProtection(), stamp: stampOf(static), pages: pagesOf(cfg.Now),
		tries: tries.New(cfg.Now), turns: turns.New(),
		boards:   together.Group[[]byte]{Gather: func() { <-time.After(gather) }, Alone: api.Barred},
		sessions: session.New(cfg.Key, cfg.Tokens, cfg.Login.From, cfg.Now),
	}
	if cfg.Login.Site != nil {
		c.issuer = login.New(cfg.Login, c.sessions.MAC, cfg.Now)
	}
	for _, one := range Routes() {
		c.mux.Handle(one.Method+" "+one.Path, c.handler(one))
	}
	c.mux.Handle(Base, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.refuse(w, r, nil, http.StatusNotFound, "There is nothing at this address.")
	}))
	return c
}

// Route is an address of the console.
type Route struct {
	// Method and Path are as net/http has them in patterns.
	Method, Path string
	// open says that it is served to whoever asks; all others want a session.
	open bool
	// serve answers. Its error is shown as a page.
	serve func(*visit) error
}

// Routes returns every address.
func Routes() []Route {
	return []Route{
		{http.MethodGet, Base + "{$}", false, (*visit).home},
		{http.MethodGet, Base + "sign-in", true, func(v *visit) error { return entrance{v}.signInPage() }},
		{http.MethodPost, Base + "sign-in", true, func(v *visit) error { return entrance{v}.signIn() }},
		{http.MethodGet, Base + "log-in", true, func(v *visit) error { return entrance{v}.logIn() }},
		{http.MethodGet, BackPath, true, func(v *visit) error { return entrance{v}.loggedIn() }},
		{http.MethodPost, Base + "sign-out", true, func(v *visit) error { return entrance{v}.signOut() }},
		{http.MethodGet, Base + "static/{stamp}/{file}", true, (*visit).static},
		{http.MethodGet, Base + "inbox", false, (*visit).inbox},
		{http.MethodPost, Base + "inbox/approve", false, (*visit).approveAll},
		{http.MethodGet, Base + "board", false, (*visit).board},
		{http.MethodGet, Base + "costs", false, (*visit).costs},
		{http.MethodGet, Base + "costs/export", false, (*visit).costsExport},
		{http.MethodGet, Base + "health", false, (*visit).health},
		{http.MethodGet, Base + "health/export", false, (*visit).healthExport},
		{http.MethodGet, Base + "audit", false, (*visit).audit},
		{http.MethodGet, Base + "audit/export", false, (*visit).export},
		{http.MethodGet, Base + "settings", false, (*visit).settings},
		{http.MethodGet, Base + "projects/{project}/events", false, (*visit).events},
		{http.MethodGet, Base + "projects/{project}/intents/{intent}", false, (*visit).change},
		{http.MethodGet, Base + "projects/{project}/intents/{intent}/transcript", false, (*visit).transcript},
		{http.MethodGet, Base + "projects/{project}/intents/{intent}/timeline", false, (*visit).timeline},
		{http.MethodGet, Base + "projects/{project}/intents/{intent}/records", false, (*visit).records},
		{http.MethodPost, Base + "projects/{project}/intents/{intent}/decide", false, (*visit).decide},
	}
}

// ServeHTTP answers a request.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.secure(w.Header())
	c.mux.ServeHTTP(w, r)
}

// secure sets the headers of every answer.
func (c *Console) secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // with "no-referrer" a browser would not say where a form comes from
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// visit is a request under way.
type visit struct {
	console *Console
	w       http.ResponseWriter
	r       *http.Request
	// token is that of the session; nil where there is none.
	token *tokens.Token
	// live are the projects of which the page is made.
	live []forge.ProjectID
	// holder asks the API in the token's name.
	holder *api.Holder
	// inForce has the settings of projects that were read for the page; nil of
	// one whose settings cannot be read.
	inForce map[forge.ProjectID]*setup.InForce
}

// handler serves a route.
func (c *Console) handler(route Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{console: c, w: w, r: r}
		if err := v.enter(&route); err != nil {
			v.fails(err)
			return
		}
		if err := route.serve(v); err != nil {
			v.fails(err)
		}
	})
}

// refusal is an error that is shown as a page with its words.
type refusal struct {
	status int
	words  string
}

func (e *refusal) Error() string { return e.words }

// enter makes sure who asks, and that a post is one of our own pages.
func (v *visit) enter(route *Route) error {
	if route.Method == http.MethodPost {
		if err := v.ours(); err != nil {
			return err
		}
		v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
		if err := v.r.ParseForm(); err != nil {
			return &refusal{http.StatusBadRequest, "The form is incomplete or too large."}
		}
	}
	t, err := v.console.session(v.r)
	if err == nil {
		v.token = t
		v.holder = v.console.cfg.API.For(func() (*tokens.Token, error) { return v.console.session(v.r) })
		return nil
	}
	if route.open {
		return nil
	}
	return &signedOut{err}
}

// ours refuses a post of another origin, and one that no browser of today sends: each says
// where a form comes from.
func (v *visit) ours() error {
	if v.r.Header.Get("Sec-Fetch-Site") == "" && v.r.Header.Get("Origin") == "" {
		return &refusal{http.StatusForbidden, "This was not sent by a page of the console. Programs use the API."}
	}
	if err := v.console.origin.Check(v.r); err != nil {
		return &refusal{http.StatusForbidden, "This was sent by a page of another origin, and was not done."}
	}
	return nil
}

// signedOut says that there is no session, and why.
type signedOut struct{ why error }

func (e *signedOut) Error() string { return "not signed in: " + e.why.Error() }

// fails answers with a page for an error.
func (v *visit) fails(err error) {
	if out, ok := errors.AsType[*signedOut](err); ok {
		entrance{v}.toSignIn(out.why)
		return
	}
	status, words := http.StatusServiceUnavailable, "This cannot be shown now. Nothing was changed; try again."
	if e, ok := errors.AsType[*refusal](err); ok {
		status, words = e.status, e.words
	} else if p, ok := errors.AsType[*api.Problem](err); ok {
		status, words = p.Status, inWords(p)
	} else {
		v.console.cfg.Log.WarnContext(v.r.Context(), "a page cannot be shown", "error", err)
	}
	if status == http.StatusUnauthorized { // the token was taken away since the request began
		entrance{v}.toSignIn(session.ErrRemoved)
		return
	}
	v.console.refuse(v.w, v.r, v.token, status, words)
}

// inWords returns a problem of the API as a sentence or two.
func inWords(p *api.Problem) string {
	list := []string{sentence(p.Detail)}
	for _, e := range p.Errors {
		about := e.Reason
		if e.Field != "" {
			about = e.Field + ": " + e.Reason
		}
		list = append(list, sentence(about))
	}
	return strings.Join(list, " ")
}

// sentence returns words as a sentence.
var sentence = phrase.Sentence

// ask asks the API below the project's address.
func (v *visit) ask(ctx context.Context, project forge.ProjectID, rest string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return v.holder.Ask(ctx, api.Call{Method: http.MethodGet, Path: "/api/v1/projects/" + string(project) + rest}, into)
}

// events tells a page that intents of a project changed, by the API's own stream. The page's
// script reads none of its data: it asks for the page anew, and what that shows is decided there.
func (v *visit) events() error {
	p, err := project(v.r.PathValue("project"))
	if err != nil {
		return err
	}
	if own := v.console.cfg.Own; own != nil && own.Events != nil {
		return own.Events(v.w, v.r)
	}
	return v.holder.Serve(v.w, v.r, "/api/v1/projects/"+string(p)+"/events")
}

// home leads to the inbox.
func (v *visit) home() error {
	http.Redirect(v.w, v.r, Base+"inbox", http.StatusSeeOther)
	return nil
}

// static serves a file that is part of the program. Its address changes with its content, so
// browsers keep it.
func (v *visit) static() error {
	name := v.r.PathValue("file")
	data, err := static.ReadFile("static/" + name)
	if err != nil || v.r.PathValue("stamp") != v.console.stamp {
		return &refusal{http.StatusNotFound, "There is nothing at this address."}
	}
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	v.w.Header().Set("Content-Type", kinds[path.Ext(name)])
	v.w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = v.w.Write(data) // whoever asked may have gone
	return nil
}

// projects returns the projects that the pages of a token are about.
func (c *Console) projects(t *tokens.Token) []forge.ProjectID {
	list := t.Named()
	if !t.Everywhere() {
		return list
	}
	return merged(list, c.cfg.Projects)
}

// project returns the project that a path or query names, as an id.
func project(text string) (forge.ProjectID, error) {
	p, err := forge.ParseProjectID(text)
	if err != nil {
		return "", &refusal{http.StatusBadRequest, fmt.Sprintf("There is no project %.60q: %v.", text, err)}
	}
	return p, nil
}
