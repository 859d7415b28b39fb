package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
)

// Reader reads objects through running git processes of the store, and, for
// directories that those do not see, through one of its own. It serves one call
// and is not safe for concurrent use.
type Reader struct {
	db  *Database
	ctx context.Context //nolint:containedctx // of the call that the reader lives in
	// more are object directories beside the store's, such as that of a running
	// rebase.
	more []string
	// own is the process that sees more as well; nil until it is needed.
	own *catFile
}

const (
	maxCommit = 1 << 20 // bytes of one commit object
	maxIdle   = 4       // processes of a store that wait for the next call
	idleTime  = 10 * time.Second
)

// NewReader returns a reader of the database and of more object directories, for one
// call. The caller closes it.
func (db *Database) NewReader(ctx context.Context, more ...string) *Reader {
	return &Reader{db: db, ctx: ctx, more: more}
}

// Close ends the reader and the process of its own, if it has one.
func (r *Reader) Close() {
	if r.own != nil {
		r.own.close()
	}
}

// read returns an object's content. Errors: ErrNotFound, also when it is of another
// kind; ErrTooLarge beside it when it is larger than limit bytes.
func (r *Reader) read(o git.OID, kind string, limit int) (raw []byte, err error) {
	if err := r.ask(o, func(c *catFile) (err error) {
		raw, err = c.read(o, kind, limit)
		return err
	}); err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind, o, err)
	}
	return raw, nil
}

// size returns the bytes of an object's content, which is not read. Error: ErrNotFound.
func (r *Reader) size(o git.OID) (n int64, err error) {
	if err := r.ask(o, func(c *catFile) (err error) {
		n, err = c.size(o)
		return err
	}); err != nil {
		return 0, fmt.Errorf("size of %s: %w", o, err)
	}
	return n, nil
}

// ask puts a question about an object to a process of the store, and to that of
// this call if the store does not have it.
func (r *Reader) ask(o git.OID, question func(*catFile) error) error {
	if _, err := git.ParseOID(string(o)); err != nil {
		return err
	}
	err := r.shared(question)
	if errors.Is(err, git.ErrNotFound) && len(r.more) > 0 {
		return r.beside(question)
	}
	return err
}

// shared asks a process of the store. One that had ended while it was idle is
// replaced, once for each that was idle; a new one that fails is an error.
func (r *Reader) shared(question func(*catFile) error) error {
	for {
		c, used, err := r.db.readers.take(r.db)
		if err != nil {
			return err
		}
		err = c.during(r.ctx, question)
		if !c.broken {
			r.db.readers.give(c)
			return err
		}
		c.close()
		if !used || r.ctx.Err() != nil || errors.Is(err, git.ErrTooLarge) {
			return err
		}
		// It had ended while it was idle: ask another one.
	}
}

// beside asks the process of this call.
func (r *Reader) beside(question func(*catFile) error) error {
	if r.own == nil || r.own.broken {
		r.Close()
		c := r.db.ObjectCommand()
		c.Env = append(c.Env, alternates(r.more...))
		var err error
		if r.own, err = startCatFile(c); err != nil {
			return err
		}
	}
	return r.own.during(r.ctx, question)
}

// Commit returns a parsed commit. Error: ErrNotFound, also when the object is
// no commit.
func (r *Reader) Commit(o git.OID) (Commit, error) {
	raw, err := r.read(o, "commit", maxCommit)
	if err != nil {
		return Commit{}, err
	}
	return parseCommit(o, string(raw)), nil
}

// Chain returns the commits base..head, the oldest first, and makes sure that
// they form one line from base. Errors: *WorkError (Merged, Oversized,
// Rewritten when base is not in it); ErrNotFound. It is empty when base is
// head.
func (r *Reader) Chain(base, head git.OID) ([]Commit, error) {
	var chain []Commit
	for at := head; at != base; {
		c, err := r.Commit(at)
		switch {
		case err != nil:
			return nil, err
		case len(c.Parents) > 1:
			return nil, &git.WorkError{Fault: git.Merged, Detail: "commit " + at.Short() + " is a merge"}
		case len(c.Parents) == 0:
			return nil, rewritten(base)
		case len(chain) == maxCommits:
			return nil, &git.WorkError{Fault: git.Oversized, Detail: fmt.Sprintf("more than %d commits since %s", maxCommits, base.Short())}
		}
		chain, at = append(chain, c), c.Parents[0]
	}
	slices.Reverse(chain)
	return chain, nil
}

// catFile is a running git cat-file --batch-command. It reads from the object directory
// as it is at the time of the question, also objects and packs that came after
// its start. One caller at a time asks it.
type catFile struct {
	git *git.Process
	// broken says that question and answer do not match any more: it has to be
	// closed.
	broken bool
}

// startCatFile starts a process that lives until it is closed, or until this process ends.
func startCatFile(c git.Command) (*catFile, error) {
	c.Dir = "/" // while it waits, it must not keep the repository's file system busy
	p, err := c.Start(context.Background(), "cat-file", "--batch-command")
	if err != nil {
		return nil, err
	}
	return &catFile{git: p}, nil
}

// close ends the process, which ends by itself when it gets no more questions.
func (c *catFile) close() {
	if c.broken { // it may be in the middle of an answer
		c.git.Kill()
	}
	_ = c.git.Wait()
}

// during asks a question, and kills the process if the context ends before the answer.
func (c *catFile) during(ctx context.Context, question func(*catFile) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	done := context.AfterFunc(ctx, func() { c.git.Kill() })
	err := question(c)
	if !done() {
		c.broken = true
		return context.Cause(ctx)
	}
	return err
}

// read returns an object's content. Errors: ErrNotFound, also when it is of another
// kind; ErrTooLarge beside it when it is larger than limit bytes.
func (c *catFile) read(o git.OID, kind string, limit int) ([]byte, error) {
	is, size, err := c.ask("contents", o)
	if err != nil {
		return nil, err
	}
	if size > int64(limit) {
		return nil, fmt.Errorf("%w: %w", git.ErrNotFound, git.ErrTooLarge) // and the content is never read
	}
	raw := make([]byte, size+1)
	if _, err := io.ReadFull(c.git.Out, raw); err != nil {
		return nil, err
	}
	c.broken = false
	if is != kind {
		return nil, git.ErrNotFound
	}
	return raw[:size], nil
}

// size returns the bytes of an object's content. Error: ErrNotFound.
func (c *catFile) size(o git.OID) (int64, error) {
	_, size, err := c.ask("info", o)
	if err != nil {
		return 0, err
	}
	c.broken = false
	return size, nil
}

// ask sends one question and reads the first line of the answer: the object's
// kind and size. broken is set until the answer was read, so that a process
// that was killed in between is not asked again.
func (c *catFile) ask(question string, o git.OID) (kind string, size int64, err error) {
	c.broken = true
	if _, err := io.WriteString(c.git.In, question+" "+string(o)+"\n"); err != nil {
		return "", 0, err
	}
	header, err := c.git.Out.ReadString('\n')
	if err != nil {
		return "", 0, err
	}
	var name string
	if _, err := fmt.Sscan(header, &name, &kind, &size); err != nil { // "<name> missing"
		c.broken = false
		return "", 0, git.ErrNotFound
	}
	return kind, size, nil
}

// catFiles are the processes of a store that wait for the next call. They end
// after ten seconds without questions. Starting git takes longer than most
// reads.
type catFiles struct {
	mu   sync.Mutex
	idle []*catFile
	// timer ends the idle ones; nil before the first is given back.
	timer *time.Timer
}

// take returns a process that is asked by this caller only, and whether it was used before.
func (p *catFiles) take(db *Database) (c *catFile, used bool, err error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		c = p.idle[n-1]
		p.idle = p.idle[:n-1]
	}
	p.mu.Unlock()
	if c != nil {
		return c, true, nil
	}
	c, err = startCatFile(db.ObjectCommand())
	return c, false, err
}

// give returns a process to those that wait.
func (p *catFiles) give(c *catFile) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == maxIdle {
		go c.close()
		return
	}
	p.idle = append(p.idle, c)
	if p.timer == nil {
		p.timer = time.AfterFunc(idleTime, p.end)
	}
	p.timer.Reset(idleTime)
}

// end closes the processes that wait.
func (p *catFiles) end() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
}
