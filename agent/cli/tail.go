package cli

import (
	"bytes"
	"io"
	"os"
)

// Tail reads the lines of a file as it grows. CLIs note in their sessions' files what
// their output does not tell in time, such as the usage.
type Tail struct {
	Find func() string // the file's path; "" while there is none
	Line func([]byte)  // receives each new line, without its end

	path    string
	offset  int64
	partial []byte
}

// Read hands out the lines that are new.
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
	if info, err := f.Stat(); err != nil || info.Size() < t.offset { // written anew
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
