package github

import (
	"context"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// texts has the question about the texts of issues, which is GraphQL's.
type texts struct{ c *Client }

type (
	// editsJSON is an issue with the edits of its body and of its title.
	editsJSON struct {
		Repository struct {
			// Issue is null for a pull request.
			Issue *struct {
				Created time.Time `json:"createdAt"` //nolint:tagliatelle // GraphQL's name
				// Last is null if the body was never edited.
				Last   *time.Time `json:"lastEditedAt"` //nolint:tagliatelle // GraphQL's name
				Bodies struct {
					Nodes []struct {
						At time.Time  `json:"editedAt"` //nolint:tagliatelle // GraphQL's name
						By *actorJSON `json:"editor"`
					} `json:"nodes"`
				} `json:"userContentEdits"` //nolint:tagliatelle // GraphQL's name
				Titles struct {
					Nodes []struct {
						At time.Time  `json:"createdAt"` //nolint:tagliatelle // GraphQL's name
						By *actorJSON `json:"actor"`
					} `json:"nodes"`
				} `json:"timelineItems"` //nolint:tagliatelle // GraphQL's name
			} `json:"issue"`
		} `json:"repository"`
	}
	// actorJSON is an account; null for one that is gone.
	actorJSON struct {
		Type  string `json:"__typename"` //nolint:tagliatelle // GraphQL's name
		Login string `json:"login"`
		ID    int64  `json:"databaseId"` //nolint:tagliatelle // GraphQL's name
	}
)

// editsQuery asks for the last edits. Of the body, the text that the issue was
// opened with is one of them, if there are others.
const editsQuery = `query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) {
  issue(number: $number) { createdAt lastEditedAt
    userContentEdits(first: 100) { nodes { editedAt editor { __typename login ... on User { databaseId } ... on Bot { databaseId } } } }
    timelineItems(last: 100, itemTypes: [RENAMED_TITLE_EVENT]) {
      nodes { ... on RenamedTitleEvent { createdAt actor { __typename login ... on User { databaseId } ... on Bot { databaseId } } } } } } } }`

// Edits returns the last hundred edits of an issue's body and of its title. The last one of the
// body is there in any case, by an account that is not known where the list does not have it.
func (l texts) Edits(ctx context.Context, repository string, number int64) ([]intake.Edit, error) {
	if _, err := rest.Path(repository, "issues", number); err != nil {
		return nil, err
	}
	if _, err := l.c.Repository(ctx, repository); err != nil { // GraphQL follows a name to wherever it leads
		return nil, err
	}
	owner, name, _ := strings.Cut(repository, "/")
	j, err := graphQL[editsJSON](ctx, l.c, editsQuery, map[string]any{"owner": owner, "name": name, "number": number})
	if err != nil {
		return nil, err
	}
	issue := j.Repository.Issue
	if issue == nil {
		return nil, forges.ErrNotFound
	}
	var edits []intake.Edit
	listed := issue.Last == nil
	for _, e := range issue.Bodies.Nodes {
		if e.At.After(issue.Created) {
			edits = append(edits, intake.Edit{By: l.actor(e.By), At: e.At})
			listed = listed || e.At.Equal(*issue.Last)
		}
	}
	if !listed {
		edits = append(edits, intake.Edit{At: *issue.Last})
	}
	for _, e := range issue.Titles.Nodes {
		edits = append(edits, intake.Edit{By: l.actor(e.By), At: e.At})
	}
	return edits, nil
}

// actor returns an account as GraphQL has it: that of a program is without [bot] there.
func (l texts) actor(j *actorJSON) intake.Account {
	if j == nil {
		return intake.Account{}
	}
	u := userJSON{ID: j.ID, Login: j.Login, Type: j.Type}
	if j.Type == "Bot" {
		u.Login += "[bot]"
	}
	return l.c.account(&u)
}
