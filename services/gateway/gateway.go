package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat/settings"
	"github.com/pfl-forge/pfl-forge/services/gateway/console"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/login"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/session"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/look"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks/events"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// Times and sizes of a request. One that is sent slowly holds a connection for readTime at
// most, and a header has no room for more than is used here.
const (
	headerTime = 5 * time.Second
	readTime   = 20 * time.Second
	writeTime  = 30 * time.Second
	idleTime   = time.Minute
	maxHeader  = 16 << 10
	// closeTime is how long answers under way have when the gateway ends.
	closeTime = 10 * time.Second
)

// Config gives a gateway its sources.
type Config struct {
	// Settings are those of the operator's file.
	Settings *Settings
	// Bus is a connection of the account gateway, and the only way to everything else.
	Bus *bus.Bus
	// Log gets a line for what was handed on, and for what was not done.
	Log *slog.Logger
	// Replica names this gateway among all.
	Replica forge.ReplicaID
	// Metrics records how requests are answered; nil: nothing does.
	Metrics *telemetry.Recorder
	// Worker returns the worker that carries out the steps of pull requests;
	// nil where no forge of the settings has any.
	Worker func(...service.Handler) *service.Worker
}

// Gateway serves the outside by HTTP. Mount and Go add to it before Run.
type Gateway struct {
	cfg Config
	mux *http.ServeMux
	// projects are those of the forges, in order, each once.
	projects []forge.ProjectID
	// loops run beside the server.
	loops []func(context.Context) error
	// ending is closed when the server stops taking connections. Those who follow changes
	// would keep it from ending.
	ending chan struct{}
	// listens has the address, from when there is one.
	listens chan net.Addr
}

// New returns a gateway, with the API where the settings have tokens.
func New(cfg Config) (*Gateway, error) {
	g := &Gateway{cfg: cfg, mux: http.NewServeMux(), ending: make(chan struct{}), listens: make(chan net.Addr, 1)}
	book := tokens.None()
	if path := cfg.Settings.Tokens; path != "" {
		var err error
		if book, err = tokens.Open(path, cfg.Log, time.Now); err != nil {
			return nil, fmt.Errorf("tokens: %w", err)
		}
	}
	served, err := g.newAPI(book)
	if err != nil {
		return nil, err
	}
	mounted, err := g.addHooks(served, book)
	if err == nil {
		err = g.addForges(mounted, served, book)
	}
	if err != nil {
		return nil, err
	}
	if cfg.Settings.Tokens == "" {
		return g, nil
	}
	g.Mount("/api/", served)
	if err := g.addChats(mounted, served, book); err != nil {
		return nil, err
	}
	return g, g.addConsole(served, book)
}

// newAPI returns the API. What comes by comments, chats and hooks goes through it as well.
func (g *Gateway) newAPI(book *tokens.Book) (*api.API, error) {
	var logins *identity.Bearer
	if l := g.cfg.Settings.Login; l != nil {
		var err error
		if logins, err = l.bearer(); err != nil {
			return nil, fmt.Errorf("login: %w", err)
		}
	}
	return api.New(api.Config{
		Bus: g.cfg.Bus, Account: string(access.Gateway), Tokens: book, Logins: logins, Log: g.cfg.Log, Ending: g.ending,
		PerSecond: g.cfg.Settings.PerSecond, Burst: g.cfg.Settings.Burst, Followers: g.cfg.Settings.Followers,
	}), nil
}

// addChats has a watcher run for each chat.
func (g *Gateway) addChats(mounted []hooks.Hook, served *api.API, book *tokens.Book) error {
	if g.cfg.Settings.Chats == "" {
		return nil
	}
	loops, err := settings.Read(g.cfg.Settings.Chats, settings.Config{
		Hooks: mounted, Gateway: string(access.Gateway), Bus: g.cfg.Bus, API: served, Tokens: book, Log: g.cfg.Log,
	})
	if err != nil {
		return fmt.Errorf("chats: %w", err)
	}
	for _, l := range loops {
		g.Go(func(ctx context.Context) error {
			return again(ctx, l.Run, func(err error) {
				g.cfg.Log.ErrorContext(ctx, "a chat is not served; it is tried again in a minute", "chat", l.Name, "error", err)
			})
		})
	}
	return nil
}

// addConsole mounts the console where the settings have its key.
func (g *Gateway) addConsole(served *api.API, book *tokens.Book) error {
	s := g.cfg.Settings.Console
	if s.Key == "" {
		return nil
	}
	key, err := session.LoadKey(s.Key)
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	c := console.Config{API: served, Tokens: book, Key: key, Log: g.cfg.Log, Now: time.Now}
	traces, err := telemetry.ParseTraceURL(s.TraceURL)
	if err != nil {
		return fmt.Errorf("console: trace_url: %w", err)
	}
	c.Trace = traces.Of
	if l := s.Login; l != nil {
		site, err := identity.NewSite(l.site())
		if err != nil {
			return fmt.Errorf("console: login: %w", err)
		}
		c.Login = login.Config{Site: site, Name: l.Name, From: strings.Join([]string{l.Issuer, l.ClientID, l.Claim}, "\x00")}
	}
	for _, p := range s.Projects {
		c.Projects = append(c.Projects, forge.ProjectID(p))
	}
	g.Mount(console.Base, console.New(c))
	return nil
}

// addHooks mounts the hooks, and returns them. What systems send to those with
// an entry is read and submitted.
func (g *Gateway) addHooks(served *api.API, book *tokens.Book) ([]hooks.Hook, error) {
	path := g.cfg.Settings.Hooks
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("hooks: %w", err)
	}
	list, err := hooks.Parse(filepath.Base(path), data)
	if err == nil {
		err = hooks.CheckEntries(list, book)
	}
	if err != nil {
		return nil, fmt.Errorf("hooks: %w", err)
	}
	hooks.NewDoor(hooks.Config{Hooks: list, Store: g.cfg.Bus.Deliveries.Store, Log: g.cfg.Log}).Mount(g.mux)
	from := slices.DeleteFunc(slices.Clone(list), func(h hooks.Hook) bool { return h.Entry == "" })
	if len(from) == 0 {
		return list, nil
	}
	reader := events.New(events.Config{
		Hooks: from, Deliveries: g.cfg.Bus.Deliveries, API: served, Tokens: book, Gateway: string(access.Gateway), Log: g.cfg.Log,
	})
	g.Go(func(ctx context.Context) error {
		return again(ctx, reader.Run, func(err error) {
			g.cfg.Log.ErrorContext(ctx, "what systems send to hooks is not submitted; it is tried again in a minute", "error", err)
		})
	})
	return list, nil
}

// addForges has a watcher run for each forge.
func (g *Gateway) addForges(list []hooks.Hook, served *api.API, book *tokens.Book) error {
	if g.cfg.Settings.Forges == "" {
		return nil
	}
	forges, err := readForges(g.cfg.Settings.Forges, list, &g.cfg, served, book)
	if err != nil {
		return fmt.Errorf("forges: %w", err)
	}
	var keepers []*pulls.Keeper
	for _, f := range forges {
		g.projects = append(g.projects, f.projects...)
		var loops []func(context.Context) error
		if len(f.issues.Repositories) > 0 {
			loops = append(loops, func(ctx context.Context) error { return look.New(f.issues).Run(ctx) })
		}
		if f.pulls != nil {
			keepers = append(keepers, f.pulls)
			loops = append(loops, f.pulls.Run)
		}
		g.Go(g.alone(f.issues.Name, loops))
	}
	slices.Sort(g.projects)
	g.projects = slices.Compact(g.projects)
	if len(keepers) == 0 {
		return nil
	}
	if g.cfg.Worker == nil {
		return errors.New("forges: pull_requests needs a gateway that carries out commands")
	}
	g.Go(g.cfg.Worker(pulls.Handlers(keepers)...).Run)
	return nil
}

// Projects returns the projects with a repository at a watched forge: their
// issues become intents, or their pull requests are opened here.
func (g *Gateway) Projects() []forge.ProjectID { return g.projects }

// Mount has a handler serve everything below a path, such as "/hooks/".
func (g *Gateway) Mount(pattern string, h http.Handler) { g.mux.Handle(pattern, h) }

// Go has a loop run together with the server. It returns when its context ends; its error
// ends the gateway.
func (g *Gateway) Go(loop func(context.Context) error) { g.loops = append(g.loops, loop) }

// serve hands a request to whoever is mounted. An unclean path leads nowhere.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	began, answer := time.Now(), &answered{ResponseWriter: w, status: http.StatusOK}
	// Whichever mux took the request last has left its pattern there.
	defer func() { g.cfg.Metrics.Answered(r.Method, r.Pattern, answer.status, time.Since(began)) }()
	if r.URL.Path != "/" && !api.Clean(r) {
		api.NotFound(answer)
		return
	}
	g.mux.ServeHTTP(answer, r)
}

// answered notes the status of an answer.
type answered struct {
	http.ResponseWriter

	status int
}

// WriteHeader notes the status, and hands it on.
func (a *answered) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection, for its deadlines and to flush.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Addr waits until the gateway listens, and returns where.
func (g *Gateway) Addr() net.Addr {
	a := <-g.listens
	g.listens <- a
	return a
}

// Run serves until ctx ends, and then answers what is under way.
func (g *Gateway) Run(ctx context.Context) error {
	s := g.cfg.Settings
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{
		Handler: http.HandlerFunc(g.serve), ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime,
		IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(g.cfg.Log.Handler(), slog.LevelDebug), TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	server.RegisterOnShutdown(func() { close(g.ending) })
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		g.listens <- l.Addr()
		g.cfg.Log.InfoContext(ctx, "serves the outside", "address", l.Addr().String(), "tls", s.TLS.Cert != "")
		var err error
		if s.TLS.Cert != "" {
			err = server.ServeTLS(l, s.TLS.Cert, s.TLS.Key)
		} else {
			err = server.Serve(l)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	for _, loop := range g.loops {
		group.Go(func() error { return loop(ctx) })
	}
	// What was taken is answered: whoever gets no answer does not know whether it was done.
	group.Go(func() error {
		<-ctx.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		if err := server.Shutdown(ending); err != nil {
			return errors.Join(server.Close(), fmt.Errorf("answers under way are cut off: %w", err))
		}
		return nil
	})
	return group.Wait()
}
