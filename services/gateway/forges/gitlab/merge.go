package gitlab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

// merges returns nil if a project merges by a method, and else an ErrMethod that says by which ones
// it does. GitLab has one way for all of a project, and squashing besides.
func (j *projectJSON) merges(m forges.Method) error {
	var has []string
	if j.Squash != "always" {
		has = append(has, string(map[bool]forges.Method{true: forges.FastForward, false: forges.MergeCommit}[j.Method == "ff"]))
	}
	if j.Squash != "never" {
		has = append(has, string(forges.Squash))
	}
	if slices.Contains(has, string(m)) {
		return nil
	}
	return fmt.Errorf("%w %.50q in this project: choose %s, or change how it merges in its settings", forges.ErrMethod, m, strings.Join(has, " or "))
}

// Merges reports whether a project merges by a method. It asks each time: a person who changes the
// setting, because we said so, does not start the gateway anew.
func (c *Client) Merges(ctx context.Context, repository string, m forges.Method) error {
	p, err := c.project(ctx, repository)
	if err != nil {
		return err
	}
	return p.merges(m)
}

// Merge merges a merge request whose head is that commit. GitLab's rules hold for it as for
// everybody: it is neither set to be merged later, nor put into a merge train.
func (c *Client) Merge(ctx context.Context, repository string, number int64, head git.OID, m forges.Method) error {
	// Without a head GitLab would merge any.
	if _, err := git.ParseOID(string(head)); err != nil {
		return fmt.Errorf("head: %w", err)
	}
	path, err := c.path(ctx, repository, "merge_requests", number, "merge")
	if err != nil {
		return err
	}
	if err := c.Merges(ctx, repository, m); err != nil {
		return err
	}
	in, err := c.order(ctx, repository, number, head)
	if err != nil {
		return err
	}
	in["squash"] = m == forges.Squash
	err = c.Call(ctx, http.MethodPut, path, in, nil)
	if refused, ok := errors.AsType[*forges.RefusedError](err); ok && refused.Code != http.StatusConflict {
		return c.why(ctx, repository, number, refused)
	}
	return err
}

// words is the part of a Client that is about the messages of commits. It is a
// type of its own, as queued is.
type words struct{ c *Client }

// order returns the body by which GitLab is asked to merge a head. Which commits it
// makes for that depends on the project: each that it does has the words of the head.
func (w words) order(ctx context.Context, repository string, number int64, head git.OID) (map[string]any, error) {
	message, err := w.Message(ctx, repository, head)
	if err != nil {
		return nil, err
	}
	title, body := forges.MergeWords(message, fmt.Sprintf("!%d", number))
	text := strings.TrimSpace(title + "\n\n" + body)
	return map[string]any{
		"sha": string(head), "should_remove_source_branch": false, "merge_commit_message": text, "squash_commit_message": text,
	}, nil
}

// Message returns the message of a commit.
func (w words) Message(ctx context.Context, repository string, commit git.OID) (string, error) {
	if _, err := git.ParseOID(string(commit)); err != nil {
		return "", err
	}
	path, err := w.c.path(ctx, repository, "repository", "commits", commit)
	if err != nil {
		return "", err
	}
	var got struct {
		Message string `json:"message"`
	}
	err = w.c.Call(ctx, http.MethodGet, path, nil, &got)
	return got.Message, err
}

// why returns a refusal of a merge with its reason, which GitLab tells of the merge request alone:
// the answer has the number 405 or 422 and no more. By then the reason may be gone: what was not
// computed when it was asked for is at times computed when we look.
func (c *Client) why(ctx context.Context, repository string, number int64, refused *forges.RefusedError) error {
	j, err := c.raw(ctx, repository, number)
	if err != nil {
		return err
	}
	out := &forges.RefusedError{Code: refused.Code, Reason: refused.Reason}
	switch status := cmp.Or(j.Detailed, j.Status); {
	case j.State == "merged":
		out.Reason = "it is merged already"
	case j.State == "locked":
		out.Again, out.Reason = true, "it is being merged"
	case !j.open():
		out.Reason = "it is closed"
	case slices.Contains([]string{"unchecked", "checking", "preparing", "approvals_syncing", "cannot_be_merged_recheck"}, status):
		out.Again = true
	case status == "mergeable", status == "can_be_merged", status == "":
	default:
		out.Reason = rest.Reason("it cannot be merged: " + strings.ReplaceAll(status, "_", " "))
	}
	return out
}
