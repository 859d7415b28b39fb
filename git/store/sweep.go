package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

const (
	// refsAtOnce is how many refs one push deletes: their names are its arguments.
	refsAtOnce = 500
	// sweepTries is how often Sweep begins anew when another process deletes at the same time.
	sweepTries = 3
)

// Hidden maps each intent to its hidden refs: those of kept commits, of merges, and of
// its tasks' heads.
type Hidden map[git.Name][]string

// HiddenRefs returns the hidden refs of all intents: in a distributed store those at
// the origin, as it is now.
func (s *Store) HiddenRefs(ctx context.Context) (Hidden, error) {
	if s.origin == nil {
		return s.HiddenHere(ctx)
	}
	out, err := s.origin.remote(ctx, git.OpList, "-q", "--refs", "--", s.origin.url, "refs/forge/*")
	if err != nil {
		return nil, err
	}
	return parseHidden(out), nil
}

// HiddenHere returns the hidden refs of the repository on this machine, which in a
// distributed store is a clone.
func (s *Store) HiddenHere(ctx context.Context) (Hidden, error) {
	out, err := s.Git(ctx, "for-each-ref", "--format=%(objectname)%09%(refname)", "refs/forge/")
	if err != nil {
		return nil, err
	}
	return parseHidden(out), nil
}

// parseHidden reads lines of an object's name, a tab and a ref.
func parseHidden(lines []byte) Hidden {
	all := Hidden{}
	for line := range strings.Lines(string(lines)) {
		_, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if intent, ok := intentOf(ref); ok {
			all[intent] = append(all[intent], ref)
		}
	}
	return all
}

// intentOf returns the intent of a hidden ref. A task's name is its intent's name and a number.
func intentOf(ref string) (git.Name, bool) {
	of, ok := strings.CutPrefix(ref, "refs/forge/")
	if task, head := strings.CutPrefix(ref, headsPrefix); head {
		number := strings.LastIndexByte(task, '-')
		if number < 0 || strings.Trim(task[number+1:], "0123456789") != "" {
			return "", false
		}
		of = task[:number]
	} else {
		of, _, ok = strings.Cut(of, "/")
	}
	name, err := git.ParseName(of)
	return name, ok && err == nil
}

// Sweep deletes every hidden ref of some intents, at the origin and here. When it is
// cut off, or runs twice at once, some may be left; the next call deletes those.
// Deletions that an origin forbids are an error.
func (s *Store) Sweep(ctx context.Context, intents ...git.Name) error {
	if s.origin != nil {
		if err := s.sweepOrigin(ctx, intents); err != nil {
			return err
		}
	}
	return s.SweepHere(ctx, intents...)
}

// sweepOrigin deletes at the origin until a listing shows no ref of the
// intents. A push is refused as a whole if one of its refs went meanwhile, so
// it is repeated.
func (s *Store) sweepOrigin(ctx context.Context, intents []git.Name) error {
	var refused error
	for tries := 0; ; tries++ {
		all, err := s.HiddenRefs(ctx)
		if err != nil {
			return err
		}
		refs := all.of(intents)
		if len(refs) == 0 {
			return nil
		}
		if tries == sweepTries {
			return cmp.Or(refused, errors.New("delete refs at the origin: they are there again"))
		}
		refused = nil
		for some := range slices.Chunk(refs, refsAtOnce) {
			refused = errors.Join(refused, s.origin.remove(ctx, some))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// SweepHere is Sweep without the origin: it removes what other replicas deleted
// there from this clone.
func (s *Store) SweepHere(ctx context.Context, intents ...git.Name) error {
	return s.Locked(ctx, func(hold []*os.File) error {
		all, err := s.HiddenHere(ctx)
		if err != nil {
			return err
		}
		var in bytes.Buffer
		for _, ref := range all.of(intents) {
			fmt.Fprintf(&in, "delete %s\n", ref)
		}
		return s.updateRefs(ctx, &in, hold)
	})
}

// of returns the refs of some intents.
func (h Hidden) of(intents []git.Name) []string {
	var refs []string
	for _, name := range intents {
		refs = append(refs, h[name]...)
	}
	return refs
}
