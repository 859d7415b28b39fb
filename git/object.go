package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's object names
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// commitData is a commit object taken apart. Message and headers are kept byte by byte.
type commitData struct {
	oid       OID
	tree      OID
	parents   []OID
	author    string // "Name <mail> seconds zone"
	committer string
	encoding  string // the encoding header, empty for UTF-8
	message   string
}

func parseCommit(o OID, raw string) commitData {
	d := commitData{oid: o}
	headers, message, _ := strings.Cut(raw, "\n\n")
	d.message = message
	for line := range strings.SplitSeq(headers, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "tree":
			d.tree = OID(value)
		case "parent":
			d.parents = append(d.parents, OID(value))
		case "author":
			d.author = value
		case "committer":
			d.committer = value
		case "encoding":
			d.encoding = value
		}
	}
	return d
}

// when is the "seconds zone" part of an identity line.
func when(identity string) string {
	if i := strings.LastIndexByte(identity, '>'); i >= 0 {
		return strings.TrimSpace(identity[i+1:])
	}
	return "0 +0000"
}

func (d commitData) encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", d.tree)
	for _, p := range d.parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	fmt.Fprintf(&b, "author %s\ncommitter %s\n", d.author, d.committer)
	if d.encoding != "" {
		fmt.Fprintf(&b, "encoding %s\n", d.encoding)
	}
	fmt.Fprintf(&b, "\n%s", d.message)
	return b.Bytes()
}

func writeCommit(objects string, d commitData, durable bool) (OID, error) {
	return writeObject(objects, "commit", d.encode(), durable)
}

// writeObject stores a loose object in an object directory. Doing it here saves a process for each.
func writeObject(objects, kind string, body []byte, durable bool) (OID, error) {
	raw := append(fmt.Appendf(nil, "%s %d\x00", kind, len(body)), body...)
	o := nameOf(raw)
	path := looseFile(objects, o)
	if exists(path) {
		return o, nil
	}
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	if _, err := w.Write(raw); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return "", err
	}
	if err := replaceFile(path, z.Bytes(), durable); err != nil {
		return "", err
	}
	return o, os.Chmod(path, 0o444)
}

// readLoose reads a loose object. It returns false for everything that git has to look at: a packed object, one of another
// kind, a damaged one.
func readLoose(objects string, o OID, kind string, limit int) ([]byte, bool) {
	f, err := os.Open(looseFile(objects, o))
	if err != nil {
		return nil, false
	}
	defer f.Close()
	z, err := zlib.NewReader(f)
	if err != nil {
		return nil, false
	}
	raw, err := io.ReadAll(io.LimitReader(z, int64(limit)+maxHeader))
	header, body, ok := bytes.Cut(raw, []byte{0})
	if err != nil || !ok || nameOf(raw) != o || len(body) > limit || string(header) != fmt.Sprintf("%s %d", kind, len(body)) {
		return nil, false
	}
	return body, true
}

const maxHeader = 32 // bytes of "commit 123" and the NUL after it

func looseFile(objects string, o OID) string {
	return filepath.Join(objects, string(o[:2]), string(o[2:]))
}

func nameOf(raw []byte) OID {
	sum := sha1.Sum(raw) //nolint:gosec // git's object names
	return OID(hex.EncodeToString(sum[:]))
}
