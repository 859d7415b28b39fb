package forgetest

import (
	"encoding/base64"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/bare"
)

// Dir returns the folder of a repository, a bare one of git, to which agents push as to that of
// a real forge.
func (f *Fake) Dir(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.repos[strings.ToLower(name)].Dir
}

// Pushed has the forge look at what was pushed to a repository's folder, as a real one does by
// itself: it tells of it.
func (f *Fake) Pushed(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pulls{f}.sync(f.repos[strings.ToLower(name)])
}

// initRepo makes the folder of a repository, with a first commit on main.
func (f *Fake) initRepo(r *repo) {
	r.Repo = bare.Repo{Dir: filepath.Join(f.root, strings.ReplaceAll(r.name, "/", "-")+".git")}
	r.Init("# " + r.name + "\n")
}

// makeFile puts a file on a branch, or on a new one, for those who may write.
func (f pulls) makeFile(q *request) (int, any) {
	branch, from := q.in.Branch, q.in.Branch
	if q.in.NewBranch != "" {
		branch = q.in.NewBranch
	}
	content, err := base64.StdEncoding.DecodeString(q.in.Content)
	switch {
	case !q.repo.may(q.user, "write", "admin"), q.repo.rules[branch] != nil:
		return http.StatusForbidden, nil
	case err != nil || q.repo.Head(from) == "":
		return http.StatusUnprocessableEntity, nil
	}
	commit, err := q.repo.Commit(branch, q.repo.Head(from), q.PathValue("path"), content, q.in.Message)
	if err != nil {
		return http.StatusUnprocessableEntity, nil
	}
	f.sync(q.repo)
	return http.StatusCreated, object{"commit": object{"sha": commit}}
}
