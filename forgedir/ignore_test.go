package forgedir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

func TestGitIgnore(t *testing.T) {
	for _, tt := range []struct {
		name, before, exclude, want string
	}{
		{"none", "", "", ".forge/\n"},
		{"added to a person's lines", "bin/\n", "", "bin/\n.forge/\n"},
		{"last line without an end", "bin/", "", "bin/\n.forge/\n"},
		{"line ends are kept", "bin/\r\nx\r\n", "", "bin/\r\nx\r\n.forge/\r\n"},
		{"already there", "/.forge/\nbin/\n", "", "/.forge/\nbin/\n"},
		{"already there without a slash", ".forge\n", "", ".forge\n"},
		{"its content", ".forge/**\n", "", ".forge/**\n"},
		{"by a pattern", ".*\n", "", ".*\n"},
		{"taken out again", ".*\n!.forge\n", "", ".*\n!.forge\n.forge/\n"},
		{"a comment", "#.forge\n", "", "#.forge\n.forge/\n"},
		{"another folder", ".forge/nats\n", "", ".forge/nats\n.forge/\n"},
		{"excluded on this machine", "bin/\n", "# mine\n.forge/\n", "bin/\n"},
		{"excluded here and taken out there", "!.forge\n", ".forge\n", "!.forge\n.forge/\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			name := filepath.Join(root, ".gitignore")
			if tt.before != "" {
				writeText(t, name, tt.before)
			}
			if err := os.MkdirAll(filepath.Join(root, ".git", "info"), 0o755); err != nil {
				t.Fatal(err)
			}
			writeText(t, filepath.Join(root, ".git", "info", "exclude"), tt.exclude)
			for range 2 { // once is enough
				w, err := Open(root, Options{Project: "demo"})
				if err != nil {
					t.Fatal(err)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf(".gitignore is %q, want %q", got, tt.want)
			}
		})
	}
}

func TestOpenRefusesSymlinks(t *testing.T) {
	for _, tt := range []struct{ name, link, want string }{
		{"the folder", ".forge", ".forge is a symbolic link, not a directory; remove it and try again"},
		{"a folder in it", ".forge/intents", ".forge/intents is a symbolic link, not a directory; remove it and try again"},
		{"a deep one", ".forge/knowledge/history", ".forge/knowledge/history is a symbolic link, not a directory; remove it and try again"},
		{"the ignore file", ".gitignore", ".gitignore is a symbolic link; make it a regular file, or add .forge/ to .git/info/exclude"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, outside := t.TempDir(), t.TempDir()
			link := filepath.Join(root, tt.link)
			if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(outside, link); err != nil {
				t.Fatal(err)
			}
			_, err := Open(root, Options{Project: "demo"})
			if err == nil || err.Error() != tt.want {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
			if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
				t.Errorf("something was written through the link: %v %v", entries, err)
			}
		})
	}
}

func TestOpenRefusesAFile(t *testing.T) {
	root := t.TempDir()
	writeText(t, filepath.Join(root, layout.Dir), "")
	if _, err := Open(root, Options{Project: "demo"}); err == nil || !strings.Contains(err.Error(), "is a file, not a directory") {
		t.Errorf("got error %v", err)
	}
}

func writeText(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
