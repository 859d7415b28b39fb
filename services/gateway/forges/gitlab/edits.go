package gitlab

import (
	"context"
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// edited are the beginnings of the notes that GitLab itself writes in the name of who edited an
// issue: of its title, of its description, and of that where a task in it was ticked as well.
var edited = []string{"changed title from ", "changed the description", "marked the "}

// Edits returns the edits of an issue's title and description, as GitLab's own
// notes tell them. No account can write such a note itself.
func (i intakes) Edits(ctx context.Context, repository string, number int64) ([]intake.Edit, error) {
	c := i.of
	path, err := c.path(ctx, repository, "issues", number)
	if err != nil {
		return nil, err
	}
	var edits []intake.Edit
	err = rest.Shrink(page, func(size int) error {
		edits = nil
		query := fmt.Sprintf("%s/notes?order_by=created_at&sort=asc&per_page=%d", path, size)
		return rest.List(ctx, c.Client, query, size, func(list []noteJSON) (int, bool) {
			for n := range list {
				if j := &list[n]; j.System && isEdit(j.Body) {
					edits = append(edits, intake.Edit{By: c.account(j.Author), At: j.Created})
				}
			}
			return len(list), false
		})
	})
	return edits, err
}

// isEdit reports whether a note of GitLab is about an edit.
func isEdit(note string) bool {
	for _, begin := range edited {
		if strings.HasPrefix(note, begin) {
			return true
		}
	}
	return false
}
