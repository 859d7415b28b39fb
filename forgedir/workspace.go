package forgedir

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Options says on whose behalf a workspace speaks.
type Options struct {
	Project forge.ProjectID // the receiver of the events
	Actor   string          // the person behind the edits; may be empty
	Log     *slog.Logger    // nil: nothing is logged
}

// How long things are left alone.
const (
	// A file that changed more recently may still be in the middle of being saved.
	settleTime = 150 * time.Millisecond
	// A file that was swapped out may still be open in an editor.
	replacedTime = 5 * time.Second
)

// Workspace is the .forge folder of one repository. One process at a time may
// write to it; within the process it is safe for concurrent use.
type Workspace struct {
	root    *os.Root // the folder
	goals   *os.Root // GoalDir; nil until there is one
	ignored bool     // by git: GoalDir
	path    string   // of the repository's root
	project forge.ProjectID
	actor   string
	log     *slog.Logger

	mu       sync.Mutex
	index    *index
	settled  map[string]digest            // what is known to be in place, by path
	imported map[string]digest            // a person's version whose events were decided
	refusals map[string]refusal           // a person's version whose events were refused
	seen     map[string]signature         // files that held what we wrote, when last read
	replaced []swappedOut                 // oldest first
	notes    *notebook                    // observations.yaml; nil until first needed
	overview overview                     // state.yaml; nil until first needed
	tasks    map[forge.IntentID][]taskRow // for state.yaml
	lines    map[string]*lineFile         // files of goals as they were last read, by path

	settle  time.Duration
	linger  time.Duration
	noSwap  bool                 // as if the file system could not swap
	reached func(string)         // tests stop here; names the point
	flush   func(*os.File) error // to the disk
}

// Open makes the folder in a repository's root where it is missing, has git
// ignore it, and repairs what a crash left behind. It refuses a folder that a
// symbolic link stands in for.
func Open(root string, opts Options) (*Workspace, error) {
	log := opts.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	w := &Workspace{
		path: root, project: opts.Project, actor: opts.Actor, log: log,
		settled:  map[string]digest{},
		imported: map[string]digest{},
		refusals: map[string]refusal{},
		seen:     map[string]signature{},
		tasks:    map[forge.IntentID][]taskRow{},
		lines:    map[string]*lineFile{},
		settle:   settleTime,
		linger:   replacedTime,
		reached:  func(string) {},
		flush:    (*os.File).Sync,
	}
	if err := w.open(); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *Workspace) open() error {
	if err := makeFolder(w.path, Dir); err != nil {
		return err
	}
	var err error
	if w.root, err = os.OpenRoot(filepath.Join(w.path, Dir)); err != nil {
		return err
	}
	if err := w.prepare(); err != nil {
		return errors.Join(err, w.root.Close())
	}
	return nil
}

func (w *Workspace) prepare() error {
	if err := w.makeFolders(); err != nil {
		return err
	}
	if err := ignoreFolder(w.path, Dir); err != nil {
		return err
	}
	var err error
	if w.index, err = openIndex(w.root, w.flush); err != nil {
		return err
	}
	if err := w.recover(); err != nil {
		return err
	}
	return w.writeSchemas()
}

// Close ends the use of the folder.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.index.close(), w.closeGoals(), w.root.Close())
}
