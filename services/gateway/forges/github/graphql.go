package github

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

// graphJSON is an answer of GraphQL: errors come with the number 200.
type graphJSON[T any] struct {
	Data   T `json:"data"`
	Errors []struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"errors"`
}

// graphQL asks the other API.
func graphQL[T any](ctx context.Context, c *Client, query string, variables map[string]any) (out T, err error) {
	var got graphJSON[T]
	if err := c.graph.Call(ctx, http.MethodPost, "/graphql", map[string]any{"query": query, "variables": variables}, &got); err != nil {
		return out, err
	}
	for _, e := range got.Errors {
		switch cmp.Or(e.Type, "UNKNOWN") {
		case "RATE_LIMITED":
			return out, &forges.ParkedError{Until: c.cfg.Now().Add(time.Minute), Reason: "the limits of the forge are used up"}
		case "FORBIDDEN", "INSUFFICIENT_SCOPES":
			return out, forges.ErrDenied
		case "NOT_FOUND":
			return out, forges.ErrNotFound
		default:
			return out, &forges.RefusedError{Code: http.StatusUnprocessableEntity, Reason: rest.Reason(e.Message)}
		}
	}
	return got.Data, nil
}

// setDraft makes a draft of a pull request, or makes it ready.
func (c *Client) setDraft(ctx context.Context, node string, draft bool) error {
	mutation := "markPullRequestReadyForReview"
	if draft {
		mutation = "convertPullRequestToDraft"
	}
	_, err := graphQL[struct{}](ctx, c, `mutation($id: ID!) { `+mutation+`(input: {pullRequestId: $id}) { pullRequest { isDraft } } }`,
		map[string]any{"id": node})
	return err
}
