package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// intakes has the questions that are asked for intake alone.
type intakes struct{ of *Client }

// InTeam reports whether an account is a member of a group with the right of a
// guest at least: by itself, through a group around it, or one that was invited.
// The group is named with all that is before it, and is in the one at the top of
// the project's name: the members of others are no concern of those who read here.
func (i intakes) InTeam(ctx context.Context, repository string, a intake.Account, team string) (bool, error) {
	c := i.of
	top, _, _ := strings.Cut(repository, "/")
	if group, _, _ := strings.Cut(team, "/"); !strings.EqualFold(group, top) {
		return false, fmt.Errorf("group %.100q is not in %s: %w", team, top, forges.ErrNotFound)
	}
	path := rest.Join("/groups", team)
	level, err := (members{c}).level(ctx, path, a.ID)
	if err != nil || level != 0 {
		return level >= guest, err
	}
	// It is the answer about a group as well that is not there, or that we may not see.
	return false, c.Call(ctx, http.MethodGet, path, nil, nil)
}
