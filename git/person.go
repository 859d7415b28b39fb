package git

import (
	"context"
	"os"
	"strings"
)

// Version is what git says of itself, such as "2.39.5".
func Version(ctx context.Context) (string, error) {
	out, err := run(ctx, command{dir: os.TempDir()}, "version")
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "git version "), nil
}

// UserName is the name under which the person commits here, empty when they have
// set none.
func (s *Store) UserName(ctx context.Context) string {
	out, err := run(ctx, command{dir: s.common, gitDir: s.common, personal: true}, "config", "--get", "user.name")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
