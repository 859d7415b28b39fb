package trust

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// format is that of the files of the store.
	format = 1
	// maxRecord bounds a file of the store, in bytes, and maxDigests what it remembers.
	maxRecord  = 1 << 20
	maxDigests = 200
)

// Store is the folder with what a user trusts, a file for each repository. It is the user's,
// not the repository's: nothing that a clone brings along can be an answer. The zero value
// remembers nothing, and has been told why.
type Store struct{ dir string }

// StateHome returns the user's directory for what programs remember, which need not exist; empty
// if the environment names none.
func StateHome(getenv func(string) string) string {
	if base := getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return base
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state")
	}
	return ""
}

// Open returns the store of a user.
func Open(getenv func(string) string) Store {
	if base := StateHome(getenv); base != "" {
		return Store{filepath.Join(base, "pfl-forge", "trust")}
	}
	return Store{}
}

// Dir returns the folder of the store, which need not exist; empty if there is none.
func (s Store) Dir() string { return s.dir }

// record holds the trust in one repository.
type record struct {
	Format int `json:"format"`
	// Root and Identity are those of the repository, see [place].
	Root     string `json:"root"`
	Identity string `json:"identity"`
	// Digests are the trusted contents, the newest last.
	Digests []string `json:"digests"`
	// Moves is how often HEAD had moved by then: earlier moves prove nothing.
	Moves int `json:"moves"`
}

// place is where a repository is, and which one: its real path, and the random id in its git
// directory. Another repository that is put in the same place has another id or none.
type place struct{ root, identity string }

// file returns the path of a repository's file.
func (s Store) file(p place) string {
	sum := sha256.Sum256([]byte(p.root))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:16])+".json")
}

// load returns the record of a repository; nil if there is none. A file that is
// damaged, or about another repository, counts as none.
func (s Store) load(p place) *record {
	if s.dir == "" || p.identity == "" {
		return nil
	}
	// That it cannot be read is no error for the caller: the person is asked once more, and a
	// wrong yes is not possible.
	f, err := os.Open(s.file(p))
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxRecord {
		return nil
	}
	var r record
	d := json.NewDecoder(f)
	d.DisallowUnknownFields()
	if d.Decode(&r) != nil || r.Format != format || r.Root != p.root || r.Identity != p.identity || r.Moves < 0 {
		return nil
	}
	return &r
}

// save remembers a repository, in one step for readers. What others saved meanwhile about the
// same repository is lost, so that a question may be asked once more.
func (s Store) save(p place, r record) error {
	if s.dir == "" {
		return errors.New("there is no folder to remember it in: set HOME, or XDG_STATE_HOME")
	}
	r.Format, r.Root, r.Identity = format, p.root, p.identity
	r.Digests = slices.Clone(r.Digests[max(0, len(r.Digests)-maxDigests):])
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, ".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), s.file(p))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// forget removes the record of whichever repository is at a place.
func (s Store) forget(p place) error {
	if s.dir == "" {
		return nil
	}
	if err := os.Remove(s.file(p)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// readIdentity returns the random id of a repository, which is in a file of its git directory;
// empty if it has none.
func readIdentity(path string) string {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 100 {
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil || len(bytes.TrimSpace(text)) < 26 {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// makeIdentity returns the random id of a repository, and makes it where there is none.
func makeIdentity(path string) (string, error) {
	if id := readIdentity(path); id != "" {
		return id, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("the repository's id: %w", err)
	}
	id := rand.Text()
	_, err = f.WriteString(id + "\n")
	return id, errors.Join(err, f.Close())
}
