package process

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLinksLeadNowhere has what a command of a call could leave for the next one of
// the same call: files of a person in the place of its own.
func TestLinksLeadNowhere(t *testing.T) {
	t.Parallel()
	scratch, outside := t.TempDir(), t.TempDir()
	link := func(to, at string) {
		t.Helper()
		if err := os.Symlink(to, at); err != nil {
			t.Fatal(err)
		}
	}
	home := filepath.Join(scratch, "home")
	link(outside, home)
	for range 2 {
		got, err := PrivateHome(scratch)
		if err != nil || got != home {
			t.Fatalf("got %s, %v", got, err)
		}
		for _, dir := range []string{home, filepath.Join(home, "tmp")} {
			if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
				t.Errorf("%s is no directory; %v", dir, err)
			}
		}
		if err := os.Remove(filepath.Join(home, "tmp")); err != nil {
			t.Fatal(err)
		}
		link("../../"+filepath.Base(outside), filepath.Join(home, "tmp"))
	}

	if err := Fill(home, map[string]string{"a": "1", "b/c": "2"}); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(home, "b", "c")); string(data) != "2" || err != nil {
		t.Errorf("got %q, %v", data, err)
	}
	file := filepath.Join(outside, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	link(file, filepath.Join(home, "d"))
	link(outside, filepath.Join(home, "e"))
	for _, name := range []string{"d", "e/file", "e/new", "../f"} {
		if err := Fill(home, map[string]string{name: "x"}); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	left, err := os.ReadDir(outside)
	if data, _ := os.ReadFile(file); string(data) != "precious" || len(left) != 1 || err != nil {
		t.Errorf("outside there are %v with %q, %v", left, data, err)
	}
}
