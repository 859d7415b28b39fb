package cli

import (
	"bytes"
	"io"
	"os"
)

// Tail reads the lines of a growing file. CLIs write data to their session files that
// their output lacks or has only at the end, such as the usage.
type Tail struct {
	// Find returns the file's path, or "" until it exists. It is not called again after
	// that.
	Find func() string
	// Line receives each complete new line, without its end.
	Line func([]byte)

	path    string
	offset  int64
	partial []byte
}

// Read passes on the lines that were added since the last call. It starts over if the
// file became shorter, and ignores errors.
func (t *Tail) Read() {
	if t.path == "" {
		if t.path = t.Find(); t.path == "" {
			return
		}
	}
	f, err := os.Open(t.path)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() < t.offset { // the file was replaced
		t.offset, t.partial = 0, nil
	}
	data, err := io.ReadAll(io.NewSectionReader(f, t.offset, 1<<40))
	if err != nil {
		return
	}
	t.offset += int64(len(data))
	data = append(t.partial, data...)
	for {
		line, rest, found := bytes.Cut(data, []byte("\n"))
		if !found {
			t.partial = bytes.Clone(data)
			return
		}
		t.Line(line)
		data = rest
	}
}
