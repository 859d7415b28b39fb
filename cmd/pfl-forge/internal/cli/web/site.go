package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/console"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// Times and sizes of a request, as the gateway has them, and how long answers under way have when
// the command ends.
const (
	headerTime = 5 * time.Second
	readTime   = 20 * time.Second
	writeTime  = 30 * time.Second
	idleTime   = time.Minute
	closeTime  = 5 * time.Second
	maxHeader  = 16 << 10
)

// lookEvery is how often a page that waits looks whether a run has begun.
const lookEvery = time.Second

// site answers the browsers of one machine.
type site struct {
	repo *local.Repository
	log  *slog.Logger
	port int
	// cfg is that of every console of this command, so a session counts in all of them.
	cfg console.Config
	// lobby answers whoever is not signed in, and what needs no server.
	lobby  *console.Console
	opener *opener
	// ending is closed when the command ends.
	ending <-chan struct{}

	// secret is that of the address, and sum its hash while it counts; nil once it was used.
	secret string
	mu     sync.Mutex
	sum    []byte
}

// newSite returns a site whose sessions are bound to a key that this process alone has.
func newSite(ctx context.Context, repo *local.Repository, book *tokens.Book, port int, log *slog.Logger) *site {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	s := &site{repo: repo, log: log, port: port, ending: ctx.Done(), secret: rand.Text() + rand.Text()}
	sum := sha256.Sum256([]byte(s.secret))
	s.sum = sum[:]
	s.cfg = console.Config{Tokens: book, Key: key, Log: log, Now: time.Now}
	s.lobby = s.console(nil, nil)
	s.opener = &opener{ctx: ctx, repo: repo, log: log, furnish: s.console}
	return s
}

// address returns where a browser enters.
func (s *site) address() string {
	return fmt.Sprintf("http://127.0.0.1:%d%s?%s", s.port, console.Base, url.Values{"token": {s.secret}}.Encode())
}

// console returns the console that asks a session's server, until ending is closed. Without a
// session it is the lobby.
func (s *site) console(session *local.Session, ending <-chan struct{}) *console.Console {
	cfg, asked := s.cfg, api.Config{Account: account, Direct: true, Tokens: s.cfg.Tokens, Log: s.log, Ending: ending}
	cfg.Own = &console.Own{Port: s.port}
	if session == nil {
		cfg.Own.Events = s.idle
	} else {
		asked.Bus = session.Bus
		cfg.Own.Running = !session.Owner()
	}
	cfg.API = api.New(asked)
	return console.New(cfg)
}

// ServeHTTP answers a request. Who is not signed in never has the repository's server started.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case !s.named(r.Host):
		// Another name that leads to this address, as DNS rebinding makes one,
		// gives its owner's page our origin.
		http.Error(w, "This is not the address of this console.", http.StatusMisdirectedRequest)
	case path == "/":
		http.Redirect(w, r, console.Base, http.StatusSeeOther)
	case !api.Clean(r):
		s.lobby.Refuse(w, r, http.StatusNotFound, "There is nothing at this address.")
	case path == console.Base && r.Method == http.MethodGet && r.URL.Query().Has("token"):
		s.enter(w, r)
	case strings.HasPrefix(path, console.Base+"static/") || !s.lobby.SignedIn(r):
		s.lobby.ServeHTTP(w, r)
	case strings.HasSuffix(path, "/events"):
		s.follow(w, r)
	default:
		s.answer(w, r)
	}
}

// named reports whether a host is one by which a browser of this machine reaches us.
func (s *site) named(host string) bool {
	port := ":" + strconv.Itoa(s.port)
	return slices.Contains([]string{"127.0.0.1" + port, "localhost" + port}, host) || s.port == 80 && (host == "127.0.0.1" || host == "localhost")
}

// enter exchanges the secret of the address for a session, once. The browser goes on to an address
// without it.
func (s *site) enter(w http.ResponseWriter, r *http.Request) {
	// A browser that asks beforehand, in case that its person comes, would use it up.
	if r.Header.Get("Sec-Purpose") != "" || r.Header.Get("Purpose") != "" {
		s.lobby.Refuse(w, r, http.StatusServiceUnavailable, "This address is for a person who opens it.")
		return
	}
	given := sha256.Sum256([]byte(r.URL.Query().Get("token")))
	s.mu.Lock()
	right := s.sum != nil && subtle.ConstantTimeCompare(given[:], s.sum) == 1
	if right {
		s.sum = nil
	}
	s.mu.Unlock()
	switch {
	case right:
		s.lobby.Enter(w, r)
	case s.lobby.SignedIn(r): // the same browser once more
		http.Redirect(w, r, console.Base, http.StatusSeeOther)
	default:
		s.lobby.ServeHTTP(w, r)
	}
}

// answer has a request answered by the repository's server.
func (s *site) answer(w http.ResponseWriter, r *http.Request) {
	at, err := s.opener.take()
	if err != nil {
		s.log.WarnContext(r.Context(), "the server of the repository cannot be reached", "error", err)
		s.lobby.Refuse(w, r, http.StatusServiceUnavailable, "The repository does not answer: "+term.Line(err.Error())+". Nothing was changed; try again.")
		return
	}
	defer s.opener.release(at)
	at.console.ServeHTTP(w, r)
}

// follow tells changes: by the server of a run while one goes on, and otherwise by looking whether
// anything was decided or one has begun.
func (s *site) follow(w http.ResponseWriter, r *http.Request) {
	if local.Running(r.Context(), s.repo) {
		at, err := s.opener.take()
		if err == nil {
			defer s.opener.release(at)
		}
		if err == nil && !at.session.Owner() {
			at.console.ServeHTTP(w, r)
			return
		}
	}
	s.lobby.ServeHTTP(w, r)
}

// idle holds a stream of events open until there is something new to see. Its
// end has the browser ask again at once, and its page anew.
func (s *site) idle(w http.ResponseWriter, r *http.Request) error {
	out, written := http.NewResponseController(w), s.repo.Written()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	w.Header().Set("Content-Type", "text/event-stream")
	for text := "retry: 500\n\n"; ; text = ": waits\n\n" {
		if err := out.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
			return err
		}
		if _, err := w.Write([]byte(text)); err != nil || out.Flush() != nil {
			return nil // the browser has gone
		}
		select {
		case <-s.ending:
			return nil
		case <-r.Context().Done():
			return nil
		case <-tick.C:
		}
		if local.Running(r.Context(), s.repo) || !s.repo.Written().Equal(written) {
			return nil
		}
	}
}

// run serves until the context ends. Answers under way are given: whoever gets none does not know
// whether it was done.
func (s *site) run(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		s.opener.leave() // followers would keep it from ending
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		if server.Shutdown(ending) != nil {
			_ = server.Close() // who is still there has had their time
		}
		if err = <-ended; errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
	}
	s.opener.close()
	return err
}
