package checkout

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's checksum
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/git"
)

// indexFile is the parsed index of a checkout. With it, one walk over the tree
// finds the files that changed and those that are not tracked; git needs two,
// and leaves repositories inside alone.
type indexFile struct {
	entries []indexEntry
	// written is the time of the index file. A file that is as young or younger
	// may have changed since without a trace in its stat fields.
	written unix.Timespec
}

// indexEntry is one tracked path as the index describes it. stat is zero for
// one that apply put there.
type indexEntry struct {
	path string
	mode uint32
	stat fileStat
}

// fileStat holds the stat fields that an index stores of a file, truncated to 32 bits as there.
type fileStat struct{ ctime, ctimeNanos, mtime, mtimeNanos, inode, uid, gid, size uint32 }

// errIndex is the error for an index of another version, with flags that our
// git does not set, or with a wrong checksum. The checkout is made anew then.
var errIndex = errors.New("not an index that can be read here")

// The layout of an index of version 2, in bytes; see gitformat-index(5).
const (
	indexHeader = 12
	entryHeader = 62     // before the path
	entryAlign  = 8      // the path ends in 1 to 8 NULs
	entryMarks  = 0xf000 // any flag that our git does not set
	gitlink     = 0o16   // a submodule, as the type of a mode
	modeType    = 12     // bits to the right of the type
	modeExec    = 0o100
)

// readIndex reads an index of version 2, the one that git writes unless told otherwise.
// Error: errIndex.
func readIndex(path string) (indexFile, error) {
	var x indexFile
	var st unix.Stat_t
	raw, err := os.ReadFile(path)
	if err == nil {
		err = unix.Lstat(path, &st)
	}
	if err != nil {
		return x, err
	}
	x.written = st.Mtim
	body := len(raw) - sha1.Size
	if body < indexHeader || string(raw[:8]) != "DIRC\x00\x00\x00\x02" {
		return x, errIndex
	}
	if sum := sha1.Sum(raw[:body]); !bytes.Equal(sum[:], raw[body:]) { //nolint:gosec // git's checksum
		return x, errIndex
	}
	count := int(binary.BigEndian.Uint32(raw[8:]))
	if count > body/entryHeader {
		return x, errIndex
	}
	x.entries = make([]indexEntry, 0, count)
	text := string(raw) // of which every path is a part
	for at := indexHeader; len(x.entries) < count; {
		e, size := parseEntry(raw[at:body], text[at:body])
		if size == 0 {
			return x, errIndex
		}
		x.entries = append(x.entries, e)
		at += size
	}
	return x, nil
}

// parseEntry parses the first entry of raw and returns its size in bytes, or 0 if it is malformed.
func parseEntry(raw []byte, text string) (indexEntry, int) {
	if len(raw) < entryHeader {
		return indexEntry{}, 0
	}
	field := func(n int) uint32 { return binary.BigEndian.Uint32(raw[4*n:]) }
	length := bytes.IndexByte(raw[entryHeader:], 0)
	size := (entryHeader + length + entryAlign) &^ (entryAlign - 1)
	if length <= 0 || size > len(raw) || binary.BigEndian.Uint16(raw[entryHeader-2:])&entryMarks != 0 {
		return indexEntry{}, 0
	}
	return indexEntry{
		path: text[entryHeader : entryHeader+length], mode: field(6),
		stat: fileStat{field(0), field(1), field(2), field(3), field(5), field(7), field(8), field(9)},
	}, size
}

// apply replaces the entries of changed paths. The new ones have no stat fields, so
// every file differs from them.
func (x *indexFile) apply(changes []git.RawChange) error {
	changed := make(map[string]bool, len(changes))
	for _, c := range changes {
		changed[c.Path] = true
	}
	x.entries = slices.DeleteFunc(x.entries, func(e indexEntry) bool { return changed[e.path] })
	for _, c := range changes {
		mode, err := strconv.ParseUint(c.NewMode, 8, 32)
		if err != nil {
			return fmt.Errorf("mode of %q: %w", c.Path, err)
		}
		if mode != 0 {
			x.entries = append(x.entries, indexEntry{path: c.Path, mode: uint32(mode)})
		}
	}
	return nil
}

// unchanged returns whether a file is as the entry describes it, and whether that is
// certain: a file as young as the index may have been written again within the same
// tick of the clock. It compares more fields than git does.
func (x *indexFile) unchanged(e *indexEntry, st *unix.Stat_t) (same, sure bool) {
	mode, want := uint64(st.Mode), uint64(e.mode)
	switch {
	case want>>modeType == gitlink:
		same = mode>>modeType == unix.S_IFDIR>>modeType
		return same, same
	case mode>>modeType != want>>modeType:
		return false, false
	case mode>>modeType == unix.S_IFREG>>modeType && (mode^want)&modeExec != 0:
		return false, false
	}
	now := fileStat{
		uint32(st.Ctim.Sec), uint32(st.Ctim.Nsec), uint32(st.Mtim.Sec), uint32(st.Mtim.Nsec),
		uint32(st.Ino), st.Uid, st.Gid, uint32(st.Size),
	}
	older := st.Mtim.Sec < x.written.Sec || st.Mtim.Sec == x.written.Sec && st.Mtim.Nsec < x.written.Nsec
	return e.stat == now, older
}
