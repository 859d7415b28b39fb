package forgetest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/bare"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/wire"
)

// Lab speaks GitLab's dialect for a fake. What it knows of issues and pull requests is the fake's,
// so that people can act in one dialect and a back end in another.
type Lab struct {
	*Fake
	LabState
}

// LabState is known to GitLab's dialect alone.
type LabState struct {
	// projects has the settings of repositories.
	projects map[int64]Project
	// Blocked has users who can do nothing.
	Blocked map[string]bool
	// Computing is how often a merge request that is asked for says that it is not computed yet.
	Computing int
	// Scopes are those of each token: api.
	Scopes []string
	// Record is told of each exchange.
	Record func(Exchange)
}

// Project has those settings of a project that GitLab's dialect alone knows.
type Project struct {
	// Method is merge, rebase_merge or ff, which is the default. Squash is default_off by default,
	// and Visibility public.
	Method, Squash, Visibility string
	// Pipelines and Resolved demand that all statuses have passed, and that all
	// remarks are resolved.
	Pipelines, Resolved bool
	// Free is an edition without rules about approvals.
	Free bool
}

// labAPI is where the API of GitLab's dialect begins.
const labAPI = "/api/v4"

// labIn has the fields of all bodies of GitLab's dialect.
type labIn struct {
	bare.Asked

	Title, Description, Body, Name, State, SHA, URL, Token, Labels string

	Internal, Confidential, Squash bool

	AutoMerge    bool   `json:"auto_merge"`
	StateEvent   string `json:"state_event"`
	SourceBranch string `json:"source_branch"`
	TargetBranch string `json:"target_branch"`
	AddLabels    string `json:"add_labels"`
	TargetURL    string `json:"target_url"`
}

// labCall answers a request of GitLab's dialect.
type labCall func(*request, *labIn) (int, any)

// newLab adds GitLab's dialect to a fake.
func newLab(fake *Fake, mux *http.ServeMux) *Lab {
	f := &Lab{fake, LabState{projects: map[int64]Project{}, Blocked: map[string]bool{}, Scopes: []string{"api"}}}
	p := labPulls{f}
	calls := map[string]labCall{
		"GET /users":                                                                 f.findUser,
		"GET /users/{user}":                                                          f.showUser,
		"GET /projects/{id}":                                                         f.showProject,
		"POST /projects/{id}/hooks":                                                  f.makeLabHook,
		"GET /projects/{id}/members/all/{user}":                                      f.member,
		"GET /projects/{id}/issues":                                                  f.listLab(func(i *issue) bool { return i.pull == nil }, f.labIssue),
		"GET /projects/{id}/issues/{number}":                                         f.ofIssue(f.showIssue),
		"PUT /projects/{id}/issues/{number}":                                         f.ofIssue(f.editLab(f.labIssue)),
		"GET /projects/{id}/merge_requests":                                          f.listLab(func(i *issue) bool { return i.pull != nil }, p.object),
		"POST /projects/{id}/merge_requests":                                         p.open,
		"GET /projects/{id}/merge_requests/{number}":                                 f.ofPull(p.show),
		"PUT /projects/{id}/merge_requests/{number}":                                 f.ofPull(f.editLab(p.object)),
		"PUT /projects/{id}/merge_requests/{n}/merge":                                f.ofPull(p.merge),
		"POST /projects/{id}/merge_requests/{n}/discussions/{discussion}/notes":      f.ofPull(p.answer),
		"POST /projects/{id}/statuses/{sha}":                                         p.setStatus,
		"POST /projects/{id}/merge_trains/merge_requests/{n}":                        f.ofPull(p.enqueue),
		"POST /projects/{id}/merge_requests/{n}/cancel_merge_when_pipeline_succeeds": f.ofPull(p.cancel),
		"GET /projects/{id}/approvals":                                               p.approvalSettings,
		"GET /projects/{id}/approval_rules":                                          p.rules,
		"GET /projects/{id}/repository/branches/{b}":                                 p.branch,
		"GET /projects/{id}/merge_requests/{n}/{what}":                               f.ofPull(p.part),
		"GET /projects/{id}/repository/commits/{sha}/statuses":                       p.statuses,
		"GET /projects/{id}/issues/{number}/resource_label_events":                   f.ofIssue(f.labelEvents),
		"GET /projects/{id}/issues/{n}/notes/{note}/award_emoji":                     f.ofIssue(f.awards),
		"POST /projects/{id}/issues/{n}/notes/{note}/award_emoji":                    f.ofIssue(f.award),

		"GET /user":                                   func(q *request, _ *labIn) (int, any) { return http.StatusOK, f.labUser(q.user, true) },
		"GET /groups/{group}":                         func(q *request, _ *labIn) (int, any) { return f.teams.Show(q.PathValue("group")) },
		"GET /groups/{group}/members/all/{user}":      f.groupMember,
		"GET /projects/{id}/repository/merge_base":    func(q *request, _ *labIn) (int, any) { return q.repo.MergeBase(q.URL.Query()["refs[]"]) },
		"GET /projects/{id}/repository/commits/{sha}": func(q *request, _ *labIn) (int, any) { return q.repo.ShowCommit(q.PathValue("sha")) },
		"GET /projects/{id}/repository/files/{path}":  func(q *request, _ *labIn) (int, any) { return q.repo.LabFile(q.PathValue("path")) },
		"GET /projects/{id}/labels/{label}":           func(q *request, _ *labIn) (int, any) { return q.repo.labels.GitLab(q.PathValue("label")) },
		"POST /projects/{id}/labels":                  func(q *request, in *labIn) (int, any) { return q.repo.labels.Make(in.Name) },
		"GET /personal_access_tokens/self":            func(*request, *labIn) (int, any) { return http.StatusOK, object{"scopes": f.Scopes} },
	}
	for kind, of := range map[string]func(labCall) labCall{"issues": f.ofIssue, "merge_requests": f.ofPull} {
		calls["GET /projects/{id}/"+kind+"/{n}/notes"] = of(f.notes)
		calls["POST /projects/{id}/"+kind+"/{n}/notes"] = of(f.sayLab)
		calls["PUT /projects/{id}/"+kind+"/{n}/notes/{note}"] = of(f.editNote)
	}
	for pattern, call := range calls {
		method, path, _ := strings.Cut(strings.ReplaceAll(pattern, "{n}", "{number}"), " ")
		mux.HandleFunc(method+" "+labAPI+path, f.serveLab(call))
	}
	return f
}

// serveLab wraps a function with what all calls of GitLab have: faults, redirects after a rename,
// projects by their number or name, and whose the token is.
func (f *Lab) serveLab(call labCall) http.HandlerFunc {
	return f.guard(func(w http.ResponseWriter, r *http.Request, lost bool) {
		text, _ := io.ReadAll(r.Body)
		r.Body = http.NoBody
		q, in := &request{Request: r, header: http.Header{}, user: tokenOf(r)}, &labIn{}
		status, out := f.doLab(q, in, text, call)
		if lost {
			return
		}
		answer, err := json.Marshal(out)
		if err != nil {
			panic(err)
		}
		if f.Record != nil {
			f.Record(Exchange{Method: r.Method, Path: strings.TrimPrefix(r.URL.EscapedPath(), labAPI), Query: r.URL.RawQuery, In: text, Status: status, Out: answer})
		}
		sum := sha256.Sum256(answer)
		tag := `W/"` + hex.EncodeToString(sum[:16]) + `"`
		maps.Copy(w.Header(), q.header)
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet && status == http.StatusOK {
			w.Header().Set("ETag", tag)
			if r.Header.Get("If-None-Match") == tag {
				status, answer = http.StatusNotModified, nil
			}
		}
		w.WriteHeader(status)
		_, _ = w.Write(answer)
	})
}

// doLab finds the project of a request, by its number or its path, and carries it out. A project
// that was renamed is found by its former path too: reads are sent on to the new one, and writes
// refused, as GitLab does it. A private project is not found by who is no member.
func (f *Lab) doLab(q *request, in *labIn, text []byte, call labCall) (int, any) {
	if !slices.Contains(f.users, q.user) || f.Blocked[q.user] {
		return says(http.StatusUnauthorized, "401 Unauthorized")
	}
	if len(text) > 0 && json.Unmarshal(text, in) != nil {
		return says(http.StatusBadRequest, "400 Bad request")
	}
	if id := q.PathValue("id"); id != "" {
		name, status := f.find(id)
		switch {
		case status != http.StatusOK && q.Method != http.MethodGet:
			return says(http.StatusMethodNotAllowed, "Non GET methods are not allowed for moved projects")
		case status != http.StatusOK:
			to := strings.Replace(q.URL.EscapedPath(), url.PathEscape(id), name, 1)
			q.header.Set("Location", f.srv.URL+to+"?"+q.URL.RawQuery)
			return says(status, "This resource has been moved permanently")
		}
		owner, name, _ := strings.Cut(name, "/")
		q.SetPathValue("owner", owner)
		q.SetPathValue("name", name)
	}
	status, out := f.carry(q, func(q *request) (int, any) {
		if q.repo != nil && f.settings(q.repo).Visibility == "private" && f.levelOf(q.repo, q.user) == 0 {
			return http.StatusNotFound, nil
		}
		return call(q, in)
	})
	if out == nil && status >= http.StatusBadRequest {
		return says(status, fmt.Sprintf("%d %s", status, http.StatusText(status)))
	}
	return status, out
}

// find returns the name of a project by its number or name, or the number of one that was renamed.
func (f *Lab) find(id string) (string, int) {
	for _, r := range f.repos {
		if strconv.FormatInt(r.id, 10) == id {
			return r.name, http.StatusOK
		}
	}
	if to, moved := f.Hub.moved[strings.ToLower(id)]; moved && f.repos[strings.ToLower(id)] == nil {
		return strconv.FormatInt(to, 10), http.StatusMovedPermanently
	}
	return id, http.StatusOK
}

// settings returns those of a project, with the defaults.
func (f *Lab) settings(r *repo) Project {
	p := f.projects[r.id]
	return Project{cmp.Or(p.Method, "ff"), cmp.Or(p.Squash, "default_off"), cmp.Or(p.Visibility, "public"), p.Pipelines, p.Resolved, p.Free}
}

// Set changes the settings of a project.
func (f *Lab) Set(name string, p Project) {
	f.Change(func(s *LabState) { s.projects[f.repos[strings.ToLower(name)].id] = p })
}

// Change changes something while nothing is asked.
func (f *Lab) Change(change func(*LabState)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.LabState)
}

// Add notes something at an issue or a merge request that people cannot write:
// a note by GitLab itself (system), one that is internal, or, as the kind
// confidential, that the issue is from now on.
func (f *Lab) Add(name string, number int64, by, kind, body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.repos[strings.ToLower(name)].issues[number-1]
	i.confidential = i.confidential || kind == "confidential"
	i.events = append(i.events, &event{id: f.next(), kind: kind, by: by, body: body, created: f.now, edited: f.now})
}

// levelOf returns the level of a member; 0 for a user who is none.
func (f *Lab) levelOf(r *repo, user string) int {
	if r.may(user) {
		return 50
	}
	return map[string]int{"admin": 40, "write": 30, "reporter": 20, "planner": 15, "guest": 10, "read": 10}[r.roles[user]]
}

// labUser returns a user as GitLab does; whether it is a program only where one is asked for.
func (f *Lab) labUser(login string, alone bool) object {
	state := map[bool]string{true: "blocked", false: "active"}[f.Blocked[login]]
	o := object{"id": f.id(login), "username": login, "name": login, "state": state}
	if alone {
		o["bot"] = strings.HasSuffix(login, "[bot]")
	}
	return o
}

// other returns a user as GitLab does of another one.
func (f *Lab) other(login string) object { return f.labUser(login, false) }

// findUser returns the users of a name: one or none.
func (f *Lab) findUser(q *request, _ *labIn) (int, any) {
	out := []object{}
	if name := q.URL.Query().Get("username"); slices.Contains(f.users, name) {
		out = append(out, f.labUser(name, false))
	}
	return http.StatusOK, out
}

// showUser returns a user by the number.
func (f *Lab) showUser(q *request, _ *labIn) (int, any) {
	id := q.number("user")
	if id < 1 || int(id) > len(f.users) {
		return says(http.StatusNotFound, "404 User Not Found")
	}
	return http.StatusOK, f.labUser(f.users[id-1], true)
}

// showProject returns a project.
func (f *Lab) showProject(q *request, _ *labIn) (int, any) {
	p := f.settings(q.repo)
	return http.StatusOK, object{
		"id": q.repo.id, "path_with_namespace": q.repo.name, "visibility": p.Visibility, "merge_method": p.Method, "squash_option": p.Squash,
		"default_branch": "main", "merge_trains_enabled": q.repo.queue,
		"only_allow_merge_if_pipeline_succeeds": p.Pipelines, "only_allow_merge_if_all_discussions_are_resolved": p.Resolved,
	}
}

// makeLabHook has an address told in GitLab's dialect.
func (f *Lab) makeLabHook(q *request, in *labIn) (int, any) {
	q.repo.hooks = append(q.repo.hooks, wire.Hook{URL: in.URL, Secret: in.Token, Dialect: wire.GitLab})
	return http.StatusCreated, object{"id": f.next(), "url": in.URL}
}

// member returns a member by the number.
func (f *Lab) member(q *request, _ *labIn) (int, any) {
	id := q.number("user")
	if id < 1 || int(id) > len(f.users) || f.levelOf(q.repo, f.users[id-1]) == 0 {
		return says(http.StatusNotFound, "404 Not found")
	}
	o := f.labUser(f.users[id-1], false)
	o["access_level"], o["expires_at"], o["membership_state"] = f.levelOf(q.repo, f.users[id-1]), nil, "active"
	return http.StatusOK, o
}

// groupMember returns a member of a group by the number.
func (f *Lab) groupMember(q *request, _ *labIn) (int, any) {
	id := q.number("user")
	if id < 1 || int(id) > len(f.users) {
		return says(http.StatusNotFound, "404 Not found")
	}
	return f.teams.GroupMember(q.PathValue("group"), id, f.labUser(f.users[id-1], false))
}
