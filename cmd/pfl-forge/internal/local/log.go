package local

import (
	"errors"
	"io"
	"os"
	"path"

	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// maxLog bounds the log of runs, in bytes. A larger one is renamed when it is
// opened, and a new one is begun; one old log is kept.
const maxLog = 8 << 20

// OpenLog opens the file that runs log to, .forge/logs/run.log, for appending.
// A link in a repository cannot lead it elsewhere. The caller closes it.
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
