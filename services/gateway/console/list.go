package console

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

const (
	// mostListed bounds the intents of which a page is made, of all projects together, and
	// perList those of one answer.
	mostListed, perList = 5000, 500
	// mostLive bounds the projects whose changes a page waits for: a browser has few connections
	// to one address.
	mostLive = 2
	// mostProjects bounds the projects of a page.
	mostProjects = 20
)

// listed are the intents of which a page is made.
type listed struct {
	Intents []document.State
	// More says that there are more than a page is made of.
	More bool
	// Unread are the projects that cannot be read now.
	Unread []forge.ProjectID
	// Unseen is why one of them cannot be read that the person has no role in;
	// nil if there is none.
	Unseen error
}

// collect reads the intents of some projects that a query selects, as the API has its
// parameters. One that does not answer is named, and the others are there all the same; where all
// are, or the mistake is one of the query, that is the error.
func (v *visit) collect(ctx context.Context, projects []forge.ProjectID, query url.Values) (l listed, err error) {
	l.More = len(projects) > mostProjects
	projects = projects[:min(len(projects), mostProjects)]
	parts, errs := make([]listed, len(projects)), make([]error, len(projects))
	var asked sync.WaitGroup
	var count atomic.Int64
	for i, p := range projects { // at once: each waits as long for one that does not answer
		asked.Go(func() { parts[i], errs[i] = v.collectOf(ctx, p, query, &count) })
	}
	asked.Wait()
	l.Unseen = api.FirstBarred(errs)
	for i, err := range errs {
		l.Intents, l.More = append(l.Intents, parts[i].Intents...), l.More || parts[i].More
		if err == nil {
			continue
		}
		if status := statusOf(err); status != 0 && status < http.StatusInternalServerError && status != http.StatusForbidden {
			return l, err
		}
		if l.Unread = append(l.Unread, projects[i]); len(l.Unread) == len(projects) {
			return l, err
		}
	}
	return l, nil
}

// collectOf reads the intents of one project. count is how many there are of all projects.
func (v *visit) collectOf(ctx context.Context, p forge.ProjectID, query url.Values, count *atomic.Int64) (l listed, err error) {
	for after := ""; ; {
		q := url.Values{}
		maps.Copy(q, query)
		q.Set("limit", strconv.Itoa(perList))
		if after != "" {
			q.Set("after", after)
		}
		var page document.Listed
		if err := v.ask(ctx, p, "/intents?"+q.Encode(), &page); err != nil {
			return l, err
		}
		l.Intents = append(l.Intents, page.Intents...)
		if after = string(page.Next); count.Add(int64(len(page.Intents))) >= mostListed {
			l.More = l.More || after != ""
			return l, nil
		}
		if after == "" {
			return l, nil
		}
	}
}

// listable returns the projects of a page: those whose intents the holder may list. An entry
// may name a project without a role.
func (v *visit) listable() []forge.ProjectID {
	return slices.DeleteFunc(v.console.projects(v.token), func(p forge.ProjectID) bool { return !v.token.May(p, tokens.List) })
}

// address returns a path with a query.
func address(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// choice is the project that a page is about, beside the listed ones that it could be about.
type choice struct {
	Project  forge.ProjectID
	Projects []forge.ProjectID
	// Wide says that there may be projects that are not listed.
	Wide bool
}

// choose reads the project of the address. Where that names none, it is the first
// one in which the holder has the verb; none says why there is no such project.
func (v *visit) choose(verb tokens.Verb, none string) (c choice, err error) {
	c.Wide = v.token.Everywhere()
	c.Projects = slices.DeleteFunc(v.console.projects(v.token), func(p forge.ProjectID) bool { return !v.token.May(p, verb) })
	named := strings.TrimSpace(v.r.URL.Query().Get("project"))
	if named == "" {
		if len(c.Projects) == 0 {
			return c, &refusal{http.StatusForbidden, none}
		}
		named = string(c.Projects[0])
	}
	c.Project, err = project(named)
	return c, err
}
