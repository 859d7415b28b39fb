package disk_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pfl-forge/pfl-forge/forgedir/disk"
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
				if err := openIgnored(root); err != nil {
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

// openIgnored opens and closes the folder, and has git ignore it.
func openIgnored(root string) error {
	d, err := disk.Open(root)
	if err != nil {
		return err
	}
	return errors.Join(d.Ignore(layout.Dir), d.Close())
}

func writeText(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
