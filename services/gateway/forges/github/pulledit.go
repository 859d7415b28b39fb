package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

// OpenPull opens a pull request. GitHub refuses a second one of the same branches while one
// is open.
func (c *Client) OpenPull(ctx context.Context, repository string, head, base git.Branch, t forges.PullText) (forges.Pull, error) {
	if err := rest.Branches(head, base); err != nil {
		return forges.Pull{}, err
	}
	path, err := rest.Path(repository, "pulls")
	if err != nil {
		return forges.Pull{}, err
	}
	var j pullJSON
	err = c.Call(ctx, http.MethodPost, path, map[string]any{
		"head": string(head), "base": string(base), "title": title(&t), "body": t.Body, "draft": t.Draft,
		"maintainer_can_modify": false,
	}, &j)
	// 422 is for everything that is wrong with it. Whether it is that there is one, the list
	// says.
	if refused, ok := errors.AsType[*forges.RefusedError](err); ok && refused.Code == http.StatusUnprocessableEntity {
		found, findErr := c.FindPull(ctx, repository, head, base)
		if findErr == nil && found.State == forges.Open {
			return found, nil
		}
		if errors.Is(findErr, forges.ErrNotFound) {
			findErr = nil
		}
		return forges.Pull{}, errors.Join(err, findErr)
	}
	if err != nil {
		return forges.Pull{}, err
	}
	if err := c.addLabels(ctx, repository, j.Number, t.Labels); err != nil {
		return forges.Pull{}, err
	}
	return c.Pull(ctx, repository, j.Number)
}

// EditPull adds labels, and replaces the title and the text, and whether it is a draft. The
// last one who writes wins, as on the page.
func (c *Client) EditPull(ctx context.Context, repository string, number int64, t forges.PullText) error {
	path, err := rest.Path(repository, "pulls", number)
	if err != nil {
		return err
	}
	missing := c.addLabels(ctx, repository, number, t.Labels)
	if missing != nil && !errors.Is(missing, forges.ErrLabel) {
		return missing
	}
	var j pullJSON
	if err := c.Call(ctx, http.MethodPatch, path, map[string]string{"title": title(&t), "body": t.Body}, &j); err != nil {
		return err
	}
	if j.Draft != t.Draft {
		if err := c.setDraft(ctx, j.Node, t.Draft); err != nil {
			return err
		}
	}
	return missing
}

// ReopenPull opens a pull request again. The same state again changes nothing.
func (c *Client) ReopenPull(ctx context.Context, repository string, number int64) error {
	path, err := rest.Path(repository, "pulls", number)
	if err != nil {
		return err
	}
	return c.Call(ctx, http.MethodPatch, path, map[string]string{"state": "open"}, nil)
}

// ClosePull closes a pull request, which is an issue to GitHub.
func (c *Client) ClosePull(ctx context.Context, repository string, number int64) error {
	return c.CloseIssue(ctx, repository, number)
}

// addLabels puts labels on. GitHub would make those that are not there, and so they are
// asked for first: those are left out, and the error names one.
func (c *Client) addLabels(ctx context.Context, repository string, number int64, labels []string) error {
	if len(labels) == 0 {
		return nil
	}
	path, err := rest.Path(repository, "issues", number, "labels")
	if err != nil {
		return err
	}
	var there []string
	var missing error
	for _, name := range labels {
		label, err := rest.Path(repository, "labels", name)
		if err == nil {
			err = c.Call(ctx, http.MethodGet, label, nil, nil)
		}
		if errors.Is(err, forges.ErrNotFound) {
			missing = fmt.Errorf("%w %.100q", forges.ErrLabel, name)
			continue
		}
		if err != nil {
			return err
		}
		there = append(there, name)
	}
	if len(there) > 0 {
		if err := c.Call(ctx, http.MethodPost, path, map[string][]string{"labels": there}, nil); err != nil {
			return err
		}
	}
	return missing
}

// methods are GitHub's names of the ways to merge. None of them brings the very commit to
// the base: "rebase" makes it anew although nothing moved.
var methods = map[forges.Method]string{forges.MergeCommit: "merge", forges.Squash: "squash", forges.Rebase: "rebase"}

// Merges reports whether GitHub has a method.
func (c *Client) Merges(_ context.Context, _ string, m forges.Method) error {
	switch {
	case m == forges.FastForward:
		return fmt.Errorf("%w %s: GitHub always makes new commits; choose merge, squash or rebase", forges.ErrMethod, m)
	case methods[m] == "":
		return fmt.Errorf("%w %.50q: choose merge, squash or rebase", forges.ErrMethod, m)
	}
	return nil
}

// Merge merges a pull request whose head is that commit. GitHub's rules for the base hold
// for it as for everybody.
func (c *Client) Merge(ctx context.Context, repository string, number int64, head git.OID, m forges.Method) error {
	path, err := rest.Path(repository, "pulls", number, "merge")
	if err != nil {
		return err
	}
	if err := c.Merges(ctx, repository, m); err != nil {
		return err
	}
	// Without a head GitHub would merge any.
	if _, err := git.ParseOID(string(head)); err != nil {
		return fmt.Errorf("head: %w", err)
	}
	if _, err := c.Repository(ctx, repository); err != nil {
		return err
	}
	in := map[string]string{"merge_method": methods[m], "sha": string(head)}
	if m != forges.Rebase { // which keeps the messages that there are
		message, err := c.Message(ctx, repository, head)
		if err != nil {
			return err
		}
		in["commit_title"], in["commit_message"] = forges.MergeWords(message, fmt.Sprintf("#%d", number))
	}
	return c.Call(ctx, http.MethodPut, path, in, nil)
}

// words is the part of a Client that is about the messages of commits. It is a
// type of its own, as queued is.
type words struct{ c *Client }

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
		Message string `json:"message"`
	}
	err = w.c.Call(ctx, http.MethodGet, path, nil, &got)
	return got.Message, err
}
