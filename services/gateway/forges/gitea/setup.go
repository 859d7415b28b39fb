package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// Lacks returns the rights that our account and its token lack in a repository to watch
// issues and to keep pull requests, a line for each, in words of the pages on which people
// give them; none if nothing is missing. The error says that it could not be found out.
//
// Gitea does not tell the scopes of a token to its holder. So each is tried:
// one that reads by a request, and one that writes by a request that is refused
// as incomplete, so that nothing is changed.
func Lacks(ctx context.Context, c *Client, repository string) (lacks []string, err error) {
	self, err := c.Self(ctx)
	switch {
	case errors.Is(err, forges.ErrDenied) && strings.Contains(err.Error(), fmt.Sprintf("(%d)", http.StatusUnauthorized)):
		return []string{"a token that the forge knows"}, nil
	case errors.Is(err, forges.ErrDenied): // and whose token it is stays unknown
		lacks, err = scopes(ctx, c, repository)
		return append([]string{scope("read:user")}, lacks...), err
	case err != nil:
		return nil, err
	}
	a, err := c.Account(ctx, repository, self.Login)
	switch {
	case errors.Is(err, forges.ErrNotFound):
		return []string{"a repository " + repository + " that the account may see"}, nil
	case err != nil && !errors.Is(err, forges.ErrDenied):
		return nil, err
	case err == nil && !a.Permission.Includes(intake.Admin): // then requests that write are denied, whatever the token may
		return []string{fmt.Sprintf("admin on %s for the account %s, whose right is %s", repository, self.Login, a.Permission)}, nil
	}
	return scopes(ctx, c, repository)
}

// scope says that a token lacks one.
func scope(name string) string { return "the scope " + name + " of the token" }

// scopes returns which scopes the token lacks, beside read:user.
func scopes(ctx context.Context, c *Client, repository string) (lacks []string, err error) {
	path, err := rest.Path(repository)
	if err != nil {
		return nil, err
	}
	for _, try := range []struct {
		scope, method, path string
		in                  any
	}{
		{"read:organization", http.MethodGet, "/user/orgs?limit=1", nil},
		{"write:issue", http.MethodPost, path + "/labels", struct{}{}},
		{"write:repository", http.MethodPost, path + "/pulls", struct{}{}},
	} {
		err := c.Call(ctx, try.method, try.path, try.in, nil)
		_, incomplete := errors.AsType[*forges.RefusedError](err)
		switch {
		case errors.Is(err, forges.ErrDenied):
			lacks = append(lacks, scope(try.scope))
		case err != nil && !incomplete && !errors.Is(err, forges.ErrNotFound):
			return nil, err
		}
	}
	return lacks, nil
}

// MakeLabel makes a label of a repository, and reports whether it did: one of
// that name that is there stays as it is.
func MakeLabel(ctx context.Context, c *Client, repository, name string) (made bool, err error) {
	path, err := rest.Path(repository, "labels")
	if err != nil {
		return false, err
	}
	has := false
	err = rest.List(ctx, c.Client, fmt.Sprintf("%s?limit=%d", path, page), page, func(list []labelJSON) (int, bool) {
		has = has || slices.ContainsFunc(list, func(l labelJSON) bool { return strings.EqualFold(l.Name, name) })
		return len(list), has
	})
	if err != nil || has {
		return false, err
	}
	return true, c.Call(ctx, http.MethodPost, path, map[string]string{"name": name, "color": "#00aabb"}, nil)
}
