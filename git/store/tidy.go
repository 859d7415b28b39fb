package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

const (
	// fetchesBetween is how many fetches there are from one look at what they left to the next.
	fetchesBetween = 32
	// manyPacks, manyLoose and manyRefs are how many packs, loose objects and
	// files of refs are too many.
	manyPacks, manyLoose, manyRefs = 30, 2000, 300
	// fanOut is how many folders git spreads loose objects over, evenly: one is counted for all.
	fanOut = 256
)

// tidy packs the packs and refs that fetches and pushes leave behind in a clone, at
// every so many fetches: with its checks of every object git makes a pack of each fetch,
// and a file of each ref, and every later process of git looks through all of them. It
// removes no object, so a reader meanwhile finds each, and it is no reason for a fetch
// to fail: an Observer is told. The caller holds the lock of the clone; git inherits it.
func tidy(ctx context.Context, s *Store, hold []*os.File) {
	if s.fetches++; s.fetches%fetchesBetween != 1 || s.hasRefTable() {
		return
	}
	dropReceived(s.Repository) // of a process that died
	refs, objects := untidy(s)
	if !refs && !objects {
		return
	}
	ctx, end := git.Begin(ctx, git.OpTidy)
	c := git.Command{Dir: s.Dir(), GitDir: s.Dir(), Hold: hold}
	var errs []error
	if refs {
		_, err := git.Run(ctx, c, "pack-refs", "--all")
		errs = append(errs, err)
	}
	if objects {
		// Of all packs only the small ones are read: the history of a large
		// repository is not written again.
		_, err := git.Run(ctx, c, "repack", "-q", "-d", "-l", "--geometric=2", "--no-write-bitmap-index")
		errs = append(errs, err)
	}
	end(errors.Join(errs...))
}

// untidy reports whether there are too many files of refs, and too many packs or loose objects.
func untidy(s *Store) (refs, objects bool) {
	packs := 0
	for _, e := range entries(filepath.Join(s.ObjectDir(), "pack")) {
		if strings.HasSuffix(e.Name(), ".pack") {
			packs++
		}
	}
	loose := fanOut * len(entries(filepath.Join(s.ObjectDir(), "17")))
	files := 0
	_ = filepath.WalkDir(filepath.Join(s.Dir(), "refs"), func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files++
		}
		return nil // a file that is deleted meanwhile does not count
	})
	return files > manyRefs, packs > manyPacks || loose > manyLoose
}

// entries returns the entries of a folder; none if it cannot be read.
func entries(dir string) []os.DirEntry {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	return list
}
