package forgetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/apps"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/statuses"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/wire"
)

// Hub speaks GitHub's dialect for a fake, as an Enterprise Server, with all that is there in
// that dialect alone. What it knows of issues and pull requests is the fake's, so that people
// can act in one dialect and a back end in the other.
type Hub struct {
	*Fake

	// left counts the requests that the primary limit allows until its end, reset.
	left  int
	reset time.Time
	// moved has repositories that were renamed, by their former name.
	moved map[string]int64
	// apps are those that are let in.
	apps apps.Apps
	// carries says that reviews are moved along with each push, whatever it changes.
	carries bool
	// runs are check runs, and ruleSets the rules of rulesets, by the repository and the branch.
	runs     []CheckRun
	ruleSets map[string][]map[string]any
	// record is told of each exchange.
	record func(Exchange)
}

const (
	// hubAPI is where the API of GitHub's dialect begins, as that of an Enterprise Server.
	hubAPI = "/api/v3"
	// limit is the primary one.
	limit = 5000
	// AppBot is the account in whose name an App acts.
	AppBot = "builder[bot]"
)

// Exchange is a request in the dialect of GitHub or GitLab, with its answer.
type Exchange = wire.Exchange

// CheckRun has the words of an App about a commit.
type CheckRun = statuses.Run

// newHub adds GitHub's dialect to a fake.
func newHub(fake *Fake, mux *http.ServeMux) *Hub {
	f := &Hub{
		Fake: fake, left: limit, reset: fake.now.Add(time.Hour).Truncate(time.Second), moved: map[string]int64{}, apps: apps.New(),
		ruleSets: map[string][]map[string]any{},
	}
	f.users = append(f.users, AppBot)
	h, p := hubIssues{f}, hubPulls{f}
	for pattern, serve := range map[string]func(*request) (int, any){
		"GET /user":         h.self,
		"GET /users/{user}": h.showUser,
		"GET /app":          h.showApp,
		"POST /app/installations/{id}/access_tokens":                      h.makeToken,
		"GET /repos/{owner}/{name}/installation":                          h.showInstallation,
		"GET /orgs/{org}/members/{user}":                                  h.member,
		"GET /repos/{owner}/{name}":                                       h.showRepo,
		"POST /repos/{owner}/{name}/hooks":                                f.makeHook(wire.GitHub),
		"GET /repos/{owner}/{name}/collaborators/{user}/permission":       h.permission,
		"GET /repos/{owner}/{name}/issues":                                h.list,
		"GET /repos/{owner}/{name}/issues/{number}":                       func(q *request) (int, any) { return http.StatusOK, f.hubIssue(q.repo, q.issue) },
		"PATCH /repos/{owner}/{name}/issues/{number}":                     h.edit,
		"GET /repos/{owner}/{name}/issues/{number}/events":                h.events,
		"GET /repos/{owner}/{name}/issues/{number}/comments":              h.comments,
		"POST /repos/{owner}/{name}/issues/{number}/comments":             h.say,
		"PATCH /repos/{owner}/{name}/issues/comments/{id}":                h.editComment,
		"POST /repos/{owner}/{name}/issues/comments/{id}/reactions":       h.react,
		"POST /repos/{owner}/{name}/issues/{number}/labels":               h.label,
		"GET /repos/{owner}/{name}/labels/{label}":                        func(q *request) (int, any) { return q.repo.labels.GitHub(q.PathValue("label")) },
		"POST /repos/{owner}/{name}/labels":                               h.makeLabel,
		"GET /repos/{owner}/{name}/pulls":                                 p.list,
		"POST /repos/{owner}/{name}/pulls":                                p.open,
		"GET /repos/{owner}/{name}/pulls/{number}":                        withPull(p.show),
		"PATCH /repos/{owner}/{name}/pulls/{number}":                      withPull(p.edit),
		"PUT /repos/{owner}/{name}/pulls/{number}/merge":                  withPull(p.merge),
		"GET /repos/{owner}/{name}/pulls/{number}/reviews":                withPull(p.reviews),
		"GET /repos/{owner}/{name}/pulls/{number}/comments":               withPull(p.remarks),
		"POST /repos/{owner}/{name}/pulls/{number}/comments/{id}/replies": withPull(p.answer),
		"GET /repos/{owner}/{name}/git/ref/heads/{branch...}":             p.branch,
		"GET /repos/{owner}/{name}/git/commits/{sha}":                     func(q *request) (int, any) { return q.repo.ShowCommit(q.PathValue("sha")) },
		"GET /repos/{owner}/{name}/compare/{range}":                       p.compare,
		"GET /repos/{owner}/{name}/commits/{sha}/statuses":                p.statuses,
		"GET /repos/{owner}/{name}/commits/{sha}/check-runs":              p.checkRuns,
		"POST /repos/{owner}/{name}/statuses/{sha}":                       p.setStatus,
		"GET /repos/{owner}/{name}/branches/{branch}/protection":          p.protection,
		"GET /repos/{owner}/{name}/rules/branches/{branch}":               p.rules,
		"GET /repos/{owner}/{name}/contents/{path}":                       func(q *request) (int, any) { return q.repo.Contents(q.PathValue("path")) },
		"GET /orgs/{org}/teams/{team}":                                    func(q *request) (int, any) { return f.teams.Show(q.team()) },
		"GET /orgs/{org}/teams/{team}/memberships/{user}": func(q *request) (int, any) {
			return f.teams.Membership(q.team(), f.id(q.PathValue("user")))
		},
	} {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+hubAPI+path, f.serveHub(serve))
	}
	mux.HandleFunc("POST /api/graphql", f.serveHub(p.graphQL))
	mux.HandleFunc(hubAPI+"/repositories/{id}/{rest...}", func(w http.ResponseWriter, r *http.Request) { f.byNumber(mux, w, r) })
	mux.HandleFunc(hubAPI+"/repositories/{id}", func(w http.ResponseWriter, r *http.Request) { f.byNumber(mux, w, r) })
	return f
}

// team returns the name of the team that a path names.
func (q *request) team() string { return q.PathValue("org") + "/" + q.PathValue("team") }

// byNumber serves the place of a repository that does not change with its name.
func (f *Hub) byNumber(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	name := ""
	for _, repo := range f.repos {
		if strconv.FormatInt(repo.id, 10) == r.PathValue("id") {
			name = repo.name
		}
	}
	f.mu.Unlock()
	path := hubAPI + "/repos/" + name
	if rest := r.PathValue("rest"); rest != "" {
		path += "/" + rest
	}
	again := r.Clone(r.Context())
	again.URL = &url.URL{Path: path, RawQuery: r.URL.RawQuery}
	mux.ServeHTTP(w, again)
}

// serveHub wraps a function with what all calls of GitHub have: faults, limits, ETags,
// redirects after a rename, and whose the token is.
func (f *Hub) serveHub(do func(*request) (int, any)) http.HandlerFunc {
	return f.guard(func(w http.ResponseWriter, r *http.Request, lost bool) {
		in, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(in))
		q := &request{Request: r, header: http.Header{}}
		status, out := f.doHub(q, do)
		if lost {
			return
		}
		text, err := json.Marshal(out)
		if err != nil {
			panic(err)
		}
		if status == http.StatusNoContent {
			text = nil
		}
		if f.record != nil {
			f.record(Exchange{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, In: in, Status: status, Out: text})
		}
		sum := sha256.Sum256(text)
		tag := `"` + hex.EncodeToString(sum[:8]) + `"`
		same := r.Method == http.MethodGet && status == http.StatusOK && r.Header.Get("If-None-Match") == tag
		if !same && f.left > 0 {
			f.left--
		}
		maps.Copy(w.Header(), q.header)
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("X-Ratelimit-Limit", strconv.Itoa(limit))
		w.Header().Set("X-Ratelimit-Remaining", strconv.Itoa(f.left))
		w.Header().Set("X-Ratelimit-Reset", strconv.FormatInt(f.reset.Unix(), 10))
		if same {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", tag)
		w.WriteHeader(status)
		_, _ = w.Write(text)
	})
}

// doHub finds out whose a request is, and carries it out.
func (f *Hub) doHub(q *request, do func(*request) (int, any)) (int, any) {
	r := q.Request
	switch {
	case r.Header.Get("User-Agent") == "" || strings.HasPrefix(r.Header.Get("User-Agent"), "Go-http-client"):
		return says(http.StatusForbidden, "Request forbidden by administrative rules. Please make sure your request has a User-Agent header")
	case f.left <= 0:
		return says(http.StatusForbidden, "API rate limit exceeded for user ID 2.")
	}
	if to, ok := f.redirect(r); ok {
		q.header.Set("Location", to)
		status := http.StatusMovedPermanently
		if r.Method != http.MethodGet {
			status = http.StatusTemporaryRedirect
		}
		return says(status, "Moved Permanently")
	}
	token := tokenOf(r)
	q.user = token
	if strings.Count(token, ".") == 2 { // a JWT, which is for the App's own affairs alone
		if !strings.HasPrefix(r.URL.Path, hubAPI+"/app") && !strings.HasSuffix(r.URL.Path, "/installation") {
			return says(http.StatusUnauthorized, "A JSON web token could not be decoded")
		}
		q.user = f.apps.Of(token)
	} else if it := f.apps.Tokens[token]; it != nil {
		q.user = AppBot
		switch name := r.PathValue("owner") + "/" + r.PathValue("name"); {
		case !f.now.Before(it.End):
			return says(http.StatusUnauthorized, "Bad credentials")
		case it.Suspended:
			return says(http.StatusForbidden, "This installation has been suspended")
		// What is public can be read with it everywhere.
		case r.PathValue("name") != "" && r.Method != http.MethodGet && !slices.ContainsFunc(it.Repos, f.isNow(name)):
			return says(http.StatusForbidden, "Resource not accessible by integration")
		}
	} else if !slices.Contains(f.users, token) || token == AppBot {
		return says(http.StatusUnauthorized, "Bad credentials")
	}
	status, out := f.carry(q, do)
	if out == nil && status >= http.StatusBadRequest {
		return says(status, http.StatusText(status))
	}
	return status, out
}

// isNow returns whether a name of an installation is that of a repository, also where that was
// renamed.
func (f *Hub) isNow(name string) func(string) bool {
	return func(former string) bool {
		repo := f.repos[strings.ToLower(name)]
		id, moved := f.moved[former]
		return strings.EqualFold(former, name) && !moved || repo != nil && moved && repo.id == id
	}
}

// redirect returns the place of a repository that was renamed, as long as no other one has its
// name.
func (f *Hub) redirect(r *http.Request) (string, bool) {
	name := strings.ToLower(r.PathValue("owner") + "/" + r.PathValue("name"))
	id, moved := f.moved[name]
	if !moved || f.repos[name] != nil {
		return "", false
	}
	rest := strings.TrimPrefix(strings.ToLower(r.URL.Path), strings.ToLower(hubAPI+"/repos/"+name))
	to := f.srv.URL + hubAPI + "/repositories/" + strconv.FormatInt(id, 10) + r.URL.Path[len(r.URL.Path)-len(rest):]
	if r.URL.RawQuery != "" {
		to += "?" + r.URL.RawQuery
	}
	return to, true
}

// hubPage returns the page of a list that a request asks for, and names the next one in the
// header Link.
func hubPage(q *request, all []object) []object {
	return wire.Page(q.Request, "per_page", q.page, q.header, all)
}
