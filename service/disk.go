package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/dirmark"
)

const (
	// diskInterval is how long an answer of the disk is good for: probes come every few seconds, and the disk has other work.
	diskInterval = 10 * time.Second
	// illInterval is the same for a bad answer: no work is taken meanwhile.
	illInterval = time.Second
	// probeSize is how much the probe writes, in bytes: a block, so that a full disk is noticed.
	probeSize = 4096
)

// disk tells whether a directory can be written to, by writing a small file, and is the one that it was. At most one
// write is under way, however long the disk takes. It is safe for concurrent use.
type disk struct {
	dir string
	// mark knows the directory. Only newDisk and the probe that is under way use it.
	mark *dirmark.Mark
	// write writes the file; tests replace it.
	write func(name string) error

	mu sync.Mutex
	// running is closed when the write that is under way has ended; nil if none is.
	running chan struct{}
	asked   time.Time
	err     error
}

// newDisk returns a disk that probes a state directory, and marks that.
func newDisk(dir string) *disk { return &disk{dir: dir, mark: dirmark.New(dir), write: writeProbe} }

// check is the condition of readiness: nil if the newest answer of the disk is good.
func (d *disk) check(ctx context.Context) error { return d.answer(ctx, false) }

// answer returns the newest answer of the disk, or with anew one to a question that is asked now.
func (d *disk) answer(ctx context.Context, anew bool) error {
	d.mu.Lock()
	interval := map[bool]time.Duration{true: diskInterval, false: illInterval}[d.err == nil]
	if !anew && d.running == nil && !d.asked.IsZero() && time.Since(d.asked) < interval {
		defer d.mu.Unlock()
		return d.err
	}
	if d.running == nil {
		d.running = make(chan struct{})
		go d.probe(d.running)
	}
	running := d.running
	d.mu.Unlock()
	select {
	case <-running:
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.err
	case <-ctx.Done():
		return fmt.Errorf("the disk of %s does not answer: look at its volume", d.dir)
	}
}

// probe asks the disk, and then closes running.
func (d *disk) probe(running chan struct{}) {
	err := d.mark.Check()
	if err == nil {
		err = d.write(filepath.Join(d.dir, ".probe"))
	}
	if err != nil {
		err = fmt.Errorf("--state-dir (FORGE_STATE_DIR) cannot be used: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err, d.asked, d.running = err, time.Now(), nil
	close(running)
}

// writeProbe writes a file and removes it.
func writeProbe(name string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, probeSize))
	return errors.Join(err, f.Close(), os.Remove(name))
}
