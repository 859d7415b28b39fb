package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

// need is a permission that a gateway needs to watch issues and to keep pull requests.
type need struct {
	// key is its name in the API, and page that on the pages on which people give it.
	key, page string
	// writes says that reading is not enough, and organisation that only one has it.
	writes, organisation bool
}

// needs are all that an installation has to have. To read the administration of
// a repository is of use, and not needed.
var needs = []need{
	{"metadata", "Metadata", false, false},
	{"contents", "Contents", true, false},
	{"issues", "Issues", true, false},
	{"pull_requests", "Pull requests", true, false},
	{"statuses", "Commit statuses", true, false},
	{"checks", "Checks", false, false},
	{"members", "Members (of the organisation)", false, true},
}

// words names a need as those pages do.
func (n *need) words() string {
	return n.page + ": " + map[bool]string{true: "Read and write", false: "Read-only"}[n.writes]
}

// isMet reports whether an access, as the API names it, is enough.
func (n *need) isMet(access string) bool {
	return access == "write" || access == "admin" || access == "read" && !n.writes
}

// InstallationIn returns the number of an App's installation in a repository, and what it lacks
// there, a line for each; none if nothing is missing. cfg need not name the installation. The
// error says that it could not be found out, or that GitHub does not know the App.
func InstallationIn(ctx context.Context, cfg Config, repository string) (id int64, lacks []string, err error) {
	on, err := cfg.rest()
	if err != nil {
		return 0, nil, err
	}
	path, err := rest.Path(repository, "installation")
	if err != nil {
		return 0, nil, err
	}
	a, err := newApp(cfg.App, on)
	if err != nil {
		return 0, nil, err
	}
	defer a.rest.Close()
	var got struct {
		ID      int64 `json:"id"`
		Account struct {
			Type string `json:"type"`
		} `json:"account"`
		Suspended   *string           `json:"suspended_at"`
		Permissions map[string]string `json:"permissions"`
	}
	switch err := a.rest.Call(ctx, http.MethodGet, path, nil, &got); {
	case errors.Is(err, forges.ErrNotFound):
		return 0, []string{"an installation of the App in " + repository}, nil
	case err != nil:
		return 0, nil, err
	}
	if got.Suspended != nil {
		lacks = append(lacks, "an installation of the App that is not suspended")
	}
	for _, n := range needs {
		if !n.isMet(got.Permissions[n.key]) && (!n.organisation || got.Account.Type == "Organization") {
			lacks = append(lacks, "the permission "+n.words()+", of the App and accepted for its installation")
		}
	}
	return got.ID, lacks, nil
}

// Lacks returns the rights that our account and its token lack in a repository,
// as InstallationIn does for an App.
//
// GitHub does not tell the permissions of a token to its holder. So each is tried by a
// request that is refused as incomplete, so that nothing is changed. Whether it may merge,
// which is writing contents, is not tried: the account has to have the right to write.
func Lacks(ctx context.Context, c *Client, repository string) (lacks []string, err error) {
	path, err := rest.Path(repository)
	if err != nil {
		return nil, err
	}
	self, err := c.Self(ctx)
	switch {
	case errors.Is(err, forges.ErrDenied) && strings.Contains(err.Error(), fmt.Sprintf("(%d)", http.StatusUnauthorized)):
		return []string{"a token that GitHub knows"}, nil
	case err != nil:
		return nil, err
	}
	var r struct {
		Permissions struct {
			Push bool `json:"push"`
		} `json:"permissions"`
	}
	switch err := c.Call(ctx, http.MethodGet, path, nil, &r); {
	case errors.Is(err, forges.ErrNotFound):
		return []string{"a repository " + repository + " that the account may see"}, nil
	case err != nil:
		return nil, err
	case !r.Permissions.Push: // then requests that write are denied, whatever the token may
		return []string{fmt.Sprintf("the right to write in %s for the account %s", repository, self.Login)}, nil
	}
	for _, try := range []struct {
		need         need
		method, path string
	}{
		{needs[2], http.MethodPost, path + "/labels"},
		{needs[3], http.MethodPost, path + "/pulls"},
		{needs[4], http.MethodPost, path + "/statuses/" + strings.Repeat("0", 40)},
		{needs[5], http.MethodGet, path + "/commits/HEAD/check-runs?per_page=1"},
	} {
		var in any
		if try.need.writes {
			in = struct{}{}
		}
		err := c.Call(ctx, try.method, try.path, in, nil)
		_, incomplete := errors.AsType[*forges.RefusedError](err)
		switch {
		case errors.Is(err, forges.ErrDenied), errors.Is(err, forges.ErrNotFound) && try.need.writes: // a token without the scope is told so
			lacks = append(lacks, "the permission "+try.need.words()+", of the token")
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
	if err := c.Call(ctx, http.MethodGet, rest.Join(path, name), nil, nil); !errors.Is(err, forges.ErrNotFound) {
		return false, err
	}
	return true, c.Call(ctx, http.MethodPost, path, map[string]string{"name": name, "color": "00aabb"}, nil)
}
