package git

import (
	"context"
	"os"
	"strings"
)

// Version returns the version of the git program, such as "2.39.5".
func Version(ctx context.Context) (string, error) {
	out, err := Run(ctx, Command{Dir: os.TempDir()}, "version")
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "git version "), nil
}
