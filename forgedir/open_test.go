package forgedir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

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
