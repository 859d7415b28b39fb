package git

import (
	"context"
	"fmt"
)

// Create makes a repository in a directory that exists, on branch b, with one
// commit of everything that is there and not ignored.
func Create(ctx context.Context, dir string, b Branch, message string, by Identity) (OID, error) {
	by = by.OrDefault()
	c := Command{Dir: dir, Config: []string{"user.name=" + by.Name, "user.email=" + by.Email}}
	if _, err := Run(ctx, c, "init", "--quiet", "--template=", "--initial-branch="+string(b)); err != nil {
		return "", fmt.Errorf("make a repository in %s: %w", dir, err)
	}
	c.GitDir, c.Env = ".git", []string{"GIT_WORK_TREE=."}
	if _, err := Run(ctx, c, "add", "--all"); err != nil {
		return "", err
	}
	if _, err := Run(ctx, c, "commit", "--quiet", "--message="+message); err != nil {
		return "", err
	}
	out, err := Run(ctx, c, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return "", err
	}
	return ParseOID(string(out[:max(0, len(out)-1)]))
}
