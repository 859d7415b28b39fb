package forgetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/bare"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/labels"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/protect"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/statuses"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/teams"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/wire"
)

// Fake is a forge in the process. Its users are root1, who administers it, bot, ada and eve;
// the token of each is their name.
type Fake struct {
	srv *httptest.Server

	mu     sync.Mutex
	root   string
	users  []string
	repos  map[string]*repo
	nextID int64
	now    time.Time
	script wire.Script
	hooks  wire.Hooks
	teams  teams.Teams
	asked  map[string]int
	// page is how many things a page has at most.
	page int

	// Hub speaks GitHub's dialect, and Lab GitLab's.
	Hub    *Hub
	Lab    *Lab
	Queues Queues
}

// Fault is an answer that the forge gives in place of its own.
type Fault = wire.Fault

// repo is a repository. Whoever is not in roles may read, open issues and comment.
type repo struct {
	bare.Repo

	id       int64
	name     string
	roles    map[string]string
	labels   labels.List
	issues   []*issue
	hooks    []wire.Hook
	rules    map[string]*protect.Rule
	statuses statuses.List
	// queue says that it has a merge queue, or merge trains, and auto that it
	// merges by itself (GitHub).
	queue, auto bool
}

// issue is an issue with all that happened to it, the oldest first.
type issue struct {
	number          int64
	by, title, body string
	state           string
	labels          []string
	created, edited time.Time
	events          []*event
	// pull is not nil for a pull request.
	pull *pull
	// confidential is of GitLab's dialect.
	confidential bool
}

// event is a comment, a label that was put on (1) or taken off, or an edit,
// with the words of GitLab for it.
type event struct {
	id              int64
	kind, by, body  string
	label           string
	created, edited time.Time
	reactions       []string
}

// NewFake starts a forge with the users root1, bot, ada and eve, and no repository; Close ends it.
// It is all three kinds at once: a repository that was made at Gitea is there at GitHub's and
// GitLab's paths.
func NewFake() *Fake {
	root, err := os.MkdirTemp("", "forge")
	if err != nil {
		panic(err)
	}
	f := &Fake{
		root: root, users: []string{"root1", "bot", "ada", "eve"}, repos: map[string]*repo{}, asked: map[string]int{}, page: usualPage,
		now: time.Now().UTC().Truncate(time.Second),
	}
	mux, p := http.NewServeMux(), pulls{f}
	show := func(q *request) (int, any) { return http.StatusOK, f.issueObject(q.repo, q.issue) }
	for pattern, serve := range map[string]func(*request) (int, any){
		"GET /api/v1/user":                                                      f.self,
		"POST /api/v1/user/repos":                                               f.makeRepo,
		"GET /api/v1/user/orgs":                                                 func(*request) (int, any) { return http.StatusOK, []object{} },
		"GET /api/v1/repos/{owner}/{name}":                                      f.showRepo,
		"PUT /api/v1/repos/{owner}/{name}/collaborators/{user}":                 f.collaborate,
		"GET /api/v1/repos/{owner}/{name}/collaborators/{user}/permission":      f.permission,
		"GET /api/v1/repos/{owner}/{name}/labels":                               func(q *request) (int, any) { return q.repo.labels.Show() },
		"POST /api/v1/repos/{owner}/{name}/labels":                              func(q *request) (int, any) { return q.repo.labels.Make(q.in.Name) },
		"POST /api/v1/repos/{owner}/{name}/hooks":                               f.makeHook(""),
		"GET /api/v1/repos/{owner}/{name}/issues":                               f.listIssues,
		"POST /api/v1/repos/{owner}/{name}/issues":                              f.openIssue,
		"GET /api/v1/repos/{owner}/{name}/issues/{number}":                      show,
		"PATCH /api/v1/repos/{owner}/{name}/issues/{number}":                    f.editIssue,
		"POST /api/v1/repos/{owner}/{name}/issues/{number}/labels":              f.label,
		"DELETE /api/v1/repos/{owner}/{name}/issues/{number}/labels/{id}":       f.unlabel,
		"GET /api/v1/repos/{owner}/{name}/issues/{number}/timeline":             f.timeline,
		"GET /api/v1/repos/{owner}/{name}/issues/{number}/comments":             f.listComments,
		"POST /api/v1/repos/{owner}/{name}/issues/{number}/comments":            f.say,
		"PATCH /api/v1/repos/{owner}/{name}/issues/comments/{id}":               f.editComment,
		"POST /api/v1/repos/{owner}/{name}/issues/comments/{id}/reactions":      f.react,
		"POST /api/v1/repos/{owner}/{name}/contents/{path}":                     p.makeFile,
		"PUT /api/v1/repos/{owner}/{name}/contents/{path}":                      p.makeFile,
		"GET /api/v1/repos/{owner}/{name}/contents/{path}":                      func(q *request) (int, any) { return q.repo.Contents(q.PathValue("path")) },
		"GET /api/v1/repos/{owner}/{name}/pulls":                                p.listPulls,
		"POST /api/v1/repos/{owner}/{name}/pulls":                               p.openPull,
		"GET /api/v1/repos/{owner}/{name}/pulls/{base}/{head}":                  p.findPull,
		"GET /api/v1/repos/{owner}/{name}/pulls/{number}":                       withPull(p.showPull),
		"PATCH /api/v1/repos/{owner}/{name}/pulls/{number}":                     withPull(p.editPull),
		"POST /api/v1/repos/{owner}/{name}/pulls/{number}/merge":                withPull(p.mergePull),
		"DELETE /api/v1/repos/{owner}/{name}/pulls/{number}/merge":              withPull(p.unschedule),
		"GET /api/v1/repos/{owner}/{name}/pulls/{number}/reviews":               withPull(p.listReviews),
		"POST /api/v1/repos/{owner}/{name}/pulls/{number}/reviews":              withPull(p.review),
		"GET /api/v1/repos/{owner}/{name}/pulls/{number}/reviews/{id}/comments": withPull(p.listRemarks),
		"GET /api/v1/repos/{owner}/{name}/compare/{range}":                      func(q *request) (int, any) { return q.repo.Compare(q.PathValue("range")) },
		"GET /api/v1/repos/{owner}/{name}/git/commits/{sha}":                    func(q *request) (int, any) { return q.repo.ShowWrapped(q.PathValue("sha")) },
		"POST /api/v1/repos/{owner}/{name}/statuses/{sha}":                      p.setStatus,
		"GET /api/v1/repos/{owner}/{name}/commits/{sha}/status":                 p.showStatuses,
		"POST /api/v1/repos/{owner}/{name}/branch_protections":                  p.protect,
		"GET /api/v1/repos/{owner}/{name}/branch_protections/{branch}":          p.showRule,
		"GET /api/v1/repos/{owner}/{name}/branches/{branch}":                    p.showBranch,
		"DELETE /api/v1/repos/{owner}/{name}/branches/{branch}":                 p.deleteBranch,
		"GET /api/v1/orgs/{org}/teams/search": func(q *request) (int, any) {
			return f.teams.Search(q.PathValue("org"), q.URL.Query().Get("q"))
		},
		"GET /api/v1/teams/{team}/members/{user}": func(q *request) (int, any) {
			return f.teams.Member(q.number("team"), f.id(q.PathValue("user")), f.user(q.PathValue("user")))
		},
	} {
		mux.HandleFunc(pattern, f.serve(serve))
	}
	f.Hub, f.Lab, f.Queues = newHub(f, mux), newLab(f, mux), Queues{f}
	f.srv = httptest.NewServer(mux)
	return f
}

// URL returns the address of the forge.
func (f *Fake) URL() string { return f.srv.URL }

// Close ends the forge, when all hooks are sent.
func (f *Fake) Close() {
	f.hooks.Wait()
	f.srv.Close()
	_ = os.RemoveAll(f.root)
}

// Script has the next requests that fit answered with faults, each once.
func (f *Fake) Script(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = append(f.script, faults...)
}

// Team makes a team, as org/team, or gives it other members. One that is hidden is shown to no one.
func (f *Fake) Team(name string, hidden bool, members ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []int64
	for _, m := range members {
		ids = append(ids, f.id(m))
	}
	f.teams.Set(name, hidden, ids...)
}

// Asked returns how many requests there were with a method to paths that hold a part.
func (f *Fake) Asked(method, part string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for request, count := range f.asked {
		if m, path, _ := strings.Cut(request, " "); m == method && strings.Contains(path, part) {
			n += count
		}
	}
	return n
}

// request is one call of the API.
type request struct {
	*http.Request

	user string
	in   struct {
		bare.Asked

		Title, Body, Name, State, Permission, Content string
		Labels                                        []string

		// Of branches, pull requests, reviews and statuses.
		Branch, Message, Head, Base, Event, Context, Description, Do string

		// Of GitHub's dialect.
		SHA   string
		Query string
		Draft bool
		// MergeMethod is GitHub's word for Do.
		MergeMethod string         `json:"merge_method"`
		Variables   map[string]any `json:"variables"`

		NewBranch    string `json:"new_branch"`
		HeadCommitID string `json:"head_commit_id"`
		Later        bool   `json:"merge_when_checks_succeed"`
		TargetURL    string `json:"target_url"`
		Comments     []struct {
			Path, Body string
			Line       int64 `json:"new_position"`
		}
		Config struct {
			URL    string `json:"url"`
			Secret string `json:"secret"`
		}
	}
	// rule is the body, too, where it is that of a branch.
	rule protect.Rule
	// header is for the answer.
	header http.Header
	repo   *repo
	issue  *issue
	// page is the forge's bound of a page.
	page int
}

// serve wraps a function with what all calls have: faults, the user of the token, the body, and
// what the path names.
func (f *Fake) serve(do func(*request) (int, any)) http.HandlerFunc {
	return f.guard(func(w http.ResponseWriter, r *http.Request, lost bool) {
		status, out := f.do(r, do)
		if lost {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if out != nil {
			_ = json.NewEncoder(w).Encode(out)
		}
	})
}

// guard wraps a function with the faults of the script; one whose answer is lost writes none.
func (f *Fake) guard(do func(w http.ResponseWriter, r *http.Request, lost bool)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.asked[r.Method+" "+r.URL.Path]++
		fault := f.script.Take(r, tokenOf(r))
		if fault == nil || fault.After {
			do(w, r, fault != nil)
		}
		if fault != nil {
			fault.Answer(w)
		}
	}
}

// do carries a request out.
func (f *Fake) do(r *http.Request, do func(*request) (int, any)) (int, any) {
	q := &request{Request: r, user: tokenOf(r)}
	if !slices.Contains(f.users, q.user) {
		return http.StatusUnauthorized, nil
	}
	return f.carry(q, do)
}

// tokenOf returns the token of a request.
func tokenOf(r *http.Request) string {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return token
}

// carry carries a request of a user out, after it has read the body and found the repository
// and the issue of the path.
func (f *Fake) carry(q *request, do func(*request) (int, any)) (int, any) {
	r := q.Request
	if r.Method != http.MethodGet {
		body, err := io.ReadAll(r.Body)
		if err != nil || len(body) > 0 && (json.Unmarshal(body, &q.in) != nil || json.Unmarshal(body, &q.rule) != nil) {
			return http.StatusUnprocessableEntity, nil
		}
	}
	if name := r.PathValue("name"); name != "" {
		if q.repo = f.repos[strings.ToLower(r.PathValue("owner")+"/"+name)]; q.repo == nil {
			return http.StatusNotFound, nil
		}
	}
	if number := r.PathValue("number"); number != "" {
		i := slices.IndexFunc(q.repo.issues, func(i *issue) bool { return fmt.Sprint(i.number) == number })
		if i < 0 {
			return http.StatusNotFound, nil
		}
		q.issue = q.repo.issues[i]
	}
	q.page = f.page
	f.now = f.now.Add(time.Second) // no two things happen at one time
	if q.repo != nil {
		pulls{f}.sync(q.repo)
	}
	return do(q)
}

// id returns the number of a user.
func (f *Fake) id(user string) int64 { return int64(slices.Index(f.users, user) + 1) }

// next returns a new number for a thing.
func (f *Fake) next() int64 {
	f.nextID++
	return f.nextID
}

// may reports whether a user has one of the roles in a repository; its owner and root1 have
// all.
func (r *repo) may(user string, roles ...string) bool {
	owner, _, _ := strings.Cut(r.name, "/")
	return user == owner || user == "root1" || slices.Contains(roles, r.roles[user])
}

// roleOf returns the role of a user; all is that of who may do all. Everybody may read.
func (r *repo) roleOf(user, all string) string {
	if r.may(user) {
		return all
	}
	return cmp.Or(r.roles[user], "read")
}

// number returns the number in a part of the path.
func (q *request) number(part string) int64 {
	n, _ := strconv.ParseInt(q.PathValue(part), 10, 64)
	return n
}
