package git

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
)

// objectReader reads one object after another: by itself where it can, and through one git cat-file, which is started
// when that is needed first.
type objectReader struct {
	store  *Store
	loose  []string        // object directories
	ctx    context.Context //nolint:containedctx // of the call that the reader lives in
	packs  packs
	opened bool // packs
	git    *batch
}

// batch is a running git cat-file --batch.
type batch struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

const maxCommit = 1 << 20 // bytes of one commit object

// readObjects reads from the store, and loose objects from more directories.
func (s *Store) readObjects(ctx context.Context, more ...string) *objectReader {
	return &objectReader{store: s, ctx: ctx, loose: append(more, s.objects())}
}

func (r *objectReader) start() error {
	cmd := r.store.plumb().prepare(r.ctx, []string{"cat-file", "--batch"})
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r.git = &batch{cmd: cmd, in: in, out: bufio.NewReader(out)}
	return nil
}

func (r *objectReader) close() {
	r.packs.close()
	if r.git == nil {
		return
	}
	_ = r.git.in.Close()
	_, _ = io.Copy(io.Discard, r.git.out)
	_ = r.git.cmd.Wait()
}

// read returns an object's content. Error: ErrNotFound, also when it is of another kind or larger than limit bytes.
func (r *objectReader) read(o OID, kind string, limit int) ([]byte, error) {
	if _, err := ParseOID(string(o)); err != nil {
		return nil, err
	}
	for _, dir := range r.loose {
		if raw, ok := readLoose(dir, o, kind, limit); ok {
			return raw, nil
		}
	}
	if !r.opened {
		r.packs, r.opened = openPacks(r.store.objects()), true
	}
	if raw, ok := r.packs.read(o, kind, limit); ok {
		return raw, nil
	}
	raw, err := r.ask(o, kind, limit)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind, o, err)
	}
	return raw, nil
}

// ask has git read an object, wherever it is.
func (r *objectReader) ask(o OID, kind string, limit int) ([]byte, error) {
	if r.git == nil {
		if err := r.start(); err != nil {
			return nil, err
		}
	}
	if _, err := fmt.Fprintln(r.git.in, o); err != nil {
		return nil, err
	}
	header, err := r.git.out.ReadString('\n')
	if err != nil {
		return nil, err
	}
	var name, is string
	var size int
	if _, err := fmt.Sscan(header, &name, &is, &size); err != nil || is != kind || size > limit {
		return nil, ErrNotFound
	}
	raw := make([]byte, size+1)
	if _, err := io.ReadFull(r.git.out, raw); err != nil {
		return nil, err
	}
	return raw[:size], nil
}

// commit reads one. Error: ErrNotFound, also when it is no commit.
func (r *objectReader) commit(o OID) (commitData, error) {
	raw, err := r.read(o, "commit", maxCommit)
	if err != nil {
		return commitData{}, err
	}
	return parseCommit(o, string(raw)), nil
}

// chain reads the commits base..head, oldest first, and makes sure that they form one line from base.
func (r *objectReader) chain(base, head OID) ([]commitData, error) {
	var chain []commitData
	for at := head; at != base; {
		c, err := r.commit(at)
		switch {
		case err != nil:
			return nil, err
		case len(c.parents) > 1:
			return nil, &WorkError{Fault: Merged, Detail: "commit " + at.Short() + " is a merge"}
		case len(c.parents) == 0:
			return nil, rewritten(base)
		case len(chain) == maxCommits:
			return nil, &WorkError{Fault: Oversized, Detail: fmt.Sprintf("more than %d commits since %s", maxCommits, base.Short())}
		}
		chain, at = append(chain, c), c.parents[0]
	}
	slices.Reverse(chain)
	return chain, nil
}
