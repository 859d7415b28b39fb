package gitlab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
)

// scopeAPI is the scope that a token needs.
const scopeAPI = "api"

// Lacks returns the rights that our account and its token lack in a project to watch issues
// and to keep merge requests, a line for each, in words of the pages on which people give
// them; none if nothing is missing. The error says that it could not be found out.
func Lacks(ctx context.Context, c *Client, project string) (lacks []string, err error) {
	self, err := c.Self(ctx)
	switch {
	case errors.Is(err, forges.ErrDenied) && strings.Contains(err.Error(), fmt.Sprintf("(%d)", http.StatusUnauthorized)):
		return []string{"a token that GitLab knows"}, nil
	case errors.Is(err, forges.ErrDenied):
		return []string{"the scope " + scopeAPI + " of the token"}, nil
	case err != nil:
		return nil, err
	}
	var token struct {
		Scopes []string `json:"scopes"`
	}
	switch err := c.Call(ctx, http.MethodGet, "/personal_access_tokens/self", nil, &token); {
	case errors.Is(err, forges.ErrNotFound): // a version that does not tell
	case err != nil && !errors.Is(err, forges.ErrDenied):
		return nil, err
	case !slices.Contains(token.Scopes, scopeAPI):
		lacks = append(lacks, "the scope "+scopeAPI+" of the token")
	}
	role, err := (members{c}).lacks(ctx, project, self.ID, self.Login)
	return append(lacks, role...), err
}

// lacks returns the role that our account lacks in a project.
func (c members) lacks(ctx context.Context, project string, id int64, login string) ([]string, error) {
	p, err := c.project(ctx, project)
	if errors.Is(err, forges.ErrNotFound) {
		return []string{"a project " + project + " that the account may see"}, nil
	}
	if err != nil {
		return nil, err
	}
	path, err := c.path(ctx, project)
	if err != nil {
		return nil, err
	}
	level, err := c.level(ctx, path, id)
	switch {
	case err != nil:
		return nil, err
	case level < developer:
		return []string{fmt.Sprintf("the role Developer in %s for the account %s", project, login)}, nil
	case level >= maintainer || p.Branch == "":
		return nil, nil
	}
	b, err := c.branch(ctx, project, git.Branch(p.Branch))
	if err != nil || !b.Protected || b.Developers {
		return nil, err
	}
	return []string{fmt.Sprintf("the role Maintainer in %s for the account %s, or that Developers are allowed to merge into %s", project, login, p.Branch)}, nil
}

// MakeLabel makes a label of a project, and reports whether it did: one of that
// name that is there, or in a group around it, stays as it is.
func MakeLabel(ctx context.Context, c *Client, project, name string) (made bool, err error) {
	has, err := c.path(ctx, project, "labels", name)
	if err != nil {
		return false, err
	}
	if err := c.Call(ctx, http.MethodGet, has, nil, nil); !errors.Is(err, forges.ErrNotFound) {
		return false, err
	}
	path, err := c.path(ctx, project, "labels")
	if err != nil {
		return false, err
	}
	return true, c.Call(ctx, http.MethodPost, path, map[string]string{"name": name, "color": "#00aabb"}, nil)
}
