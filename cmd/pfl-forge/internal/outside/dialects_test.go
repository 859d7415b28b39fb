package outside

import (
	"net/http"
	"net/url"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/gitea"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/github"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/gitlab"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

// backEnd is a back end of a forge.
type backEnd interface {
	forges.Forge
	Close()
}

// client returns the back end in the dialect of a world, by the file of a token.
func (w *forgeWorld) client(token string) (client backEnd) {
	w.t.Helper()
	var err error
	switch w.dialect {
	case hooks.GitHub:
		client, err = github.New(github.Config{URL: w.url, TokenFile: token})
	case hooks.GitLab:
		client, err = gitlab.New(gitlab.Config{URL: w.url, TokenFile: token})
	default:
		client, err = gitea.New(gitea.Config{URL: w.url, TokenFile: token})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return client
}

// hookedInLab has GitLab tell an address what happens.
func (w *forgeWorld) hookedInLab(address, token string) {
	w.t.Helper()
	w.asIn(apis[w.dialect], "root1", http.MethodPost, "/projects/"+url.PathEscape(w.repo)+"/hooks", object{
		"url": address, "token": token, "issues_events": true, "note_events": true,
		"merge_requests_events": true, "pipeline_events": true,
	}, nil)
}
