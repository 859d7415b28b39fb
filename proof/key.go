package proof

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Key is a private key of one role. The zero value is none.
type Key struct {
	role    string
	private ed25519.PrivateKey
	signer  ssh.Signer
	// certificate says whose key it is, where no file of trusted keys has it; empty
	// otherwise.
	certificate string
}

// Source returns the key to sign with. It is asked for each signature, so a key that
// was replaced counts from then on. A nil Source, and one that returns nil, sign
// nothing.
type Source func() (*Key, error)

// Key returns the key of the source, nil if there is none.
func (s Source) Key() (*Key, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // nothing is signed
	}
	return s()
}

// minSeed is the least number of bytes of a seed: those of a random ed25519 seed.
const minSeed = 32

// Derive returns the key of a role, or of an account of another name, that follows
// from a secret seed, such as that of an nkey. It is another key than the nkey
// itself, because whoever runs a nats-server chooses what an nkey signs.
func Derive(seed []byte, role string) (*Key, error) {
	if len(seed) < minSeed || role == "" {
		return nil, errors.New("a signing key needs a role and a seed of at least 32 bytes")
	}
	raw, err := hkdf.Key(sha256.New, seed, nil, "pfl-forge signing key v1: "+role, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("derive a signing key: %w", err)
	}
	private := ed25519.NewKeyFromSeed(raw)
	clear(raw)
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, fmt.Errorf("derive a signing key: %w", err)
	}
	return &Key{role: role, private: private, signer: signer}, nil
}

// Role returns the role, or the account, whose key it is.
func (k *Key) Role() string { return k.role }

// ID returns the fingerprint of the public key, as ssh-keygen -l prints it.
func (k *Key) ID() string { return ssh.FingerprintSHA256(k.signer.PublicKey()) }

// Certified returns the key with the certificate that says whose it is.
func (k *Key) Certified(c *Certificate) *Key {
	certified := *k
	certified.role, certified.certificate = c.Account, c.String()
	return &certified
}

// Certificate returns the text of the key's certificate; empty if it has none.
func (k *Key) Certificate() string { return k.certificate }

// Public returns the public key.
func (k *Key) Public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }

// Sign signs a text as it is. It has to begin with a domain of its own: the same key
// signs statements and commits, whose texts begin with those of DSSE and of SSH
// signatures.
func (k *Key) Sign(text []byte) []byte { return ed25519.Sign(k.private, text) }

// AccountSigner returns the line of the key for the file of trusted keys of an
// installation, where it belongs to an account with a role: it signs what it sends,
// too.
func (k *Key) AccountSigner(role string) Signer {
	return Signer{Principal: k.role, Namespaces: append(slices.Clone(Namespaces(role)), sends[role]), Key: k.signer.PublicKey()}
}

// Signer returns the line of the key for a file of trusted keys.
func (k *Key) Signer() Signer {
	return Signer{Principal: k.role, Namespaces: Namespaces(k.role), Key: k.signer.PublicKey()}
}

// The names of the files in a Folder.
const (
	// seedFile has the secret, in hexadecimal digits.
	seedFile = "seed"
	// signersFile has the trusted keys.
	signersFile = "allowed_signers"
)

// Folder has the seed and the trusted keys of a machine on which all roles are one
// person's.
type Folder string

// SignersPath returns the path of the file of trusted keys.
func (f Folder) SignersPath() string { return filepath.Join(string(f), signersFile) }

// Prepare makes the seed of the folder unless it is there, and sees to it that its
// keys are among the trusted ones.
func (f Folder) Prepare() error {
	seed, err := f.read()
	if errors.Is(err, fs.ErrNotExist) {
		if err = f.make(); err == nil {
			seed, err = f.read()
		}
	}
	if err != nil {
		return fmt.Errorf("the signing key of this machine: %w", err)
	}
	defer clear(seed)
	before, err := ReadSigners(f.SignersPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the trusted keys of this machine: %w", err)
	}
	list := before
	for _, role := range Roles() {
		k, err := Derive(seed, role)
		if err != nil {
			return err
		}
		list = list.Renew(k.Signer(), time.Now())
	}
	if list.String() == before.String() {
		return nil
	}
	return replace(f.SignersPath(), []byte(list.String()), 0o644)
}

// HasKey reports whether there is a seed in the folder, whether or not it can be
// used.
func (f Folder) HasKey() bool {
	_, err := os.Lstat(filepath.Join(string(f), seedFile))
	return err == nil
}

// Source returns the key of a role, derived from the seed of the folder; nil without
// a folder.
func (f Folder) Source(role string) Source {
	if f == "" {
		return nil
	}
	return func() (*Key, error) {
		seed, err := f.read()
		if err != nil {
			return nil, err
		}
		defer clear(seed)
		return Derive(seed, role)
	}
}

// read returns the seed that the file holds.
func (f Folder) read() ([]byte, error) {
	path := filepath.Join(string(f), seedFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	seed, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(seed) != minSeed {
		return nil, fmt.Errorf("%s does not hold a seed: remove it, and a new one is made", path)
	}
	return seed, nil
}

// make writes a new seed, unless another process is faster.
func (f Folder) make() error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	seed := make([]byte, minSeed)
	if _, err := rand.Read(seed); err != nil {
		return err
	}
	tmp, err := written(string(f), []byte(hex.EncodeToString(seed)+"\n"), 0o600)
	if err != nil {
		return err
	}
	// A link fails where the file exists, so of two processes that begin at once both
	// use the seed of the faster one.
	if err = os.Link(tmp, filepath.Join(string(f), seedFile)); errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(tmp))
}

// replace puts a file in place as a whole.
func replace(path string, content []byte, mode fs.FileMode) error {
	tmp, err := written(filepath.Dir(path), content, mode)
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return nil
}

// written returns the path of a new file in a directory, with its content on the
// disk.
func written(dir string, content []byte, mode fs.FileMode) (string, error) {
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
