package local

import (
	"errors"
	"io"
	"os"
	"path"

	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// maxLog is how large the log of runs may become before it is started anew, in
// bytes; the one before is kept.
const maxLog = 8 << 20

// OpenLog opens the file that runs log to, below the .forge folder.
func (r *Repository) OpenLog() (io.WriteCloser, error) {
	root, err := os.OpenRoot(r.Root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	dir := path.Join(layout.Dir, layout.Logs)
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	name := path.Join(dir, "run.log")
	if info, err := root.Stat(name); err == nil && info.Size() > maxLog {
		if err := root.Rename(name, name+".1"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
}
