package service

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/work"
)

const (
	// A file begins with the result's length and checksum; zeros: it holds none.
	outboxHeader = 8
	// outboxKeep is up to which size a file is kept as it is when its result is gone.
	outboxKeep = 64 << 10
	// outboxPatience is after how long a result that still waits is flushed to the
	// disk. Until then it survives the end of the process, not that of the machine.
	outboxPatience = time.Second
)

// Outbox keeps results in files until what they lead to is journaled, so that the
// work is not done again when the worker is killed before that. One worker owns it.
type Outbox struct {
	dir  string
	name string // of this process's files
	log  *slog.Logger

	mu   sync.Mutex
	made int        // files so far
	free []*os.File // those without a result
}

// OpenOutbox makes the directory if it is missing.
func OpenOutbox(dir string, log *slog.Logger) (*Outbox, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	return &Outbox{dir: dir, name: rand.Text()[:8], log: log}, nil
}

// parcel is a result in the outbox. nil is one that could not be kept.
type entry struct {
	outbox *Outbox
	file   *os.File
	size   int
	flush  *time.Timer
}

// put keeps a result. That it cannot is logged, and no reason not to publish it.
func (o *Outbox) put(res forge.Result) *entry {
	if o == nil {
		return nil
	}
	p, err := o.write(res)
	if err != nil {
		o.log.Error("a result cannot be kept: if this process is killed now, the work is done again", "err", err)
		return nil
	}
	return p
}

func (o *Outbox) write(res forge.Result) (*entry, error) {
	data, err := work.MarshalResult(res)
	if err != nil {
		return nil, err
	}
	f, err := o.file()
	if err != nil {
		return nil, err
	}
	content := make([]byte, outboxHeader, outboxHeader+len(data))
	binary.BigEndian.PutUint32(content, uint32(len(data))) // the server's limit on messages is far less
	binary.BigEndian.PutUint32(content[4:], crc32.ChecksumIEEE(data))
	if _, err := f.WriteAt(append(content, data...), 0); err != nil {
		_ = f.Close()
		_ = os.Remove(f.Name())
		return nil, err
	}
	p := &entry{outbox: o, file: f, size: len(data)}
	p.flush = time.AfterFunc(outboxPatience, func() { o.sync(f) })
	return p, nil
}

// file returns a file without a result. Files are used again and again: to make and
// remove one takes longer than everything else.
func (o *Outbox) file() (*os.File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.free); n > 0 {
		f := o.free[n-1]
		o.free = o.free[:n-1]
		return f, nil
	}
	o.made++
	return os.OpenFile(filepath.Join(o.dir, fmt.Sprintf("%s-%d", o.name, o.made)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (o *Outbox) sync(f *os.File) {
	err := f.Sync()
	if err == nil {
		var d *os.File
		if d, err = os.Open(o.dir); err == nil {
			err = errors.Join(d.Sync(), d.Close())
		}
	}
	if err != nil && !errors.Is(err, os.ErrClosed) {
		o.log.Warn("a result that waits for a runner is not flushed to the disk", "err", err)
	}
}

// remove forgets the result: it is journaled, or nobody wants it.
func (p *entry) remove() {
	if p == nil {
		return
	}
	p.flush.Stop()
	_, err := p.file.WriteAt(make([]byte, outboxHeader), 0)
	if err == nil && p.size > outboxKeep {
		err = p.file.Truncate(0)
	}
	if err != nil {
		// It is published once more by the next process, which changes nothing.
		p.outbox.log.Warn("a result stays in the outbox", "err", err)
		_ = p.file.Close()
		return
	}
	p.outbox.mu.Lock()
	defer p.outbox.mu.Unlock()
	p.outbox.free = append(p.outbox.free, p.file)
}

// letter is a result that a former process left.
type leftover struct {
	path   string
	result forge.Result
}

// left returns the results that former processes left, and removes what holds none.
func (o *Outbox) leftovers() []leftover {
	if o == nil {
		return nil
	}
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		o.log.Error("cannot read the outbox: results in it are published by the next start", "err", err)
	}
	var list []leftover
	for _, e := range entries {
		l := leftover{path: filepath.Join(o.dir, e.Name())}
		content, err := os.ReadFile(l.path)
		if err == nil {
			l.result, err = readEntry(content)
		}
		_, newer := errors.AsType[*bus.UnknownError](err)
		switch {
		case err == nil:
			list = append(list, l)
		case errors.Is(err, errNoResult):
			l.remove(o.log)
		case newer:
			o.log.Error("a result in the outbox is of a newer version, which has to publish it", "path", l.path, "err", err)
		default: // it was killed while it wrote
			o.log.Warn("what is in the outbox is no result", "path", l.path, "err", err)
			l.remove(o.log)
		}
	}
	return list
}

var errNoResult = errors.New("no result")

func readEntry(content []byte) (forge.Result, error) {
	if len(content) < outboxHeader {
		return forge.Result{}, errNoResult
	}
	size, sum := binary.BigEndian.Uint32(content), binary.BigEndian.Uint32(content[4:])
	data := content[outboxHeader:]
	switch {
	case size == 0:
		return forge.Result{}, errNoResult
	case uint64(size) > uint64(len(data)) || crc32.ChecksumIEEE(data[:size]) != sum:
		return forge.Result{}, errors.New("it is cut off")
	}
	return work.UnmarshalResult(data[:size])
}

func (l *leftover) remove(log *slog.Logger) {
	if err := os.Remove(l.path); err != nil {
		log.Warn("cannot remove a file of the outbox", "err", err)
	}
}

// close removes the files without a result.
func (o *Outbox) close() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.free {
		if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
			o.log.Warn("cannot remove a file of the outbox", "err", err)
		}
	}
	o.free = nil
}
