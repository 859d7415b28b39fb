package github

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// intakes has the questions that are asked for intake alone.
type intakes struct{ of *Client }

// InTeam reports whether an account belongs to a team of the organisation that
// owns a repository, or to one in that team. The team is named as its address
// does. GitHub asks for the right to read members of the organisation.
func (i intakes) InTeam(ctx context.Context, repository string, a intake.Account, team string) (bool, error) {
	c := i.of
	org, _, _ := strings.Cut(repository, "/")
	path := "/orgs/" + url.PathEscape(org) + "/teams/" + url.PathEscape(team)
	var m struct {
		// State is pending for one who was invited and has not accepted.
		State string `json:"state"`
	}
	err := c.Call(ctx, http.MethodGet, path+"/memberships/"+url.PathEscape(a.Login), nil, &m)
	if errors.Is(err, forges.ErrNotFound) {
		// It is the answer about a team as well that is not there, or that we may not see.
		return false, c.Call(ctx, http.MethodGet, path, nil, nil)
	}
	return m.State == "active", err
}
