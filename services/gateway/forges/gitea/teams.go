package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// InTeam reports whether an account belongs to a team of the organisation that
// owns a repository. Gitea tells that to those who are in the team, and to
// owners of the organisation; others are refused.
func (c *Client) InTeam(ctx context.Context, repository string, a intake.Account, team string) (bool, error) {
	org, _, _ := strings.Cut(repository, "/")
	type teamJSON struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	}
	var found struct {
		Data []teamJSON `json:"data"`
	}
	query := url.Values{"q": {team}, "limit": {fmt.Sprint(page)}} // all that have it in their names
	if err := c.Call(ctx, http.MethodGet, "/orgs/"+url.PathEscape(org)+"/teams/search?"+query.Encode(), nil, &found); err != nil {
		return false, err
	}
	i := slices.IndexFunc(found.Data, func(t teamJSON) bool { return strings.EqualFold(t.Name, team) && t.ID > 0 })
	if i < 0 {
		return false, fmt.Errorf("team %.100q: %w", team, forges.ErrNotFound)
	}
	var u userJSON
	err := c.Call(ctx, http.MethodGet, fmt.Sprintf("/teams/%d/members/%s", found.Data[i].ID, url.PathEscape(a.Login)), nil, &u)
	if errors.Is(err, forges.ErrNotFound) {
		return false, nil
	}
	return u.ID == a.ID, err
}
