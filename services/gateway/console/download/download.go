// Package download sends a file of lines of JSON that is made while it is sent,
// so that a browser has either all of it or says that it failed: a person would
// have half of it otherwise, and not know.
//
// The console's pages of audits and timelines use it. An error before the first
// line can still be answered with a page; later the connection is cut, since a
// complete answer would claim that the file is whole.
package download

import (
	"cmp"
	"encoding/json"
	"mime"
	"net/http"

	"github.com/pfl-forge/pfl-forge/internal/term"
)

// File is sent as it is made.
type File struct {
	// To gets it.
	To http.ResponseWriter
	// Name is made of ids, so that it is safe in a header and in a folder.
	Name string
	// Kind is the media type; empty: lines of JSON.
	Kind  string
	began bool
}

// begin sends the headers, once.
func (f *File) begin() {
	if f.began {
		return
	}
	f.began = true
	h := f.To.Header()
	h.Set("Content-Type", cmp.Or(f.Kind, "application/x-ndjson; charset=utf-8"))
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Name}))
}

// Line sends a line. It has nothing but printable ASCII, so that it steers no terminal.
func (f *File) Line(value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	f.begin()
	_, err = f.To.Write(append(term.ASCII(data), '\n'))
	return err
}

// End ends a file, which may have no line. It returns nil.
func (f *File) End() error {
	f.begin()
	return nil
}

// Failed ends a file that is not whole. Where nothing was sent it returns the
// error, which can be shown; where a part was sent it calls cut, and ends the
// answer by a panic that net/http knows, which cuts off the connection.
func (f *File) Failed(err error, cut func()) error {
	if !f.began {
		return err
	}
	cut()
	panic(http.ErrAbortHandler)
}
