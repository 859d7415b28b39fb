package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

// BranchHead returns the commit of a branch.
func (c *Client) BranchHead(ctx context.Context, repository string, branch git.Branch) (git.OID, error) {
	b, err := c.branch(ctx, repository, branch)
	if err != nil {
		return "", err
	}
	return git.ParseOID(b.Commit.ID)
}

// branchJSON is a branch with its commit.
type branchJSON struct {
	// Name is compared with the one that was asked for: some servers answer with another one's.
	Name string `json:"name"`
	// Protected says that a rule of the project is about it; the rule itself is not asked for.
	Protected bool `json:"protected"`
	// Developers says that they may merge into it, if it is protected.
	Developers bool `json:"developers_can_merge"`
	Commit     struct {
		ID string `json:"id"`
	} `json:"commit"`
}

// branch reads a branch. Its name is one part of the path.
func (c *Client) branch(ctx context.Context, repository string, branch git.Branch) (*branchJSON, error) {
	if err := rest.Branches(branch); err != nil {
		return nil, err
	}
	path, err := c.path(ctx, repository, "repository", "branches", branch)
	if err != nil {
		return nil, err
	}
	var b branchJSON
	if err := c.Call(ctx, http.MethodGet, path, nil, &b); err != nil {
		return nil, err
	}
	if b.Name != string(branch) {
		return nil, fmt.Errorf("%s: %w", path, forges.ErrNotFound)
	}
	return &b, nil
}

// Behind reports whether a base has commits that a head has not: then the last commit that both
// have is not the base's. A comparison would have all changes with it.
func (c *Client) Behind(ctx context.Context, repository string, head, base git.OID) (bool, error) {
	for _, commit := range []git.OID{head, base} {
		if _, err := git.ParseOID(string(commit)); err != nil {
			return false, err
		}
	}
	path, err := c.path(ctx, repository, "repository", "merge_base")
	if err != nil {
		return false, err
	}
	var got struct {
		ID string `json:"id"`
	}
	query := url.Values{"refs[]": {string(head), string(base)}}
	err = c.Call(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &got)
	return got.ID != string(base), err
}
