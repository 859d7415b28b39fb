package forgedir

import (
	"context"
	"errors"
	"io/fs"
	"time"
)

// maxWaits bounds how often a file that never comes to rest is looked at again.
const maxWaits = 20

// readSettled reads a file that a person may be saving right now: while it
// changed a moment ago, it waits for it to come to rest.
func (w *Workspace) readSettled(ctx context.Context, rel string, most int64) ([]byte, fs.FileInfo, error) {
	for range maxWaits {
		data, info, err := w.read(rel, most)
		if err != nil {
			return data, info, err
		}
		age := time.Since(info.ModTime())
		if age < 0 || age >= w.settle {
			return data, info, nil
		}
		timer := time.NewTimer(w.settle - age)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, nil, ctx.Err()
		case <-timer.C:
		}
	}
	return nil, nil, &errKind{"still being written"}
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
