package git

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// packs reads objects out of packs, which saves the start of a git. It reads what is usual and leaves everything else
// to git: what it returns has the name that was asked for.
type packs []*pack

// pack is a pack with an index of version 2.
type pack struct {
	index, data *os.File
	fan         [256]uint32 // how many names begin with at most this byte
}

const (
	packHeader = 8 + 4*256 // bytes of an index before the names
	nameSize   = 20
	maxDeltas  = 64 // of one object; git makes at most 50
)

// The kinds of a pack's entries.
const (
	ofsDelta = 6
	refDelta = 7
)

var packKinds = map[int]string{1: "commit", 2: "tree", 3: "blob", 4: "tag"}

// openPacks opens those of an object directory. One that cannot be read is left out.
func openPacks(objects string) packs {
	dir := filepath.Join(objects, "pack")
	entries, _ := os.ReadDir(dir)
	var all packs
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".idx"); ok {
			if p := openPack(filepath.Join(dir, name)); p != nil {
				all = append(all, p)
			}
		}
	}
	return all
}

func openPack(path string) *pack {
	p := &pack{}
	var err error
	if p.index, err = os.Open(path + ".idx"); err != nil {
		return nil
	}
	var head [packHeader]byte
	_, err = p.index.ReadAt(head[:], 0)
	for i := range p.fan {
		p.fan[i] = binary.BigEndian.Uint32(head[8+4*i:])
	}
	if info, e := p.index.Stat(); err == nil && e == nil && p.plausible(head[:8], info.Size()) {
		p.data, err = os.Open(path + ".pack")
	} else {
		err = ErrNotFound
	}
	if err != nil {
		_ = p.index.Close()
		return nil
	}
	return p
}

// plausible says whether an index is of version 2 and large enough for what it says it holds.
func (p *pack) plausible(magic []byte, size int64) bool {
	return string(magic) == "\xfftOc\x00\x00\x00\x02" && size >= packHeader+int64(p.fan[255])*(nameSize+8)
}

func (all packs) close() {
	for _, p := range all {
		_ = p.index.Close()
		_ = p.data.Close()
	}
}

// read returns an object's content, or false for git to have a look.
func (all packs) read(o OID, kind string, limit int) ([]byte, bool) {
	name, err := hex.DecodeString(string(o))
	if err != nil || len(name) != nameSize {
		return nil, false
	}
	for _, p := range all {
		at, ok := p.find(name)
		if !ok {
			continue
		}
		is, body, ok := p.entry(at, limit, 0)
		if !ok || packKinds[is] != kind || nameOf(append(fmt.Appendf(nil, "%s %d\x00", kind, len(body)), body...)) != o {
			return nil, false
		}
		return body, true
	}
	return nil, false
}

// find returns where in the pack an object is.
func (p *pack) find(name []byte) (int64, bool) {
	first, end := uint32(0), p.fan[name[0]]
	if name[0] > 0 {
		first = p.fan[name[0]-1]
	}
	total := p.fan[255]
	if first > end || end > total {
		return 0, false
	}
	names := make([]byte, int(end-first)*nameSize)
	if _, err := p.index.ReadAt(names, packHeader+int64(first)*nameSize); err != nil {
		return 0, false
	}
	low, high := 0, int(end-first)
	for low < high {
		mid := (low + high) / 2
		switch bytes.Compare(names[mid*nameSize:(mid+1)*nameSize], name) {
		case 0:
			return p.offset(int64(first)+int64(mid), int64(total))
		case -1:
			low = mid + 1
		default:
			high = mid
		}
	}
	return 0, false
}

// offset reads the place of the nth object; after the names and their checksums there is a table of them, with a
// second one for packs above 2 GiB.
func (p *pack) offset(n, total int64) (int64, bool) {
	var b [8]byte
	table := packHeader + total*(nameSize+4)
	if _, err := p.index.ReadAt(b[:4], table+4*n); err != nil {
		return 0, false
	}
	at := binary.BigEndian.Uint32(b[:4])
	if at>>31 == 0 {
		return int64(at), true
	}
	if _, err := p.index.ReadAt(b[:], table+4*total+8*int64(at&^(1<<31))); err != nil {
		return 0, false
	}
	far := binary.BigEndian.Uint64(b[:])
	return int64(far), far < 1<<62
}

// entry reads one entry, at most limit bytes of content, and applies it to what it builds on.
func (p *pack) entry(at int64, limit, deltas int) (kind int, body []byte, ok bool) {
	r := bufio.NewReaderSize(io.NewSectionReader(p.data, at, 1<<62), 4096)
	kind, size, ok := packedHeader(r)
	if !ok || size > limit || deltas > maxDeltas {
		return 0, nil, false
	}
	var base int64
	switch kind {
	case ofsDelta:
		back, ok := backwards(r)
		if !ok || back <= 0 || back > at {
			return 0, nil, false
		}
		base = at - back
	case refDelta:
		var name [nameSize]byte
		if _, err := io.ReadFull(r, name[:]); err != nil {
			return 0, nil, false
		}
		if base, ok = p.find(name[:]); !ok {
			return 0, nil, false
		}
	}
	if body, ok = inflate(r, size); !ok || kind != ofsDelta && kind != refDelta {
		return kind, body, ok
	}
	kind, from, ok := p.entry(base, limit, deltas+1)
	if !ok {
		return 0, nil, false
	}
	body, ok = applyDelta(from, body, limit)
	return kind, body, ok
}

// packedHeader reads the kind of an entry and how many bytes it inflates to.
func packedHeader(r io.ByteReader) (kind, size int, ok bool) {
	b, err := r.ReadByte()
	kind, size = int(b>>4&7), int(b&15)
	for shift := 4; err == nil && b&0x80 != 0 && shift < 32; shift += 7 {
		b, err = r.ReadByte()
		size |= int(b&0x7f) << shift
	}
	return kind, size, err == nil && b&0x80 == 0
}

// backwards reads how far before a delta its base is.
func backwards(r io.ByteReader) (int64, bool) {
	b, err := r.ReadByte()
	n := int64(b & 0x7f)
	for err == nil && b&0x80 != 0 && n < 1<<50 {
		b, err = r.ReadByte()
		n = (n+1)<<7 | int64(b&0x7f)
	}
	return n, err == nil && b&0x80 == 0
}

func inflate(r io.Reader, size int) ([]byte, bool) {
	z, err := zlib.NewReader(r)
	if err != nil {
		return nil, false
	}
	body := make([]byte, size)
	_, err = io.ReadFull(z, body)
	return body, err == nil
}

// applyDelta makes an object of its base and what is different.
func applyDelta(base, delta []byte, limit int) ([]byte, bool) {
	r := bytes.NewReader(delta)
	from, err := binary.ReadUvarint(r)
	to, e := binary.ReadUvarint(r)
	if err != nil || e != nil || from != uint64(len(base)) || to > uint64(limit) {
		return nil, false
	}
	body := make([]byte, 0, to)
	for {
		op, err := r.ReadByte()
		switch {
		case err != nil:
			return body, uint64(len(body)) == to
		case op&0x80 != 0:
			at, n := copyOf(op, r)
			if n == 0 {
				n = 0x10000
			}
			if at+n > len(base) || len(body)+n > int(to) {
				return nil, false
			}
			body = append(body, base[at:at+n]...)
		default:
			insert := make([]byte, op)
			if _, err := io.ReadFull(r, insert); err != nil || op == 0 || len(body)+int(op) > int(to) {
				return nil, false
			}
			body = append(body, insert...)
		}
	}
}

// copyOf reads the place and the length of what is copied: those of their bytes that are not 0, as op says. What is
// missing at the end reads as 0; then the result has not the right size, or name.
func copyOf(op byte, r io.ByteReader) (at, n int) {
	for i := range 7 {
		if op>>i&1 == 0 {
			continue
		}
		b, _ := r.ReadByte()
		if i < 4 {
			at |= int(b) << (8 * i)
		} else {
			n |= int(b) << (8 * (i - 4))
		}
	}
	return at, n
}
