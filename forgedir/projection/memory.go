package projection

import (
	"encoding/binary"
	"io/fs"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/internal/unpack"
)

// memory has the results of the look before, so that this one need not read
// thousands of files of which none has changed:
//
//   - the index, up to a place in it, by the digest of that part: what follows is read, and another index as a whole;
//   - of each file of an intent the version that it held, by its Stamp, as git's index does.
//
// A file can change once more with the same Stamp in the tick of the clock in which it
// was read. So a version is only noted of a file whose last change is before the look
// began, by the clock of the file system itself: whatever comes later has another Stamp.
//
// It is never needed: where it is missing, torn, of another version or about
// other files, all is read.
type memory struct {
	disk *disk.Disk
	// next is the cache that this look writes. It is begun before the first
	// file is read, and nil until then.
	next *disk.Cache
	// mute says that nothing can be written here.
	mute bool
	// changed says that there is something to write.
	changed bool

	// index is that of the last look, and sum the digest of its first index.read bytes.
	index *index
	sum   disk.Digest
	// held has the versions of files, by path.
	held map[string]held
}

// held is a version that a file holds for as long as it has a Stamp.
type held struct {
	stamp   disk.Stamp
	version disk.Digest
}

// newMemory returns a memory that knows nothing.
func newMemory(d *disk.Disk) *memory {
	x := newIndex(d)
	x.look = true
	return &memory{disk: d, index: x, held: map[string]held{}, sum: disk.DigestOf(nil)}
}

// recall returns the memory that the last look kept, or an empty one.
func recall(d *disk.Disk) *memory {
	if data, ok := d.ReadCache(layout.Looked); ok {
		if m := newMemory(d); m.decode(data) {
			return m
		}
	}
	return newMemory(d)
}

// begin is called before a file is read whose version may be noted.
func (m *memory) begin() {
	if m.next != nil || m.mute {
		return
	}
	next, err := m.disk.BeginCache(layout.Looked)
	m.next, m.mute = next, err != nil
}

// version returns the version that a file held when it was noted; false if it
// has changed since, as stat describes it.
func (m *memory) version(rel string, stat func(rel string) (fs.FileInfo, error)) (disk.Digest, bool) {
	h, known := m.held[rel]
	if !known {
		return disk.Digest{}, false
	}
	info, err := stat(rel)
	if err == nil {
		if s, ok := disk.StampOf(info); ok && s == h.stamp {
			return h.version, true
		}
	}
	delete(m.held, rel)
	return disk.Digest{}, false
}

// remember keeps the version of a file that was read since begin. Info
// describes the file from before it was read.
func (m *memory) remember(rel string, info fs.FileInfo, version disk.Digest) {
	s, ok := disk.StampOf(info)
	if ok && m.next != nil && s.Changed < m.next.Began {
		m.held[rel], m.changed = held{s, version}, true
	}
}

// readIndex returns the present index: nothing of it is read if it is the one
// of the last look, and only what follows if it begins as that one.
func (m *memory) readIndex() (*index, error) {
	if version, same := m.version(layout.Index, m.disk.Stat); same && version == m.sum {
		return m.index, nil
	}
	m.begin()
	data, info, err := m.disk.Read(layout.Index, disk.MaxOther)
	if disk.IgnoreMissing(err) != nil {
		return nil, err
	}
	if n := m.index.read; n > len(data) || disk.DigestOf(data[:n]) != m.sum {
		m.index = newMemory(m.disk).index
	}
	m.index.load(data[m.index.read:])
	m.sum, m.changed = disk.DigestOf(data[:m.index.read]), true
	if err == nil {
		m.remember(layout.Index, info, m.sum)
	}
	return m.index, nil
}

// keep writes the memory, if this look has added to it.
func (m *memory) keep(x *index) {
	if m.next == nil {
		return
	}
	if !m.changed {
		m.drop()
		return
	}
	_ = m.next.Put(m.encode(x)) // the next look reads all
	m.next = nil
}

// drop ends a look that keeps nothing.
func (m *memory) drop() {
	if m.next != nil {
		_ = m.next.Drop() // a start of a run removes it
		m.next = nil
	}
}

// memoryKind begins the cache. Another version of it has another text here.
const memoryKind = "pfl-forge looked 2\n"

// encode returns the content of the cache. Versions of files that the index
// does not know are left out.
func (m *memory) encode(x *index) []byte {
	b := append([]byte(memoryKind), m.sum[:]...)
	b = binary.AppendUvarint(b, uint64(x.read))
	b = binary.AppendUvarint(b, x.project)
	b = binary.AppendUvarint(b, uint64(len(x.seqs)))
	b = binary.AppendUvarint(b, uint64(len(x.files)))
	b = m.appendHeld(b, layout.Index)
	for id, seq := range x.seqs {
		b = appendText(b, string(id))
		b = binary.AppendUvarint(b, seq)
	}
	for rel, versions := range x.files {
		b = appendText(b, rel)
		b = binary.AppendUvarint(b, uint64(len(versions)))
		for i := range versions {
			b = append(b, versions[i][:]...)
		}
		b = m.appendHeld(b, rel)
	}
	return b
}

// appendText adds a text with its length.
func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// appendHeld adds the version that a file holds: 0 if that is not known, and
// otherwise 1 with its Stamp and digest.
func (m *memory) appendHeld(b []byte, rel string) []byte {
	h, known := m.held[rel]
	if !known {
		return append(b, 0)
	}
	b = append(b, 1)
	for _, n := range []uint64{uint64(h.stamp.Size), h.stamp.Inode, uint64(h.stamp.Modified), uint64(h.stamp.Changed)} {
		b = binary.AppendUvarint(b, n)
	}
	return append(b, h.version[:]...)
}

// decode is the reverse of encode. It reports whether data is such a content,
// to the last byte. All texts share the memory of one.
func (m *memory) decode(data []byte) bool {
	u := unpack.New(data)
	if u.Bytes(uint64(len(memoryKind))) != memoryKind {
		return false
	}
	m.sum = unpackDigest(u)
	m.index.read, m.index.project = int(u.Number()), u.Number()
	intents, files := u.Count(), u.Count()
	m.index.seqs, m.index.files, m.held = make(map[forge.IntentID]uint64, intents), make(map[string][]disk.Digest, files), make(map[string]held, files+1)
	m.unpackHeld(u, layout.Index)
	for range intents {
		id := forge.IntentID(u.Text())
		if m.index.seqs[id] = u.Number(); u.Bad() {
			return false
		}
	}
	for range files {
		rel := u.Text()
		versions := make([]disk.Digest, u.Count())
		for i := range versions {
			versions[i] = unpackDigest(u)
		}
		m.index.files[rel] = versions
		if m.unpackHeld(u, rel); u.Bad() {
			return false
		}
	}
	return !u.Bad() && u.Left() == 0 && m.index.read >= 0
}

// unpackHeld is the reverse of appendHeld.
func (m *memory) unpackHeld(u *unpack.Reader, rel string) {
	if known := u.Bytes(1); u.Bad() || known == "\x00" {
		return
	}
	s := disk.Stamp{Size: int64(u.Number()), Inode: u.Number(), Modified: int64(u.Number()), Changed: int64(u.Number())}
	m.held[rel] = held{s, unpackDigest(u)}
}

// unpackDigest returns the next digest.
func unpackDigest(u *unpack.Reader) (d disk.Digest) {
	copy(d[:], u.Bytes(uint64(len(d))))
	return d
}
