package objects

import (
	"os"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge/git/internal/disk"
)

// flushLoose makes the loose objects of a directory durable as git makes them in its
// batch mode: each file is written out, then one is flushed, which flushes the journal
// and the disk for all. moveObjects then moves them.
func flushLoose(dir string) (files []string, err error) {
	files, err = looseObjects(dir)
	for i, name := range files {
		if err == nil {
			err = disk.Flush(name, i == len(files)-1)
		}
	}
	return files, err
}

// moveObjects moves loose objects, which flushLoose made durable, into an
// object directory on the same file system. An object that is there already
// stays.
func moveObjects(files []string, objects string) error {
	for _, name := range files {
		dir := filepath.Join(objects, filepath.Base(filepath.Dir(name)))
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		if disk.Exists(filepath.Join(dir, filepath.Base(name))) {
			continue
		}
		if err := os.Rename(name, filepath.Join(dir, filepath.Base(name))); err != nil {
			return err
		}
	}
	return nil
}

// looseObjects returns the paths of the loose objects of an object directory.
func looseObjects(dir string) ([]string, error) {
	fans, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, fan := range fans {
		if len(fan.Name()) != 2 {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(dir, fan.Name()))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			files = append(files, filepath.Join(dir, fan.Name(), e.Name()))
		}
	}
	return files, nil
}
