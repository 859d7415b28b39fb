package service

import (
	"context"
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
	"github.com/pfl-forge/pfl-forge/service/begun"
)

const (
	// outboxHeader is the length of a file's header, in bytes: the result's length
	// and its CRC-32. A file that begins with zeros has no result.
	outboxHeader = 8
	// outboxKeep is the largest size at which a file keeps its blocks for the next
	// result.
	outboxKeep = 64 << 10
	// outboxPatience is the age at which a waiting result is flushed to the disk.
	// Until then it survives the end of the process, but not that of the machine.
	outboxPatience = time.Second
)

// begunDir is the directory in that of an outbox that has the attempts which run.
const begunDir = "begun"

// Outbox keeps results in files until they are journaled, so that the work is not
// done again when the worker is killed in between, and knows which attempts run. It belongs to
// one worker. A nil Outbox keeps nothing.
type Outbox struct {
	dir string
	// begun has the attempts that run.
	begun *begun.Log
	// name is the prefix of this process's files.
	name string
	log  *slog.Logger

	mu sync.Mutex
	// made counts the files so far.
	made int
	// free are files without a result, for the next one.
	free []*os.File
}

// OpenOutbox returns the outbox in a directory, which it creates if it is missing.
func OpenOutbox(dir string, log *slog.Logger) (*Outbox, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	return &Outbox{dir: dir, begun: begun.New(filepath.Join(dir, begunDir), log), name: rand.Text()[:8], log: log}, nil
}

// running returns the attempts that run; nil without an outbox.
func (o *Outbox) running() *begun.Log {
	if o == nil {
		return nil
	}
	return o.begun
}

// entry is a result in the outbox. A nil entry stands for a result that could not be
// kept.
type entry struct {
	outbox *Outbox
	// about is the context of lines about the result.
	about context.Context //nolint:containedctx // nothing ends with it
	file  *os.File
	// size is the result's length, in bytes.
	size int
	// flush fires after outboxPatience.
	flush *time.Timer
}

// put stores a result. An error is logged, and nil returned: the result is published
// all the same.
func (o *Outbox) put(ctx context.Context, res forge.Result) *entry {
	if o == nil {
		return nil
	}
	p, err := o.write(ctx, res)
	if err != nil {
		o.log.ErrorContext(ctx, "a result cannot be kept: if this process is killed now, the work is done again", "error", err)
		return nil
	}
	return p
}

// write stores a result in a free file and schedules the flush.
func (o *Outbox) write(ctx context.Context, res forge.Result) (*entry, error) {
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
	p := &entry{outbox: o, about: context.WithoutCancel(ctx), file: f, size: len(data)}
	p.flush = time.AfterFunc(outboxPatience, func() { o.sync(ctx, f) })
	return p, nil
}

// file returns a file without a result. Files are reused, because creating and
// removing one takes longer than everything else.
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

// sync flushes a file and its directory to the disk.
func (o *Outbox) sync(ctx context.Context, f *os.File) {
	err := f.Sync()
	if err == nil {
		var d *os.File
		if d, err = os.Open(o.dir); err == nil {
			err = errors.Join(d.Sync(), d.Close())
		}
	}
	if err != nil && !errors.Is(err, os.ErrClosed) {
		o.log.WarnContext(ctx, "a result that waits for a runner is not flushed to the disk", "error", err)
	}
}

// remove drops the result, which is journaled or not wanted, and frees its file.
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
		p.outbox.log.WarnContext(p.about, "a result stays in the outbox", "error", err)
		_ = p.file.Close()
		return
	}
	p.outbox.mu.Lock()
	defer p.outbox.mu.Unlock()
	p.outbox.free = append(p.outbox.free, p.file)
}

// leftover is a result that a previous process did not get journaled.
type leftover struct {
	path   string
	result forge.Result
}

// leftovers returns the results that previous processes left, and removes files
// without one. A result of a newer version is kept for that version.
func (o *Outbox) leftovers() []leftover {
	if o == nil {
		return nil
	}
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		o.log.Error("cannot read the outbox: results in it are published by the next start", "error", err)
	}
	var list []leftover
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
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
			o.log.Warn("a result in the outbox is of a newer version, which has to publish it", "path", l.path, "error", err)
		default: // it was killed while it wrote
			o.log.Warn("a file in the outbox is not a result", "path", l.path, "error", err)
			l.remove(o.log)
		}
	}
	return list
}

// errNoResult says that a file was empty, which is the normal state of a free one.
var errNoResult = errors.New("no result")

// readEntry returns the result in a file's content. A file that was cut off while it
// was written is an error.
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

// remove deletes the file of a result that was published.
func (l *leftover) remove(log *slog.Logger) {
	if err := os.Remove(l.path); err != nil {
		log.Warn("cannot remove a file of the outbox", "error", err)
	}
}

// close removes the files without a result. Those with one stay for the next process.
func (o *Outbox) close() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.free {
		if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
			o.log.Warn("cannot remove a file of the outbox", "error", err)
		}
	}
	o.free = nil
}
