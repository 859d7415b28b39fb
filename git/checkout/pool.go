package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/git/store"
)

// PoolConfig configures a Pool. Dir and Store are required.
type PoolConfig struct {
	// Dir has one directory for each checkout. It belongs to one Pool at a
	// time, across all processes, and to nothing else: a Pool removes what it
	// does not know.
	Dir string
	// Store is where objects come from and where Collect brings them.
	Store *store.Store
	// Max bounds the checkouts that are kept on the disk; 0 means 8. There are
	// more only while more are in use at once; those of ViewInTurn wait for one another then.
	Max int
	// Limits bounds the objects that one attempt may bring in; zero fields have
	// defaults.
	Limits objects.Limits
	// Log gets repairs, and failures to remove files in the background; nil
	// means none.
	Log *slog.Logger
}

// Pool makes private checkouts, re-uses finished ones, and removes the others.
//
// A checkout is in use from Prepare, Reopen or Recover until Park or Release. Park
// leaves it as it is, for Reopen and Recover to find; when the pool is full and another
// checkout is needed, that takes the tree of the one that was parked longest ago.
//
//	<dir>/<name>/           a checkout, with a .git of its own: the agent's
//	<dir>/.own/<name>/      what the service keeps of it: the index of what it wrote there, and state.json
//	<dir>/.warm/<n>/        a finished checkout; .own/.warm-<n> belongs to it
//	<dir>/.trash/           being removed
//	<dir>/.lock             held by the process that has the Pool, and by its git children
//
// Its methods are safe for concurrent use. Two calls for one name must not overlap.
type Pool struct {
	dir    string
	store  *store.Store
	limits objects.Limits
	max    int
	log    *slog.Logger
	// lock is held until Close. git children inherit it, so a killed process
	// lets go of the directory only when they have ended.
	lock *os.File

	mu sync.Mutex
	// warm has the names of directories in .warm, the last used last: it is the
	// one whose files are most likely still in the page cache.
	warm []string
	// parked has every checkout that has a name: 0 while it is in use,
	// otherwise the turn at which it was parked. The lowest turn is taken
	// first.
	parked map[string]int
	// coming has those of them that have no tree yet, and have not been told where to get one.
	coming map[string]bool
	// turns counts the checkouts of ViewInTurn that are in use.
	turns int
	// freed is closed, and replaced, when a checkout is given back.
	freed chan struct{}
	// indexed has the commit whose tree an index in .own has, by the name there. What
	// is not known is not in it: after a restart, and while the index is changed.
	indexed map[string]git.OID
	// serial counts turns, and names directories in .warm and .trash.
	serial int
	closed bool
	// trash counts removals in the background, for which Close waits.
	trash sync.WaitGroup
}

// NewPool takes the directory over, repairs what a crash left, and starts to remove old
// trash. Errors: ErrBusy when another process has it, and the context bounds the wait;
// ErrForeign when it holds something else, because what is in a Pool's directory gets
// removed.
func NewPool(ctx context.Context, cfg PoolConfig) (*Pool, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	p := &Pool{
		dir: dir, store: cfg.Store, limits: cfg.Limits.OrDefault(), max: cfg.Max, log: cfg.Log,
		parked: map[string]int{}, coming: map[string]bool{}, freed: make(chan struct{}), indexed: map[string]git.OID{},
	}
	if p.max == 0 {
		p.max = 8
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if err := foreign(dir); err != nil {
		return nil, err
	}
	for _, d := range []string{".own", ".warm", ".trash"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, err
		}
	}
	if p.lock, err = git.LockFile(ctx, filepath.Join(dir, ".lock")); err != nil {
		return nil, err
	}
	if err := p.repair(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// foreign returns ErrForeign if a directory is not empty and was not made by a Pool.
func foreign(dir string) error {
	entries, err := os.ReadDir(dir)
	if err := disk.IgnoreMissing(err); err != nil {
		return err
	}
	if len(entries) > 0 && !disk.IsDir(filepath.Join(dir, ".own")) {
		return fmt.Errorf("%s holds %s: %w", dir, entries[0].Name(), git.ErrForeign)
	}
	return nil
}

// warmPrefix begins the names in .own of finished checkouts. No task has such a
// name.
const warmPrefix = ".warm-"

// path returns a path below the pool's directory.
func (p *Pool) path(elem ...string) string {
	return filepath.Join(append([]string{p.dir}, elem...)...)
}

// treeOf returns the path of a checkout's working tree. name is that of its directory in .own.
func (p *Pool) treeOf(name string) string {
	if n, ok := strings.CutPrefix(name, warmPrefix); ok {
		return p.path(".warm", n)
	}
	return p.path(name)
}

// discard throws away the working tree of a checkout and what is in .own about it.
func (p *Pool) discard(name string) error {
	p.setIndexed(name, "")
	return errors.Join(p.throw(p.path(".own", name)), p.throw(p.treeOf(name)))
}

// throw moves path out of the way at once and removes it in the background.
func (p *Pool) throw(path string) error {
	if !disk.Exists(path) {
		return nil
	}
	p.mu.Lock()
	p.serial++
	to := p.path(".trash", fmt.Sprintf("%d-%s", p.serial, strings.TrimLeft(filepath.Base(path), ".")))
	p.mu.Unlock()
	for i := 0; disk.Exists(to); i++ {
		to += "x"
	}
	if err := unmountAll(path); err != nil {
		return err
	}
	err := os.Rename(path, to)
	if errors.Is(err, syscall.EXDEV) { // the pool is on an overlay file system, as in a container
		return disk.RemoveAll(path)
	}
	if err != nil {
		return err
	}
	p.empty(to)
	return nil
}

// empty removes a directory of .trash in the background. A failure is only
// logged: the next Pool starts with the removal of old trash.
func (p *Pool) empty(path string) {
	p.trash.Go(func() {
		if err := disk.RemoveAll(path); err != nil {
			p.log.Warn("cannot remove an old checkout", "path", path, "error", err)
		}
	})
}

// Close waits until the trash is empty and lets go of the directory. Checkouts stay for
// the next Pool.
func (p *Pool) Close() error {
	p.mu.Lock()
	closed := p.closed
	p.closed = true
	p.mu.Unlock()
	if closed {
		return nil
	}
	p.trash.Wait()
	return p.lock.Close()
}

// Sweep retires the checkouts whose names keep does not want, parked or in use:
// the caller knows that nothing works in them any more. All are tried; the
// error joins those of single ones.
func (p *Pool) Sweep(keep func(name string) bool) error {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if _, err := git.ParseName(e.Name()); err != nil || keep(e.Name()) {
			continue
		}
		errs = append(errs, p.retire(e.Name()))
	}
	return errors.Join(errs...)
}

// retire keeps a finished checkout for re-use under a number instead of its
// name, or throws it away if the pool is full or it was not filled to its end.
func (p *Pool) retire(name string) error {
	p.claim(name)
	defer p.forget(name)
	if err := unmountAll(p.path(name)); err != nil {
		return err
	}
	if !disk.IsDir(p.path(name)) || !disk.Exists(p.path(".own", name, "index")) {
		return p.discard(name)
	}
	p.mu.Lock()
	full := p.trees() > p.max
	p.serial++
	n := fmt.Sprint(p.serial)
	p.mu.Unlock()
	if full {
		return p.discard(name)
	}
	// The tree first: repair throws away one of the two without the other.
	if err := os.Rename(p.path(name), p.path(".warm", n)); err != nil {
		return err
	}
	if err := os.Rename(p.path(".own", name), p.path(".own", warmPrefix+n)); err != nil {
		return err
	}
	p.mu.Lock()
	delete(p.parked, name)
	p.warm = append(p.warm, n)
	p.moveIndexed(name, warmPrefix+n)
	p.mu.Unlock()
	return nil
}

// indexedAt returns the commit whose tree the index of a checkout has; empty if that is not known.
func (p *Pool) indexedAt(name string) git.OID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.indexed[name]
}

// setIndexed keeps the commit whose tree the index of a checkout has now; empty
// if that is not known any more.
func (p *Pool) setIndexed(name string, at git.OID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at == "" {
		delete(p.indexed, name)
		return
	}
	p.indexed[name] = at
}

// moveIndexed notes that an index has another name in .own. The caller holds the lock.
func (p *Pool) moveIndexed(from, to string) {
	delete(p.indexed, to)
	if at, known := p.indexed[from]; known {
		p.indexed[to] = at
	}
	delete(p.indexed, from)
}
