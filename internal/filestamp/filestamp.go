// Package filestamp tells whether a file may have changed since it was read, without reading it.
//
// Time and size alone do not say: a file that is written twice within a tick of the file system's
// clock has one time for both, and a token that takes another's place has the same size.
package filestamp

import (
	"os"
	"time"
)

// settled is how old a file has to be for its time to say that it is the one that was read.
const settled = time.Second

// Stamp tells one content of a file from another. That of no file is the zero value.
type Stamp struct {
	info   os.FileInfo
	looked time.Time
}

// Take returns the stamp of a file as it is now. Whoever is about to read the file takes its stamp
// first, so that a change in between is seen at the next look.
func Take(path string) (Stamp, error) {
	now := time.Now()
	info, err := os.Stat(path)
	return Stamp{info, now}, err
}

// Settled reports whether the file was old enough for its time to tell it from one that is written
// later. What is read from a file that was not has to be read again.
func (s Stamp) Settled() bool {
	return s.info != nil && s.looked.Sub(s.info.ModTime()) > settled
}

// Unchanged reports whether the file still held what was read after s when later was taken. It
// returns false where that is not certain.
func (s Stamp) Unchanged(later Stamp) bool {
	return s.Settled() && later.info != nil && os.SameFile(s.info, later.info) &&
		s.info.ModTime().Equal(later.info.ModTime()) && s.info.Size() == later.info.Size()
}
