package git

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
)

// commitReader is a git cat-file that answers one commit after another, so that following parents takes one
// process and no more.
type commitReader struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	cancel context.CancelFunc
}

const maxCommit = 1 << 20 // bytes of one commit object

func (s *Store) readCommits(ctx context.Context) (*commitReader, error) {
	ctx, cancel := context.WithCancel(ctx)
	r := &commitReader{cmd: s.plumb().prepare(ctx, []string{"cat-file", "--batch"}), cancel: cancel}
	in, err := r.cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	r.in, r.out = in, bufio.NewReader(out)
	if err := r.cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	return r, nil
}

func (r *commitReader) close() {
	_ = r.in.Close()
	_, _ = io.Copy(io.Discard, r.out)
	_ = r.cmd.Wait()
	r.cancel()
}

// commit reads one. Error: ErrNotFound, also when it is no commit.
func (r *commitReader) commit(o OID) (commitData, error) {
	if _, err := ParseOID(string(o)); err != nil {
		return commitData{}, err
	}
	if _, err := fmt.Fprintln(r.in, o); err != nil {
		return commitData{}, fmt.Errorf("commit %s: %w", o, err)
	}
	header, err := r.out.ReadString('\n')
	if err != nil {
		return commitData{}, fmt.Errorf("commit %s: %w", o, err)
	}
	var name, kind string
	var size int
	if _, err := fmt.Sscan(header, &name, &kind, &size); err != nil || kind != "commit" || size > maxCommit {
		return commitData{}, fmt.Errorf("commit %s: %w", o, ErrNotFound)
	}
	raw := make([]byte, size+1)
	if _, err := io.ReadFull(r.out, raw); err != nil {
		return commitData{}, fmt.Errorf("commit %s: %w", o, err)
	}
	return parseCommit(o, string(raw[:size])), nil
}

// chain reads the commits base..head, oldest first, and makes sure that they form one line from base.
func (r *commitReader) chain(base, head OID) ([]commitData, error) {
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
