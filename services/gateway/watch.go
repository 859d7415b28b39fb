package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/environ"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/gitea"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/github"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/gitlab"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/heard"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/look"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// The kinds of forges that are watched. Forgejo speaks as Gitea does, and an
// Enterprise Server as GitHub.
const (
	kindGitea  = "gitea"
	kindGitHub = "github"
	kindGitLab = "gitlab"
)

// speaks has the kind of hooks of each kind of forge.
var speaks = map[string]hooks.Kind{kindGitea: hooks.Gitea, kindGitHub: hooks.GitHub, kindGitLab: hooks.GitLab}

// leastEvery is the least time between two sweeps: each asks for every
// repository, and forges limit that.
const leastEvery = 10 * time.Second

// watchAgain is how long a forge is left alone that did not let us in: a person
// has to do something about it.
const watchAgain = time.Minute

// watched are the settings of a forge whose issues become intents.
type watched struct {
	// Name is the forge's in rules, and the system's in whose name intents are
	// submitted: an id as a project's.
	Name string `yaml:"name"`
	// Kind says how it speaks: gitea, github or gitlab.
	Kind string `yaml:"kind"`
	// URL is the forge's, such as https://git.example.com.
	URL string `yaml:"url"`
	// TokenFile is the path of the file with the token of our account there,
	// which is read for each request.
	TokenFile string `yaml:"token_file"`
	// App is a GitHub App, in whose name the gateway acts in place of an account with a token.
	App *appSettings `yaml:"app"`
	// Bots are logins of accounts that are programs.
	Bots []string `yaml:"bots"`
	// Repositories are those that are watched, as owner/name, or group/subgroup/name of GitLab.
	Repositories []string `yaml:"repositories"`
	// Hooks are the names of the hooks through which the forge tells; without
	// one, the sweep alone finds what happened.
	Hooks []string `yaml:"hooks"`
	// Rules is the path of the intake rules.
	Rules string `yaml:"rules"`
	// PullRequests has the repository here, as owner/name, of each project
	// whose changes are merged by pull requests, by the project's id.
	PullRequests map[string]string `yaml:"pull_requests"`
	// SweepEvery is the time between two sweeps; 0 for 5 minutes.
	SweepEvery time.Duration `yaml:"sweep_every"`
}

// appSettings are those of a GitHub App.
type appSettings struct {
	// ID is the App's client id or number, and Installation the number of its installation.
	ID           string `yaml:"id"`
	Installation int64  `yaml:"installation"`
	// KeyFile is the path of the file with its private key.
	KeyFile string `yaml:"key_file"`
}

// watchedFile is one file of forges being read.
type watchedFile struct {
	dir  string
	pos  *strictyaml.Positions
	errs strictyaml.Errors
	// known are the hooks that are mounted.
	known []hooks.Hook
	bus   *bus.Bus
	log   *slog.Logger
	// served decides what people ask for in comments, and book says who they are.
	served *api.API
	book   *tokens.Book
	// replica names this gateway.
	replica forge.ReplicaID
	// pulls has the forge of each project whose changes are merged by pull requests.
	pulls map[forge.ProjectID]string
}

// watching has all that a gateway does with one forge.
type watching struct {
	// issues has no repositories where none is watched for issues.
	issues look.Config
	// pulls is nil where no project's changes are merged by pull requests of the forge.
	pulls *pulls.Keeper
	// projects are those of both.
	projects []forge.ProjectID
}

// readForges reads the file of forges, and returns all that is done with each.
// Everything that is wrong is told at once, by field and line.
func readForges(path string, known []hooks.Hook, cfg *Config, served *api.API, book *tokens.Book) ([]watching, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var in struct {
		Forges []watched `yaml:"forges"`
	}
	f := watchedFile{
		dir: filepath.Dir(path), known: known, bus: cfg.Bus, log: cfg.Log, served: served, book: book, replica: cfg.Replica,
		pulls: map[forge.ProjectID]string{},
	}
	if f.pos, err = strictyaml.Decode(data, &in, strictyaml.Options{File: filepath.Base(path)}); err != nil {
		return nil, err
	}
	var list []watching
	for i := range in.Forges {
		// Two watchers of one forge in one gateway would each write their comment.
		if slices.ContainsFunc(in.Forges[:i], func(w watched) bool { return w.Name == in.Forges[i].Name }) {
			f.wrong(i, "name", "is there twice")
			continue
		}
		if w := f.config(i, &in.Forges[i]); len(f.errs) == 0 {
			list = append(list, w)
		}
	}
	if len(f.errs) > 0 {
		return nil, f.errs
	}
	return list, nil
}

// watch has a watcher of a forge run until ctx ends. A forge that does not let
// us in does not end the API: it is tried again.
func (g *Gateway) watch(ctx context.Context, forge string, run func(context.Context) error) error {
	return again(ctx, run, func(err error) {
		g.cfg.Log.ErrorContext(ctx, "a forge is not watched; it is tried again in a minute", "forge", forge, "error", err)
	})
}

// again has a loop run until ctx ends. One that ends before is told to failed,
// and runs again in a minute.
func again(ctx context.Context, run func(context.Context) error, failed func(error)) error {
	for {
		err := run(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was ended: the error says no more than that
		}
		failed(err)
		timer := time.NewTimer(watchAgain)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// wrong notes an error about a field of the n-th forge.
func (f *watchedFile) wrong(n int, field, format string, args ...any) {
	f.errs = append(f.errs, f.pos.Errorf(fmt.Sprintf("forges[%d].%s", n, field), format, args...))
}

// path returns a path that is relative to the folder of the file.
func (f *watchedFile) path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(f.dir, p)
}

// config checks the settings of a forge, and returns all that is done with it.
func (f *watchedFile) config(n int, w *watched) watching {
	cfg := look.Config{
		Name: w.Name, Gateway: string(access.Gateway), Repositories: w.Repositories, Hooks: w.Hooks, Every: w.SweepEvery,
		Submissions: f.bus.Submissions, Deliveries: f.bus.Deliveries, Changes: f.bus.Changes, Intakes: f.bus.Intakes, Log: f.log, API: f.served, Tokens: f.book,
	}
	if speaks[w.Kind] == "" {
		f.wrong(n, "kind", "is %.50q; it can be %s", w.Kind, strings.Join(slices.Sorted(maps.Keys(speaks)), ", "))
	}
	if err := intake.CheckForge(w.Name); err != nil {
		f.wrong(n, "name", "%v", err)
	} else if _, err := subjects.SubmissionVia("any", w.Name, cfg.Gateway); err != nil {
		f.wrong(n, "name", "%v", err)
	}
	if len(w.Repositories) == 0 && len(w.PullRequests) == 0 {
		f.wrong(n, "repositories", "has none, nor has pull_requests; there is nothing to watch")
	}
	for i, r := range w.Repositories {
		if err := w.checkRepository(r); err != nil {
			f.wrong(n, fmt.Sprintf("repositories[%d]", i), "%v", err)
		}
	}
	for i, name := range w.Hooks {
		if !slices.ContainsFunc(f.known, func(h hooks.Hook) bool { return h.Name == name && h.Kind == speaks[w.Kind] }) {
			f.wrong(n, fmt.Sprintf("hooks[%d]", i), "%.70q is no hook of the kind %s in the file of hooks", name, w.Kind)
		}
	}
	if w.SweepEvery != 0 && w.SweepEvery < leastEvery {
		f.wrong(n, "sweep_every", "is %s; at least %s, or nothing", w.SweepEvery, leastEvery)
	}
	if err := f.book.CheckAccounts(w.Name, checkAccount); err != nil {
		f.wrong(n, "name", "has an account in the file of tokens that cannot be: %v", err)
	}
	if len(w.Repositories) > 0 {
		f.rules(n, w, &cfg)
	}
	client, err := f.client(w)
	if err != nil { // it names the setting
		field, why, _ := strings.Cut(err.Error(), ": ")
		f.wrong(n, field, "%s", why)
		return watching{issues: cfg}
	}
	// Nothing that is written to the forge has our own token in it. A token that is
	// replaced later is not known here; those of an App are known by their shape.
	token, _ := os.ReadFile(f.path(w.TokenFile))
	cfg.Forge, cfg.Secrets = client, redact.New(append(redact.Environ(environ.All()), string(token))...)
	projects := slices.Clone(cfg.Projects)
	for name := range w.PullRequests {
		projects = append(projects, forge.ProjectID(name))
	}
	return watching{issues: cfg, pulls: f.pullRequests(n, w, &cfg, client), projects: projects}
}

// checkRepository returns an error unless name can be one of the forge: GitLab
// alone has groups in groups.
func (w *watched) checkRepository(name string) error {
	if w.Kind == kindGitLab {
		return intake.CheckNested(name)
	}
	return intake.CheckRepository(name)
}

// client returns the back end of a forge, or an error that names the setting.
func (f *watchedFile) client(w *watched) (pulls.Forge, error) {
	token := f.path(w.TokenFile)
	switch {
	case w.Kind == kindGitHub:
		cfg := github.Config{URL: w.URL, TokenFile: token, Bots: w.Bots}
		if w.App != nil {
			cfg.App = &github.App{ID: w.App.ID, Installation: w.App.Installation, KeyFile: f.path(w.App.KeyFile)}
		}
		return github.New(cfg)
	case w.App != nil:
		return nil, fmt.Errorf("app: only %s has Apps", kindGitHub)
	case w.Kind == kindGitLab:
		return gitlab.New(gitlab.Config{URL: w.URL, TokenFile: token, Bots: w.Bots})
	}
	return gitea.New(gitea.Config{URL: w.URL, TokenFile: token, Bots: w.Bots})
}

// pullRequests returns the keeper of a forge's pull requests; nil if it has
// none. A project's changes are merged in one repository.
func (f *watchedFile) pullRequests(n int, w *watched, cfg *look.Config, client pulls.Forge) *pulls.Keeper {
	repositories := map[forge.ProjectID]string{}
	for _, name := range slices.Sorted(maps.Keys(w.PullRequests)) {
		field := "pull_requests." + name
		id, err := forge.ParseProjectID(name)
		if err == nil {
			err = w.checkRepository(w.PullRequests[name])
		}
		switch {
		case err != nil:
			f.wrong(n, field, "%v", err)
		case f.pulls[id] != "":
			f.wrong(n, field, "is a project of the forge %s as well", f.pulls[id])
		default:
			f.pulls[id], repositories[id] = w.Name, w.PullRequests[name]
		}
	}
	if len(repositories) == 0 {
		return nil
	}
	return pulls.New(pulls.Config{
		Name: cfg.Name, Forge: client, Repositories: repositories, Tokens: cfg.Tokens, Publish: f.bus.Results.Publish, Replica: f.replica,
		Stopped: f.stopped, Hear: f.hear(cfg.Name),
		Hooks: cfg.Hooks, Deliveries: f.bus.Deliveries, Secrets: cfg.Secrets, Log: cfg.Log, Every: cfg.Every,
	})
}

// hear returns the function that tells runners of comments on the pull requests of a forge. An
// intent that is not there is told nothing.
func (f *watchedFile) hear(name string) func(context.Context, forge.Key, intake.Account, heard.Place, []forges.Comment) error {
	t := heard.Teller{Name: name, Gateway: string(access.Gateway), Submissions: f.bus.Submissions, Log: f.log}
	return func(ctx context.Context, key forge.Key, self intake.Account, at heard.Place, list []forges.Comment) error {
		d, err := f.show(ctx, key)
		if err != nil || d == nil {
			return err
		}
		return t.Tell(ctx, d, self, at, list)
	}
}

// show returns an intent as its runner shows it; nil if there is none.
func (f *watchedFile) show(ctx context.Context, key forge.Key) (*document.Detail, error) {
	data, err := f.bus.Submissions.Show(ctx, key, string(access.Gateway), document.Page{})
	if refused, ok := errors.AsType[*requests.RequestError](err); ok && refused.Code == http.StatusNotFound {
		return nil, nil //nolint:nilnil // it says so
	}
	var d document.Detail
	if err == nil {
		err = json.Unmarshal(data, &d)
	}
	return &d, err
}

// stopped says whether a person stopped an intent, or a task of it. One that is not there goes on.
func (f *watchedFile) stopped(ctx context.Context, key forge.Key, task forge.TaskID) (pulls.Stopped, error) {
	d, err := f.show(ctx, key)
	if err != nil || d == nil {
		return pulls.Stopped{}, err
	}
	return stoppedIn(d, task), nil
}

// stoppedIn says whether a person stopped an intent, or a task of it. A task that failed by
// itself is not stopped, also where it was cancelled before: whoever retries the intent goes on
// with it. Its reason says so: a retry may be that of something else, or come from the parent.
func stoppedIn(d *document.Detail, task forge.TaskID) pulls.Stopped {
	if d.Status == forge.StatusCancelled || d.Status == forge.StatusRejected {
		return pulls.Stopped{Status: d.Status, At: d.UpdatedAt}
	}
	cancelled := func(t document.TaskState) bool { return t.ID == task && t.IsCancelled() }
	if !slices.ContainsFunc(d.TaskList, cancelled) {
		return pulls.Stopped{}
	}
	for _, one := range slices.Backward(d.Decisions) {
		if one.What == "cancel" && one.Task == task {
			return pulls.Stopped{Status: forge.StatusCancelled, Task: task, At: one.At}
		}
	}
	return pulls.Stopped{}
}

// checkAccount returns an error unless an account can be one of a person at a forge.
func checkAccount(person, id string) error {
	if n, err := strconv.ParseInt(id, 10, 64); err != nil || n <= 0 || strconv.FormatInt(n, 10) != id {
		return fmt.Errorf("is %.60q; it has to be the number of the account at the forge", id)
	}
	_, err := subjects.PersonalVia(forge.Key{Project: "any", Intent: "any"}, person, string(access.Gateway), "approve")
	return err
}

// rules reads the intake rules, and finds the projects whose changes are followed.
func (f *watchedFile) rules(n int, w *watched, cfg *look.Config) {
	path := f.path(w.Rules)
	data, err := os.ReadFile(path)
	if err != nil {
		f.wrong(n, "rules", "%v", err)
		return
	}
	if cfg.Rules, err = intake.Parse(filepath.Base(path), data); err != nil {
		f.wrong(n, "rules", "%v", err)
		return
	}
	cfg.Projects = cfg.Rules.Projects()
}
