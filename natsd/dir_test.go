package natsd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDirectoryIsChecked(t *testing.T) {
	tests := map[string]struct {
		dir  string
		make func(t *testing.T, root, outside string) error
		want string
	}{
		"parent leads out": {".forge/nats", func(_ *testing.T, root, outside string) error {
			return os.Symlink(outside, filepath.Join(root, ".forge"))
		}, "symlink leads out"},
		"itself leads out": {".forge/nats", func(_ *testing.T, root, outside string) error {
			return errors.Join(os.Mkdir(filepath.Join(root, ".forge"), 0o755), os.Symlink(outside, filepath.Join(root, ".forge/nats")))
		}, "symlink leads out"},
		"relative link leads out": {".forge/nats", func(_ *testing.T, root, outside string) error {
			return os.Symlink("../"+filepath.Base(outside), filepath.Join(root, ".forge"))
		}, "symlink leads out"},
		"dangling link": {".forge/nats", func(_ *testing.T, root, _ string) error {
			return os.Symlink("/nowhere/at/all", filepath.Join(root, ".forge"))
		}, "symlink leads out"},
		"streams lead out": {"nats", func(_ *testing.T, root, outside string) error {
			return errors.Join(os.Mkdir(filepath.Join(root, "nats"), 0o700), os.Symlink(outside, filepath.Join(root, "nats/jetstream")))
		}, "symlink leads out"},
		"a block leads out": {"nats", func(_ *testing.T, root, outside string) error {
			deep := filepath.Join(root, "nats/jetstream/$G/streams")
			return errors.Join(os.MkdirAll(deep, 0o700), os.Symlink(outside, filepath.Join(deep, "S")))
		}, "neither a directory nor a regular file"},
		"lock is a link": {"nats", func(_ *testing.T, root, _ string) error {
			return errors.Join(os.Mkdir(filepath.Join(root, "nats"), 0o700), os.Symlink("victim", filepath.Join(root, "nats/lock")))
		}, "not a regular file"},
		"client.json is a directory": {"nats", func(_ *testing.T, root, _ string) error {
			return os.MkdirAll(filepath.Join(root, "nats/client.json"), 0o700)
		}, "not a regular file"},
		"file in the way": {".forge/nats", func(_ *testing.T, root, _ string) error {
			return os.WriteFile(filepath.Join(root, ".forge"), nil, 0o644)
		}, "a file is in the way"},
		"dots":       {"../nats", nil, "not inside"},
		"root":       {".", nil, "not inside"},
		"other root": {os.TempDir(), nil, "not inside"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			root, outside := t.TempDir(), t.TempDir()
			if tt.make != nil {
				if err := tt.make(t, root, outside); err != nil {
					t.Fatal(err)
				}
			}
			cfg := config(tt.dir)
			cfg.Root = root
			if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
				t.Errorf("written outside: %v, %v", left, err)
			}
		})
	}
}

func TestLinkInsideTheRepositoryServes(t *testing.T) {
	root := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(root, "elsewhere"), 0o755), os.Symlink("elsewhere", filepath.Join(root, ".forge"))); err != nil {
		t.Fatal(err)
	}
	cfg := config(filepath.Join(root, ".forge", "nats"))
	cfg.Root = root
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	if _, err := Find(t.Context(), root, ".forge/nats"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(root, "elsewhere", "nats", jetstreamDir)); err != nil {
		t.Error(err)
	}
}

func TestLooseModeIsTightened(t *testing.T) {
	dir := storeIn(t)
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(t.Context(), "", dir); err == nil || !strings.Contains(err.Error(), "0700") {
		t.Errorf("found in a directory open to all: %v", err)
	}
	start(t, dir)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestUnwritableParentIsExplained(t *testing.T) {
	parent := t.TempDir()
	if err := os.Chmod(parent, 0o555); err != nil {
		t.Fatal(err)
	}
	cmd, out := child(t, "readonly", filepath.Join(parent, "nats"))
	out.Scan()
	got := out.Text()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got, "permission denied: make it writable") {
		t.Errorf("got %q", got)
	}
}
