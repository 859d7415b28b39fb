package secrets

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
)

// Folder keeps an installation's secrets as plain files.
// A folder that is made is for its owner alone, mode 0700, and so is each file, mode 0600.
type Folder struct {
	// Path is the folder, which need not exist.
	Path string
}

// seedFile ends the name of a file with an account's seed.
const seedFile = ".nk"

// exampleConf is a nats.conf that uses the files.
const exampleConf = `# An example: nats-server -c nats.conf. It is written once, and then yours.
listen: 0.0.0.0:4222
max_payload: 8MB
jetstream {
  store_dir: %q
  sync_interval: always
}
%sinclude ./auth.conf
`

// tlsConf is the part of exampleConf about certificates.
const tlsConf = `tls {
  cert_file: %q
  key_file: %q
}
`

// Read implements Store. Seeds are not read: those that stay need not be known.
// A folder that is missing has none. Which accounts exist follows from auth.conf.
func (f *Folder) Read() (Set, error) {
	found := Set{}
	for name, secret := range serverFiles() {
		text, err := os.ReadFile(filepath.Join(f.Path, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("--out: %w", err)
		}
		if found[secret] == nil {
			found[secret] = map[string][]byte{}
		}
		found[secret][name] = text
	}
	if ca := found[Authority]; ca != nil { // one file for both
		ca[CA] = found[Server][CA]
	}
	return found, nil
}

// serverFiles returns the files that belong to no account, each with its secret.
// Every other file that this program writes there is the seed of an account, or nats.conf.
func serverFiles() map[string]string {
	return map[string]string{
		Conf: Server, Cert: Server, Key: Server, CA: Server, CAKey: Authority,
		TrustedKeys: Signers,
	}
}

// Write implements Store, file after file in the order of inOrder.
//
// A file that has the same content already is left alone, and not named in the
// result. After an error the result has those that are written. Certificates in
// the secrets of accounts are not written: in a folder the one ca.crt is for all.
func (f *Folder) Write(changed, whole Set) ([]string, error) {
	if err := os.MkdirAll(f.Path, 0o700); err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	files := map[string][]byte{}
	for name, entries := range changed {
		if name == Server || name == Authority || name == Signers {
			maps.Copy(files, entries)
			continue
		}
		files[name+seedFile] = []byte(string(entries[Seed]) + "\n")
	}
	names := inOrder(maps.Keys(files), TrustedKeys, Conf)
	var written []string
	for _, name := range names {
		path := filepath.Join(f.Path, name)
		if before, err := os.ReadFile(path); err == nil && string(before) == string(files[name]) {
			continue
		}
		if err := replace(path, files[name]); err != nil {
			return written, fmt.Errorf("--out: %w", err)
		}
		written = append(written, path)
	}
	made, err := f.example(whole)
	return append(written, made...), err
}

// example writes nats.conf unless it is there.
// A person changes it afterwards, so --force does not write over it either.
func (f *Folder) example(whole Set) ([]string, error) {
	dir, err := filepath.Abs(f.Path)
	if err != nil {
		return nil, err
	}
	encryption := ""
	if whole[Server][Cert] != nil {
		encryption = fmt.Sprintf(tlsConf, filepath.Join(dir, Cert), filepath.Join(dir, Key))
	}
	path := filepath.Join(f.Path, "nats.conf")
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	_, err = fmt.Fprintf(file, exampleConf, filepath.Join(dir, "data"), encryption)
	return []string{path}, errors.Join(err, file.Close())
}

// replace puts a file in place as a whole, for its owner alone. A reader sees
// the former content or the new one. The content is on the disk before the name
// is: keys that are lost cannot be made again.
func replace(path string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.Write(content)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
