package credentials_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/internal/credentials"
	"github.com/pfl-forge/pfl-forge/internal/testdir"
)

// write puts a file into a directory.
func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFilesTakeThePlaceOfVariables checks where values come from, and that they are those of now.
func TestFilesTakeThePlaceOfVariables(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("A_KEY", "environment")
	t.Setenv("AN_ADDRESS", "https://example.com")
	t.Setenv("FORGE_AGENT_OURS_X", "1")
	d := credentials.Dir{Path: dir, Setting: "--it"}
	get := func(v credentials.Variables, name, want string) {
		t.Helper()
		if got, err := v.Lookup(name); got != want || err != nil {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
	get(credentials.Variables{}, "A_KEY", "environment")
	get(d.Read(), "A_KEY", "environment")
	testdir.Secret(t, dir, map[string]string{"A_KEY": "first\n", "FORGE_AGENT_OURS_Y": "2", "notes.txt": "\n\n"})
	v := d.Read()
	get(v, "A_KEY", "first")
	get(v, "AN_ADDRESS", "https://example.com")
	get(v, "NONE", "")
	testdir.Secret(t, dir, map[string]string{"A_KEY": "second"})
	get(d.Read(), "A_KEY", "second")
	get(v, "A_KEY", "first")
	list, err := v.Prefixed("FORGE_AGENT_OURS_")
	if diff := cmp.Diff([]string{"X=1", "Y=2"}, list); diff != "" || err != nil || v.Err() != nil {
		t.Error(diff, err, v.Err())
	}
	if diff := cmp.Diff([]string{"A_KEY", "FORGE_AGENT_OURS_Y"}, v.Files()); diff != "" {
		t.Error(diff)
	}
}

// TestBadFiles checks that what cannot be a credential is an error with the setting and the
// file, without its content, and that it is nobody else's.
func TestBadFiles(t *testing.T) {
	for name, bad := range map[string]func(path string) error{
		"is empty":                    func(path string) error { return os.WriteFile(path, []byte(" \n"), 0o600) },
		"does not hold one line":      func(path string) error { return os.WriteFile(path, []byte("s3cret\ns3cret\n"), 0o600) },
		"one line of text":            func(path string) error { return os.WriteFile(path, []byte("s3cret\x00"), 0o600) },
		"at most 65536 bytes":         func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("s3cret", 20000)), 0o600) },
		"not a regular file":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"regular file of at most":     func(path string) error { return os.Mkdir(path, 0o700) },
		"too many levels of symbolic": func(path string) error { return os.Symlink(path, path) },
		"no such file or directory":   func(path string) error { return os.Symlink(path+".gone", path) },
		"/B_KEY: no such file":        func(path string) error { return os.Symlink("..data/B_KEY", path) },
		"not a directory":             nil, // what is to be the directory
	} {
		dir := t.TempDir()
		d := credentials.Dir{Path: dir, Setting: "--it (IT)"}
		if bad == nil {
			d.Path = "/dev/null/x"
		} else if err := bad(filepath.Join(dir, "B_KEY")); err != nil {
			t.Fatal(err)
		}
		v := d.Read()
		_, one := v.Lookup("B_KEY")
		_, list := v.Prefixed("B_")
		for _, err := range []error{one, list, v.Err()} {
			if !errors.Is(err, credentials.ErrUnreadable) || !strings.HasPrefix(err.Error(), "--it (IT): ") || !strings.Contains(err.Error(), name) ||
				strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), d.Path) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if bad == nil {
			continue
		}
		write(t, dir, "A_KEY", "good")
		v = d.Read()
		if got, err := v.Lookup("A_KEY"); got != "good" || err != nil {
			t.Errorf("%s: the other file is %q, %v", name, got, err)
		}
		if _, err := v.Prefixed("A_"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCheck refuses what is no directory.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "file", "x")
	for _, path := range []string{filepath.Join(dir, "none"), filepath.Join(dir, "file"), ""} {
		if err := (credentials.Dir{Path: path}).Check(); err == nil {
			t.Errorf("%q is accepted", path)
		}
	}
	if err := (credentials.Dir{Path: dir}).Check(); err != nil {
		t.Error(err)
	}
}

// TestOneVersion replaces two files that belong together while they are read: they are never
// of two versions, and never missing.
func TestOneVersion(t *testing.T) {
	dir := t.TempDir()
	files := func(i int) map[string]string {
		return map[string]string{"A_KEY": "v" + strconv.Itoa(i), "Z_ADDRESS": "v" + strconv.Itoa(i)}
	}
	testdir.Secret(t, dir, files(0))
	var done sync.WaitGroup
	stop := make(chan struct{})
	done.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-stop:
				return
			default:
				testdir.Secret(t, dir, files(i))
			}
		}
	})
	// Kubelet writes one version a minute, this as fast as it can: then an error says so.
	for range 300 {
		v := credentials.Dir{Path: dir}.Read()
		key, err := v.Lookup("A_KEY")
		address, err2 := v.Lookup("Z_ADDRESS")
		if err == nil && err2 == nil && key != address {
			t.Errorf("a key %s with the address %s", key, address)
		}
	}
	close(stop)
	done.Wait()
}
