package objects

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
)

// CommitFile commits one file on top of a commit, without a checkout, and returns the
// new commit; the same one if the file is as it should be. What is executable stays so.
// The caller Keeps the result.
//
// Error: *WorkError (Unsafe, Oversized): the path belongs to git or to the service, is
// a directory or a link, or has a file or a link on its way.
func (db *Database) CommitFile(ctx context.Context, on git.OID, path git.Path, content []byte, message string) (git.OID, error) {
	if err := (entry{mode: "100644", path: string(path)}).check(); err != nil {
		return "", err
	}
	if most := (Limits{}).OrDefault().Blob; int64(len(content)) > most {
		return "", &git.WorkError{Fault: git.Oversized, Path: string(path), Detail: fmt.Sprintf("has %d bytes, more than %d", len(content), most)}
	}
	w := fileWriter{db: db, objects: db.NewReader(ctx), path: path, content: content}
	defer w.objects.Close()
	parent, err := w.objects.Commit(on)
	if err != nil {
		return "", err
	}
	tree, err := w.put(parent.Tree, strings.Split(string(path), "/"))
	if err != nil {
		return on, err
	}
	return db.commitTree(on, parent.Tree, tree, message)
}

// commitTree commits a tree on a commit whose own tree is old, and returns the new commit; the
// same one if the trees are.
func (db *Database) commitTree(on, old, tree git.OID, message string) (git.OID, error) {
	if tree == old {
		return on, nil
	}
	by := fmt.Sprintf("%s <%s> %d +0000", db.Identity().Name, db.Identity().Email, time.Now().Unix())
	return WriteCommit(db.ObjectDir(), Commit{
		Tree: tree, Parents: []git.OID{on}, Author: by, Committer: by, Message: CleanMessage(message),
	}, true)
}

// CommitFilesOf commits the files that another commit has at some paths on top of a
// commit, and returns the new commit; the same one if it has those files already. What
// the other commit has not, or not as a file, stays as it is. Contents are not read:
// the new trees name the same blobs, with the other commit's modes. The caller Keeps
// the result.
//
// Error: *WorkError (Unsafe) if a path is a directory or a link now, or has a file or a
// link on its way.
func (db *Database) CommitFilesOf(ctx context.Context, on, other git.OID, paths []string, message string) (git.OID, error) {
	r := db.NewReader(ctx)
	defer r.Close()
	parent, err := r.Commit(on)
	if err != nil {
		return "", err
	}
	from, err := r.Commit(other)
	if err != nil {
		return "", err
	}
	tree := parent.Tree
	for _, p := range paths {
		e, err := r.at(from.Tree, p)
		if err != nil {
			return "", err
		}
		if !e.isFile() {
			continue
		}
		w := fileWriter{db: db, objects: r, path: git.Path(p), have: e}
		if tree, err = w.put(tree, strings.Split(p, "/")); err != nil {
			return "", err
		}
	}
	return db.commitTree(on, parent.Tree, tree, message)
}

// fileWriter makes the trees that have a file at a path. Every object is
// durable when its method returns.
type fileWriter struct {
	db      *Database
	objects *Reader
	path    git.Path
	content []byte
	// have is the file, in place of content, if it is in the database already.
	have treeEntry
}

// put returns a tree like the given one in which the file is at a place below
// it, at; an empty tree stands for a directory that is not there. It returns
// the same tree if nothing changes.
func (w *fileWriter) put(tree git.OID, at []string) (git.OID, error) {
	entries := map[string]treeEntry{}
	if tree != "" {
		raw, err := w.objects.read(tree, "tree", maxTree)
		if err != nil {
			return "", err
		}
		var ok bool
		if entries, ok = parseTree(raw); !ok {
			return "", fmt.Errorf("tree %s cannot be read", tree)
		}
	}
	old, is := entries[at[0]]
	var e treeEntry
	var err error
	if len(at) == 1 {
		e, err = w.file(old, is)
	} else {
		e, err = w.directory(old, is, at[1:])
	}
	if err != nil || e == old {
		return tree, err
	}
	entries[at[0]] = e
	return writeObject(w.db.ObjectDir(), "tree", encodeTree(entries), true)
}

// file returns the entry of the file itself, in place of old if is. An
// executable file stays executable.
func (w *fileWriter) file(old treeEntry, is bool) (treeEntry, error) {
	mode := "100644"
	if is {
		if mode = old.mode; !old.isFile() {
			return old, w.unsafe("is a directory, a link or a submodule, and not a file")
		}
	}
	if w.have != (treeEntry{}) {
		return w.have, nil
	}
	o, err := writeObject(w.db.ObjectDir(), "blob", w.content, true)
	return treeEntry{mode, string(o)}, err
}

// directory returns the entry of a directory on the way, in place of old if is.
func (w *fileWriter) directory(old treeEntry, is bool, rest []string) (treeEntry, error) {
	if is && !old.isTree() {
		return old, w.unsafe("has a file, a link or a submodule on its way")
	}
	o, err := w.put(git.OID(old.oid), rest)
	return treeEntry{"40000", string(o)}, err
}

// unsafe returns the fault of a path that cannot hold the file.
func (w *fileWriter) unsafe(detail string) error {
	return &git.WorkError{Fault: git.Unsafe, Path: string(w.path), Detail: detail}
}

// CleanMessage returns a valid commit message made of any text: UTF-8 without
// NUL, at most 64 KiB, with one line end at its end; "Change" for an empty
// text.
func CleanMessage(m string) string {
	const most = 64 << 10
	m = strings.ReplaceAll(strings.ToValidUTF8(m[:min(len(m), most)], "?"), "\x00", "")
	if m = strings.TrimSpace(m); m == "" {
		m = "Change"
	}
	return m + "\n"
}
