package objects

import (
	"os"
	"path/filepath"
	"time"

	"github.com/pfl-forge/pfl-forge/git/internal/disk"
)

// hub is the path of our own git directory, under which commands on objects
// run. It has no objects of its own.
type hub string

// hubConfig is the configuration of the hub; that of the person's repository is
// not read.
const hubConfig = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"

// write makes the hub of the repository whose git directory is common, and sweeps its quarantine.
func (h hub) write(common string) error {
	for _, dir := range []string{"refs/heads", "info", "quarantine"} {
		if err := os.MkdirAll(h.file(dir), 0o700); err != nil {
			return err
		}
	}
	files := map[string]string{
		"HEAD":         "ref: refs/heads/none\n",
		"config":       hubConfig,
		"info/exclude": ExcludeForge,
	}
	if b, err := os.ReadFile(filepath.Join(common, "shallow")); err == nil {
		files["shallow"] = string(b)
	} else if err := disk.IgnoreMissing(os.Remove(h.file("shallow"))); err != nil {
		return err
	}
	for name, content := range files {
		if err := disk.WriteFile(h.file(name), []byte(content)); err != nil {
			return err
		}
	}
	return h.sweep()
}

// sweep removes the directories of killed processes from the quarantine. Another process may be
// using a young one.
func (h hub) sweep() error {
	entries, err := os.ReadDir(h.quarantine())
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			_ = disk.RemoveAll(filepath.Join(h.quarantine(), e.Name()))
		}
	}
	return err
}

// quarantine returns the directory for objects that are not, or not yet, in the database.
func (h hub) quarantine() string { return h.file("quarantine") }

// shallow returns the list of commits at which a shallow clone ends; nil if it is not shallow.
func (h hub) shallow() []byte {
	b, err := os.ReadFile(h.file("shallow"))
	if err != nil {
		return nil
	}
	return b
}

// file returns the path of a file or directory of the hub.
func (h hub) file(name string) string { return filepath.Join(string(h), name) }
