// Package begun remembers, on the disk of a replica, which attempts it has begun and not
// ended: so its next process knows during which of them it was killed.
//
//	Log.Begin    before an attempt, whose end is told by the function that it returns
//	Log.Excuse   when the process is asked to stop: what is cut off from then on is no fault of an attempt
//	Log.Left     at the next start: what a former process had begun when it was killed
//
// It says nothing of a process that was only cut off from the server, since that goes on and ends
// what it had begun; nothing after the machine lost its power, as a record is not flushed; and
// nothing if the disk is lost with the replica.
package begun

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	forge "github.com/pfl-forge/pfl-forge"
)

// Most is how many processes in a row may be killed during an attempt before that is reported.
const Most = 3

// maxRecord bounds a record that is read, in bytes.
const maxRecord = 64 << 10

// Log keeps one file for each attempt that runs. It belongs to one worker. A nil Log keeps
// nothing. It is safe for concurrent use.
type Log struct {
	dir string
	log *slog.Logger

	mu sync.Mutex
	// excused is set once the process was asked to stop.
	excused bool
	// running are the files of the attempts that run.
	running map[string]bool
}

// New returns the log in a directory, which the first attempt creates.
func New(dir string, log *slog.Logger) *Log {
	return &Log{dir: dir, log: log, running: map[string]bool{}}
}

// record is the content of a file.
type record struct {
	Project forge.ProjectID `json:"project"`
	Intent  forge.IntentID  `json:"intent,omitempty"`
	Task    forge.TaskID    `json:"task,omitempty"`
	Step    forge.Step      `json:"step"`
	Number  int             `json:"number"`
	Claim   int             `json:"claim"`
	Killed  []string        `json:"killed"`
}

// Attempt is one that a former process had begun when it was killed.
type Attempt struct {
	To      forge.Key
	Attempt forge.Attempt
	// Killed names the processes that were killed during it, the former one among them.
	Killed []string
	path   string
	log    *slog.Logger
}

// Begin notes that a process, which it names, begins an attempt, during which others were
// killed already. The caller calls end when it has ended, however that was. An error is logged:
// the attempt goes on, and if this process is killed it is not counted.
func (l *Log) Begin(to forge.Key, a forge.Attempt, name string, killed []string) (end func()) {
	if l == nil {
		return func() {}
	}
	data, err := json.Marshal(record{to.Project, to.Intent, a.Task, a.Step, a.Number, a.Claim, append(append([]string{}, killed...), name)})
	if err != nil {
		l.log.Error("an attempt that begins is not noted", "error", err)
		return func() {}
	}
	path := filepath.Join(l.dir, rand.Text())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.excused {
		return func() {}
	}
	err = os.WriteFile(path, data, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(l.dir, 0o700); err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
	}
	if err != nil {
		l.log.Warn("an attempt that begins is not noted: if this replica is killed by it, that does not count", "error", err)
		remove(path, l.log)
		return func() {}
	}
	l.running[path] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.running[path] {
			delete(l.running, path)
			remove(path, l.log)
		}
	}
}

// Excuse has the log forget what runs, and note nothing any more.
func (l *Log) Excuse() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.excused = true
	for path := range l.running {
		remove(path, l.log)
	}
	clear(l.running)
}

// Left returns the attempts during which a former process was killed. It is called before the
// first Begin. A file that is cut off, since the process was killed while it wrote, is removed.
func (l *Log) Left() []Attempt {
	if l == nil {
		return nil
	}
	entries, err := os.ReadDir(l.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.log.Error("what a former process had begun cannot be read", "error", err)
	}
	var list []Attempt
	for _, e := range entries {
		a := Attempt{path: filepath.Join(l.dir, e.Name()), log: l.log}
		if err := a.read(); err != nil {
			l.log.Warn("a file that should name an attempt does not", "path", a.path, "error", err)
			a.Forget()
			continue
		}
		list = append(list, a)
	}
	return list
}

// read takes what the file says.
func (a *Attempt) read() error {
	info, err := os.Lstat(a.path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxRecord {
		return errors.New("it is no file, or too long")
	}
	data, err := os.ReadFile(a.path)
	if err != nil {
		return err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	if r.Project == "" || r.Step == "" || r.Number < 1 || len(r.Killed) == 0 {
		return errors.New("it names no attempt")
	}
	a.To, a.Killed = forge.Key{Project: r.Project, Intent: r.Intent}, r.Killed
	a.Attempt = forge.Attempt{Task: r.Task, Step: r.Step, Number: r.Number, Claim: r.Claim}
	return nil
}

// Forget removes the record: others know of it, or nobody wants the attempt any more.
func (a *Attempt) Forget() { remove(a.path, a.log) }

// remove removes a file.
func remove(path string, log *slog.Logger) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("an attempt that has ended stays noted: if it is not over, its replica is taken for killed", "error", err)
	}
}
