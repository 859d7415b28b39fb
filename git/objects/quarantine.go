package objects

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// Limits bound the objects that one attempt may bring in. Zero fields have the
// defaults in brackets. Above one of them the attempt's work is refused as
// Oversized.
type Limits struct {
	// Bytes bounds all new objects together, as they are stored [256 MiB].
	Bytes int64
	// Blob bounds one file in bytes [32 MiB].
	Blob int64
	// Objects bounds the number of new objects, and of files that are not
	// committed [100,000].
	Objects int
}

// OrDefault returns the limits with the defaults for what is zero.
func (l Limits) OrDefault() Limits {
	if l.Bytes <= 0 {
		l.Bytes = 256 << 20
	}
	if l.Blob <= 0 {
		l.Blob = 32 << 20
	}
	if l.Objects <= 0 {
		l.Objects = 100_000
	}
	return l
}

// looseLimit is the largest number of imported objects that are stored as loose
// objects; more are stored as one pack.
const looseLimit = 200

// Import brings an agent's commit, with everything that it needs and the database
// lacks, into the database; have is a commit that is there. copyObjects copies the
// agent's object files to a directory of ours. They are packed by a git that sees
// nothing else of the agent's, and the pack is unpacked with the checks that a server
// makes of a push. Nothing is in the database before all of it is checked. Errors:
// *WorkError (Damaged, Oversized).
func (db *Database) Import(ctx context.Context, commit, have git.OID, limits Limits, copyObjects func(to string) error) error {
	dir, err := os.MkdirTemp(db.hub.quarantine(), "import-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := copyObjects(dir); err != nil {
		return err
	}
	pack, err := os.Create(filepath.Join(dir, "import.pack"))
	if err != nil {
		return err
	}
	defer pack.Close()
	c := db.ObjectCommand()
	c.Env = append(c.Env, alternates(dir))
	c.Stdin = strings.NewReader(fmt.Sprintf("%s\n^%s\n", commit, have))
	c.Stdout = pack
	if _, err := git.Run(ctx, c, "pack-objects", "--revs", "--stdout", "-q", "--delta-base-offset"); err != nil {
		return brokenObjects(ctx, err)
	}
	return db.unpack(ctx, pack, filepath.Join(dir, "checked"), limits)
}

// unpack brings the objects of a pack into the database, with git's checks of each. A few become
// loose objects, many stay one pack, which is made in a directory aside: whoever holds the lock of
// a clone removes what looks like the pack of a fetch that has not ended, and no lock is held here.
func (db *Database) unpack(ctx context.Context, pack *os.File, aside string, limits Limits) error {
	var header [12]byte
	if _, err := pack.ReadAt(header[:], 0); err != nil {
		return err
	}
	objects := binary.BigEndian.Uint32(header[8:])
	if objects > uint32(limits.Objects) {
		return &git.WorkError{Fault: git.Oversized, Detail: fmt.Sprintf("%d new objects, more than %d", objects, limits.Objects)}
	}
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return err
	}
	args := []string{"unpack-objects", "-q", "--strict"}
	c := db.ObjectCommand()
	if objects > looseLimit {
		if err := os.MkdirAll(filepath.Join(aside, "pack"), 0o700); err != nil {
			return err
		}
		args = []string{"index-pack", "--stdin", "--strict"}
		c.Env = []string{"GIT_OBJECT_DIRECTORY=" + aside, alternates(append(slices.Clone(db.more), db.ObjectDir())...)}
	}
	args = append(args, "--max-input-size="+strconv.FormatInt(limits.Bytes, 10))
	c.Stdin = pack
	if _, err := git.Run(ctx, c, args...); err != nil {
		return brokenObjects(ctx, err)
	}
	if objects <= looseLimit {
		return nil
	}
	return movePacks(filepath.Join(aside, "pack"), filepath.Join(db.ObjectDir(), "pack"))
}

// movePacks moves the packs of a directory. The index of each comes last: a
// reader looks for the pack of an index.
func movePacks(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o777); err != nil {
		return err
	}
	for _, kind := range []string{".pack", ".rev", ".idx"} {
		for _, e := range entries {
			if filepath.Ext(e.Name()) != kind {
				continue
			}
			if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// brokenObjects returns a *WorkError if the agent's objects made git fail, and
// err if the machine did: a full disk is no fault of the work.
func brokenObjects(ctx context.Context, err error) error {
	if ctx.Err() != nil || git.MachineFailed(err) {
		return err
	}
	detail := string(bytes.TrimSpace([]byte(git.Stderr(err))))
	if strings.Contains(detail, "exceeds maximum") {
		return &git.WorkError{Fault: git.Oversized, Detail: detail}
	}
	return &git.WorkError{Fault: git.Damaged, Detail: "its objects do not pass the checks: " + detail}
}

// alternates returns the environment variable that has a command read objects
// from more directories, as KEY=VALUE.
func alternates(dirs ...string) string {
	quoted := make([]string, len(dirs))
	for i, d := range dirs {
		quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(d) + `"` // so that a colon does not split it
	}
	return "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + strings.Join(quoted, ":")
}
