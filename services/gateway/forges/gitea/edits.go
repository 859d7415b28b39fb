package gitea

import (
	"context"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// texts is the part of a Client that asks about the texts of issues.
type texts struct{ c *Client }

// Edits returns the edits of an issue's title. Of those of its body, the API of Gitea and Forgejo
// tells neither when they were made nor by whom: of these, deliveries alone say something.
func (l texts) Edits(ctx context.Context, repository string, number int64) (edits []intake.Edit, err error) {
	path, err := rest.Path(repository, "issues", number)
	if err != nil {
		return nil, err
	}
	err = l.c.timeline(ctx, path, func(e *commentJSON) {
		if e.Type == "change_title" {
			edits = append(edits, intake.Edit{By: l.c.account(e.User), At: e.Created})
		}
	})
	return edits, err
}
