package objects

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's object names
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/adler32"
	"os"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
)

// Commit is a parsed commit object. Message and identity lines are kept byte by
// byte, so that a copy with another parent differs in nothing else. Headers
// that are not named here, such as a signature, are dropped.
type Commit struct {
	// OID is the object's name; WriteCommit ignores it.
	OID     git.OID
	Tree    git.OID
	Parents []git.OID
	// Author and Committer are identity lines: "Name <mail> seconds zone".
	Author    string
	Committer string
	// encoding is the header that names the message's encoding; empty for
	// UTF-8.
	encoding string
	// signature is the header gpgsig, with line ends; empty for none. It is of
	// the object without it.
	signature string
	Message   string
}

// parseCommit parses the content of a commit object. git wrote or checked it,
// so nothing is refused.
func parseCommit(o git.OID, raw string) Commit {
	d := Commit{OID: o}
	headers, message, _ := strings.Cut(raw, "\n\n")
	d.Message = message
	for line := range strings.SplitSeq(headers, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "tree":
			d.Tree = git.OID(value)
		case "parent":
			d.Parents = append(d.Parents, git.OID(value))
		case "author":
			d.Author = value
		case "committer":
			d.Committer = value
		case "encoding":
			d.encoding = value
		}
	}
	return d
}

// when returns the "seconds zone" part of an identity line; the beginning of
// time if it has none.
func when(identity string) string {
	if i := strings.LastIndexByte(identity, '>'); i >= 0 {
		return strings.TrimSpace(identity[i+1:])
	}
	return "0 +0000"
}

// encode returns the content of the commit object.
func (d Commit) encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", d.Tree)
	for _, p := range d.Parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %s\ncommitter %s\n", d.Author, d.Committer)
	if d.encoding != "" {
		fmt.Fprintf(&b, "encoding %s\n", d.encoding)
	}
	if d.signature != "" {
		fmt.Fprintf(&b, "gpgsig %s\n", strings.ReplaceAll(strings.TrimSuffix(d.signature, "\n"), "\n", "\n "))
	}
	fmt.Fprintf(&b, "\n%s", d.Message)
	return b.Bytes()
}

// WriteCommit stores a commit in an object directory, and returns its name. A
// durable one is on the disk when it returns. No ref names it yet: the caller
// keeps it, or git removes it some day.
func WriteCommit(objects string, d Commit, durable bool) (git.OID, error) {
	return writeObject(objects, "commit", d.encode(), durable)
}

// writeObject stores a loose object in an object directory, unless it is there,
// and returns its name. A durable one is on the disk when it returns; others
// are for directories that are not read before flushLoose.
func writeObject(objects, kind string, body []byte, durable bool) (git.OID, error) {
	raw := append(fmt.Appendf(nil, "%s %d\x00", kind, len(body)), body...)
	o := nameOf(raw)
	path := looseFile(objects, o)
	if disk.Exists(path) {
		return o, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return "", err
	}
	if !durable { // the directory is not read before all of it is there
		return o, os.WriteFile(path, deflate(raw), 0o444)
	}
	if err := disk.WriteDurable(path, deflate(raw)); err != nil {
		return "", err
	}
	return o, os.Chmod(path, 0o444)
}

// deflate encodes in the zlib format without compressing. Object names, of which a tree
// consists, do not compress, git packs all objects some day, and setting up a
// compressor takes longer than the rest of a small commit.
func deflate(raw []byte) []byte {
	const most = 1<<16 - 1 // bytes of one block
	z := []byte{0x78, 0x01}
	for rest := raw; ; {
		block := rest[:min(len(rest), most)]
		rest = rest[len(block):]
		last := byte(0)
		if len(rest) == 0 {
			last = 1
		}
		z = append(z, last)
		z = binary.LittleEndian.AppendUint16(z, uint16(len(block)))
		z = binary.LittleEndian.AppendUint16(z, ^uint16(len(block)))
		if z = append(z, block...); last == 1 {
			return binary.BigEndian.AppendUint32(z, adler32.Checksum(raw))
		}
	}
}

// looseFile returns the path of a loose object.
func looseFile(objects string, o git.OID) string {
	return filepath.Join(objects, string(o[:2]), string(o[2:]))
}

// nameOf returns the name of an object with its header.
func nameOf(raw []byte) git.OID {
	sum := sha1.Sum(raw) //nolint:gosec // git's object names
	return git.OID(hex.EncodeToString(sum[:]))
}
