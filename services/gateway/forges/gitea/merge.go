package gitea

import (
	"context"
	"fmt"
	"net/http"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

// methods are Gitea's names of the ways to merge.
var methods = map[forges.Method]string{
	forges.FastForward: "fast-forward-only", forges.MergeCommit: "merge", forges.Squash: "squash", forges.Rebase: "rebase",
}

// Merges reports whether Gitea has a method.
func (c *Client) Merges(_ context.Context, _ string, m forges.Method) error {
	if methods[m] == "" {
		return fmt.Errorf("%w %.50q: choose fast-forward, merge, squash or rebase", forges.ErrMethod, m)
	}
	return nil
}

// Merge merges a pull request whose head is that commit. It never forces what the protection of
// the base refuses.
func (c *Client) Merge(ctx context.Context, repository string, number int64, head git.OID, m forges.Method) error {
	path, err := rest.Path(repository, "pulls", number, "merge")
	if err != nil {
		return err
	}
	if err := c.Merges(ctx, repository, m); err != nil {
		return err
	}
	in, err := c.order(ctx, repository, number, head, methods[m])
	if err != nil {
		return err
	}
	return c.Call(ctx, http.MethodPost, path, in, nil)
}

// words is the part of a Client that is about the messages of commits. It is a
// type of its own, as queued is.
type words struct{ c *Client }

// order returns the body by which Gitea is asked to merge a head in one of its
// own ways. What it makes a commit for has the words of the head: of its own it
// writes none but a title, to those who ask by its API.
func (w words) order(ctx context.Context, repository string, number int64, head git.OID, style string) (map[string]any, error) {
	// Without a head Gitea would merge any.
	if _, err := git.ParseOID(string(head)); err != nil {
		return nil, fmt.Errorf("head: %w", err)
	}
	in := map[string]any{"do": style, "head_commit_id": string(head)}
	if style == methods[forges.FastForward] || style == methods[forges.Rebase] { // which keep the messages that there are
		return in, nil
	}
	message, err := w.Message(ctx, repository, head)
	if err != nil {
		return nil, err
	}
	in["merge_title_field"], in["merge_message_field"] = forges.MergeWords(message, fmt.Sprintf("#%d", number))
	return in, nil
}

// Message returns the message of a commit.
func (w words) Message(ctx context.Context, repository string, commit git.OID) (string, error) {
	if _, err := git.ParseOID(string(commit)); err != nil {
		return "", err
	}
	path, err := rest.Path(repository, "git", "commits", commit)
	if err != nil {
		return "", err
	}
	var got struct {
		Commit struct {
			Message string `json:"message"`
		} `json:"commit"`
	}
	err = w.c.Call(ctx, http.MethodGet, path+"?stat=false&verification=false&files=false", nil, &got)
	return got.Commit.Message, err
}
