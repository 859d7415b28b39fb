package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's object names
	"encoding/hex"
	"fmt"
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

// writeCommit stores a commit as a loose object in an object directory. Doing it here saves a process for
// each commit of a rebase.
func writeCommit(objects string, d commitData, durable bool) (OID, error) {
	body := d.encode()
	raw := append(fmt.Appendf(nil, "commit %d\x00", len(body)), body...)
	sum := sha1.Sum(raw) //nolint:gosec // git's object names
	o := OID(hex.EncodeToString(sum[:]))
	dir := filepath.Join(objects, string(o[:2]))
	path := filepath.Join(dir, string(o[2:]))
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
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	if err := replaceFile(path, z.Bytes(), durable); err != nil {
		return "", err
	}
	return o, os.Chmod(path, 0o444)
}
