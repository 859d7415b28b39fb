package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/doctor/diagnosis"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// checkWritable checks that a run can write the repository's .forge folder. That a part of
// it is missing is no problem, because a run makes it.
//
// It asks the kernel, and writes nothing to find out. Folders are checked two levels deep,
// and all files of logs and nats, as a run appends to those; of all other files only the
// folders are looked at. The first one that is refused is named, the others are counted.
func checkWritable(root string) diagnosis.Finding {
	dir := filepath.Join(root, layout.Dir)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		dir = root
	}
	refused, first := 0, ""
	note := func(path, why string) {
		if refused++; first == "" {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				rel = path
			}
			first = rel + ": " + why
		}
	}
	if dir == root {
		if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
			note(dir, err.Error())
		}
	} else {
		checkFolder(dir, note)
		for _, name := range []string{"logs", "nats"} { // a run writes on in their files
			checkTree(filepath.Join(dir, name), note)
		}
	}
	if refused == 0 {
		return diagnosis.New("folder", diagnosis.Healthy, layout.Dir+" is writable", "")
	}
	detail := first
	if refused > 1 {
		detail += fmt.Sprintf(", and %s more", render.Count(refused-1, "file"))
	}
	return diagnosis.New("folder", diagnosis.Broken, detail, "a run writes there: give "+layout.Dir+" back to your user (chown, chmod), or run as its owner")
}

// checkFolder notes a folder, and the folders in it, that cannot be written.
// note is called once for each, with its path and why.
func checkFolder(dir string, note func(path, why string)) {
	list, err := os.ReadDir(dir)
	if err != nil {
		note(dir, reason(err))
		return
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		note(dir, err.Error())
	}
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		if !e.IsDir() {
			continue
		}
		if err := unix.Access(path, unix.W_OK|unix.X_OK); err != nil {
			note(path, err.Error())
		}
	}
}

// checkTree notes the files below a folder that cannot be written. That it is missing is all right.
// Files may vanish while it looks, because a run may go on.
func checkTree(dir string, note func(path, why string)) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		note(dir, "is not a folder")
		return
	}
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // also of what a run just replaced
		case err != nil:
			note(path, reason(err))
		case path != dir && unix.Access(path, unix.W_OK) == unix.EACCES:
			note(path, unix.EACCES.Error())
		}
		return nil
	})
}

// reason returns why a file cannot be used, without its path.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}
