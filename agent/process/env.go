package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/environ"
)

// Environment returns a complete environment: the service's PATH, home as HOME, neutral
// settings for locale, terminal and git, and the entries of set, which override these.
// Nothing else of the service's own environment is in it.
func Environment(home string, set ...string) []string {
	base := []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + home,
		"LANG=C.UTF-8",
		"TERM=dumb",
		"NO_COLOR=1",
		"TMPDIR=" + filepath.Join(home, "tmp"),
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
	}
	return Merge(base, set)
}

// Merge returns the entries of base and set; those of set override. Entries that are
// not KEY=VALUE, or contain a NUL, are left out.
func Merge(base, set []string) []string {
	var out []string
	at := map[string]int{}
	for _, list := range [][]string{base, set} {
		for _, kv := range list {
			key, _, ok := strings.Cut(kv, "=")
			if !ok || key == "" || strings.ContainsRune(kv, 0) {
				continue
			}
			if i, seen := at[key]; seen {
				out[i] = kv
				continue
			}
			at[key] = len(out)
			out = append(out, kv)
		}
	}
	return out
}

// Inherit returns those entries of the service's own environment that have these names.
// An operator allows commands to see them, such as GOCACHE.
func Inherit(names ...string) []string {
	var out []string
	for _, name := range names {
		if v, ok := environ.Lookup(name); ok {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// PrivateHome makes the HOME of a command, with a tmp directory in it, below a scratch
// directory that is absolute, and returns its path. A link that an earlier command of
// the same call left in its place is removed: it would lead out of the sandbox.
func PrivateHome(scratch string) (string, error) {
	if !filepath.IsAbs(scratch) {
		return "", fmt.Errorf("scratch directory %q is not absolute", scratch)
	}
	home := filepath.Join(scratch, "home")
	for _, dir := range []string{home, filepath.Join(home, "tmp")} {
		if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
			if err := os.Remove(dir); err != nil {
				return "", fmt.Errorf("cannot make a home directory: %w", err)
			}
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("cannot make a home directory: %w", err)
		}
	}
	return home, nil
}

// Fill writes files below a directory that commands can write to as well, and makes
// their directories. files has contents by relative path. A link that leads out of the
// directory is an error.
func Fill(dir string, files map[string]string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for name, text := range files {
		if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := root.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
