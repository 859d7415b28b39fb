// Package begun remembers, on the disk of a replica, which attempts it has begun and not
// ended: so its next process knows during which of them it was killed.
//
//	Log.Begin    before an attempt, whose end is told by the function that it returns
//	Log.Excuse   when the process is asked to stop: what is cut off from then on is no fault of an attempt
//	Log.Tell     at the next start, of the attempts that a former process had begun when it was killed
//	Log.Killed   with what others have told: the processes that were killed during one attempt
//	Failure      after Most of them: why it is not begun once more
//
// It says nothing of a process that was only cut off from the server, since that goes on and ends
// what it had begun; nothing after the machine lost its power, as a record is not flushed; and
// nothing if the disk is lost with the replica.
package begun

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

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
	// left are the attempts of a former process of which others do not know yet.
	left []Attempt
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
}

// notNoted is logged where an attempt goes on without its note.
const notNoted = "an attempt that begins is not noted: if this replica is killed by it, that does not count"

// Begin notes that a process, which it names, begins an attempt, during which others were
// killed already. The caller calls end when it has ended, however that was. An error is logged:
// the attempt goes on, and if this process is killed it is not counted.
func (l *Log) Begin(to forge.Key, a forge.Attempt, name string, killed []string) (end func()) {
	if l == nil {
		return func() {}
	}
	data, err := json.Marshal(record{to.Project, to.Intent, a.Task, a.Step, a.Number, a.Claim, append(append([]string{}, killed...), name)})
	if err != nil {
		l.log.Warn(notNoted, "error", err)
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
		l.log.Warn(notNoted, "error", err)
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

// Left returns the attempts during which a former process was killed, and which Killed knows from
// then on. It is called before the first Begin. A file that is cut off, since the process was
// killed while it wrote, is removed.
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
		a := Attempt{path: filepath.Join(l.dir, e.Name())}
		if err := a.read(); err != nil {
			l.log.Warn("a file that should name an attempt does not", "path", a.path, "error", err)
			remove(a.path, l.log)
			continue
		}
		list = append(list, a)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = slices.Clone(list)
	return list
}

// Forget drops one of Left: others know of it, or its result is not wanted any more.
func (l *Log) Forget(a *Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	remove(a.path, l.log)
	l.left = slices.DeleteFunc(l.left, func(one Attempt) bool { return one.path == a.path })
}

// Tell has each of Left told to other replicas, at once or later, until ctx ends: told returns an
// error if that has to be done again.
func (l *Log) Tell(ctx context.Context, wait *sync.WaitGroup, every time.Duration, told func(context.Context, *Attempt) error) {
	for _, a := range l.Left() {
		one := func() bool {
			if err := told(ctx, &a); err != nil {
				l.log.DebugContext(ctx, "it is not yet told that a former process was killed during an attempt", "attempt", a.Attempt.String(), "error", err)
				return false
			}
			l.Forget(&a)
			return true
		}
		if one() {
			continue
		}
		wait.Go(func() {
			tick := time.NewTicker(every)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return // the next start goes on
				case <-tick.C:
				}
				if one() {
					return
				}
			}
		})
	}
}

// Killed returns the names of all processes that were killed during an attempt: of those that are
// known of it, and of what is not told yet.
func (l *Log) Killed(to forge.Key, a forge.Attempt, known []string) []string {
	if l == nil {
		return known
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, left := range l.left {
		same := left.Attempt
		if same.Claim = a.Claim; left.To != to || same != a {
			continue
		}
		for _, name := range left.Killed {
			if !slices.Contains(known, name) {
				known = append(slices.Clip(known), name)
			}
		}
	}
	return known
}

// Failure returns why an attempt is not begun any more during which so many processes were
// killed; nil: it may begin. Rules that do not know the reason are told that a program
// crashed, of which they make as many attempts as of any.
func Failure(cmd *forge.Command, killed []string) *forge.Failure {
	if len(killed) < Most {
		return nil
	}
	names := make([]string, len(killed))
	for i, name := range killed {
		replica, _, _ := strings.Cut(name, " ") // without its life
		if _, err := forge.ParseReplicaID(replica); err != nil {
			replica = "another one" // whoever may write leases can have written any text
		}
		names[i] = replica
	}
	f := &forge.Failure{Reason: forge.FailKilledReplica}
	f.Message = "killed while they worked on it, without having been asked to stop: " + strings.Join(names, ", ")
	if cmd.Patience == 0 {
		f.Reason = forge.FailCrashed
	}
	return f
}

// read returns an error unless the file names an attempt, and takes that.
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
	if _, err := forge.ParseProjectID(string(r.Project)); err != nil {
		return err
	}
	if _, err := forge.ParseIntentID(string(r.Intent)); r.Intent != "" && err != nil {
		return err
	}
	if _, err := forge.ParseTaskID(string(r.Task)); r.Task != "" && err != nil {
		return err
	}
	a.To, a.Killed = forge.Key{Project: r.Project, Intent: r.Intent}, r.Killed
	a.Attempt = forge.Attempt{Task: r.Task, Step: r.Step, Number: r.Number, Claim: r.Claim}
	return nil
}

// remove removes a file.
func remove(path string, log *slog.Logger) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("an attempt that has ended stays noted: if it is not over, its replica is taken for killed", "error", err)
	}
}
