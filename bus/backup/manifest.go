package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

const (
	manifestFile = "manifest.json"
	stateFile    = "backup.json"
	// format is that of the folder. A later version of it has another number.
	format = 1
)

// Manifest says what a backup holds.
type Manifest struct {
	// Format is 1.
	Format int `json:"format"`
	// Name is the name that WriteInto gave to the folder; empty for one that
	// was named by who asked for it.
	Name string `json:"name,omitempty" yaml:"name,omitempty"`
	// Begun and Ended are the times between which the streams were copied.
	Begun time.Time `json:"begun"`
	Ended time.Time `json:"ended"`
	// Server is the version of the nats-server that the streams were copied
	// from, which decides how they are packed.
	Server string `json:"server"`
	// Streams are in the order in which they were copied.
	Streams []Stream `json:"streams"`
}

// Stream is the copy of a stream.
type Stream struct {
	// Name is that of the stream, and of its folder.
	Name string `json:"name"`
	// File is the archive's name in that folder.
	File string `json:"file"`
	// Messages counts the messages, and Last is the sequence of the newest there
	// ever was.
	Messages uint64 `json:"messages"      yaml:"messages"`
	Last     uint64 `json:"last_sequence" yaml:"last_sequence"`
	// Bytes is the size of the archive, and SHA256 its hash, in hexadecimal
	// digits.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// StateSHA256 is the hash of backup.json.
	StateSHA256 string `json:"state_sha256" yaml:"state_sha256"`
}

// ErrNoBackup says that a folder is none, or one that was not completed.
var ErrNoBackup = errors.New("it is not a backup")

// of returns the copy of a stream.
func (m *Manifest) of(name string) *Stream {
	i := slices.IndexFunc(m.Streams, func(s Stream) bool { return s.Name == name })
	if i < 0 {
		return &Stream{}
	}
	return &m.Streams[i]
}

// archiveName matches the names that the archive of a stream may have.
var archiveName = pattern.New(`^stream\.(arc|tar)\.s2$`)

// Open reads the manifest of a backup, and compares every file with it. It
// returns an error for each that is missing or another one. Error:
// ErrNoBackup.
func Open(dir string) (*Manifest, error) {
	data, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if errors.Is(err, os.ErrNotExist) {
		if there, err := look(dir); err == nil && len(there.backups) > 0 {
			return nil, fmt.Errorf("%s: %w: it has the backups %s; give one of them, the last is the newest", dir, ErrNoBackup, strings.Join(there.backups, ", "))
		}
		return nil, fmt.Errorf("%s: %w: it has no %s, which is written when all else is there", dir, ErrNoBackup, manifestFile)
	}
	if err != nil {
		return nil, err
	}
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("%s: %w: %s: %w", dir, ErrNoBackup, manifestFile, err)
	}
	if m.Format != format {
		return nil, fmt.Errorf("%s: format %d is that of another version of pfl-forge; this one reads format %d", dir, m.Format, format)
	}
	var wrong []error
	for i := range m.Streams {
		wrong = append(wrong, m.Streams[i].check(dir))
	}
	for _, name := range streams.Copied() {
		if m.of(name).Name == "" {
			wrong = append(wrong, fmt.Errorf("%s: stream %s is not in its %s", dir, name, manifestFile))
		}
	}
	return &m, errors.Join(wrong...)
}

// check compares the files of a stream with what the manifest says. The names
// in a manifest are another author's, and become paths only when they are
// known to be ours.
func (s *Stream) check(dir string) error {
	if !slices.Contains(streams.Copied(), s.Name) || !archiveName.MatchString(s.File) {
		return fmt.Errorf("%s: %s names %q with %q, which is no stream of pfl-forge", dir, manifestFile, s.Name, s.File)
	}
	for _, f := range []struct{ name, hash string }{{s.File, s.SHA256}, {stateFile, s.StateSHA256}} {
		path := filepath.Join(dir, s.Name, f.name)
		hash, _, err := hashFile(path)
		switch {
		case err != nil:
			return err
		case hash != f.hash:
			return fmt.Errorf("%s: it is not what was copied: its hash is %.12s, not %.12s", path, hash, f.hash)
		}
	}
	return nil
}

// hashFile returns the hash of a file and its length in bytes.
func hashFile(path string) (hash string, bytes int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if bytes, err = io.Copy(h, f); err != nil {
		return "", 0, fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), bytes, nil
}
