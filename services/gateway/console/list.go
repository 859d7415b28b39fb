package console

import (
	"context"
	"maps"
	"net/url"
	"strconv"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
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
}

// collect reads the intents of some projects that a query selects, as the API has its
// parameters.
func (v *visit) collect(ctx context.Context, projects []forge.ProjectID, query url.Values) (l listed, err error) {
	l.More = len(projects) > mostProjects
	v.live = projects[:min(len(projects), mostLive)]
	for _, p := range projects[:min(len(projects), mostProjects)] {
		after := ""
		for {
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
			if after = string(page.Next); after == "" {
				break
			}
			if len(l.Intents) >= mostListed {
				l.More = true
				return l, nil
			}
		}
	}
	return l, nil
}

// holds reports whether a text has some words, whatever their case.
func holds(text, words string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(words))
}
