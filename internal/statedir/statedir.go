// Package statedir tells whether a service's state directory can be worked in:
// whether it can be written to, and is the one that it was when the process
// began. A service that cannot is not ready, and takes no work.
//
// Package service asks it for /readyz, and for a worker before and after each attempt
// (ADR 0080). A mark in the directory shows that it was not replaced by an empty one. At
// most one write is under way, however long the disk takes, so asking never piles up.
package statedir

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// diskInterval is how long an answer of the disk is good for: probes come every few
	// seconds, and the disk has other work.
	diskInterval = 10 * time.Second
	// illInterval is the same for a bad answer: no work is taken meanwhile.
	illInterval = time.Second
	// probeSize is how much the probe writes, in bytes: a block, so that a full disk is noticed.
	probeSize = 4096
	// markFile is by what a process knows its directory again. One that was
	// removed, or whose volume is not mounted, can be written to as well once
	// it is made anew, and has none of the clones on which each command works.
	markFile = ".life"
)

// Disk tells whether a directory can be written to, by writing a small file, and is the one that it
// was. At most one write is under way, however long the disk takes. It is safe for concurrent use.
type Disk struct {
	// dir is made if it is missing at the start.
	dir string
	// mark is the content of markFile.
	mark string
	// marked says that the mark was written, or taken. Only New and the probe
	// that is under way read it.
	marked bool
	// write writes the file; tests replace it.
	write func(name string) error

	mu sync.Mutex
	// running is closed when the write that is under way has ended; nil if none is.
	running chan struct{}
	asked   time.Time
	err     error
}

// New returns a Disk that probes a state directory, and marks that. Where this
// cannot be done, the first probe that can does it.
func New(dir string) *Disk {
	d := &Disk{dir: dir, write: writeProbe, mark: rand.Text()}
	_ = d.known() // a probe says why
	return d
}

// known marks the directory once, or takes the mark that is there, so that a
// second process which waits for the end of the first one takes nothing from
// that. From then on it returns an error if the directory is another one.
func (d *Disk) known() error {
	path := filepath.Join(d.dir, markFile)
	text, err := os.ReadFile(path)
	switch {
	case !d.marked && err == nil && len(text) > 0:
		d.mark, d.marked = string(text), true
		return nil
	case !d.marked:
		if err = os.MkdirAll(d.dir, 0o700); err == nil {
			err = os.WriteFile(path, []byte(d.mark), 0o600)
		}
		d.marked = err == nil
		return err
	case errors.Is(err, fs.ErrNotExist), err == nil && string(text) != d.mark:
		return errors.New("what was in it is gone: start the service again, which makes it anew")
	default:
		return err
	}
}

// Check is the condition of readiness: nil if the newest answer of the disk is good.
func (d *Disk) Check(ctx context.Context) error { return d.Answer(ctx, false) }

// Answer returns the newest answer of the disk, or with anew one to a question that is asked now.
func (d *Disk) Answer(ctx context.Context, anew bool) error {
	d.mu.Lock()
	interval := diskInterval
	if d.err != nil {
		interval = illInterval
	}
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
func (d *Disk) probe(running chan struct{}) {
	err := d.known()
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
