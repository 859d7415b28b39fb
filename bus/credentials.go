package bus

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/pfl-forge/pfl-forge/internal/filestamp"
	"github.com/pfl-forge/pfl-forge/proof"
)

// TLS names the files of an encrypted connection. All are PEM and are read again for
// each connection, so that they can be replaced. The zero value leaves it to the URL
// whether the connection is encrypted, and checks the server's certificate against
// the system's authorities; otherwise the connection is encrypted whatever the URL
// says.
type TLS struct {
	// CA has the authorities that the server's certificate is checked against; empty
	// for the system's.
	CA string
	// Cert and Key are this client's own certificate; both empty for none.
	Cert, Key string
}

// ReadSeed returns the seed of a user's nkey that a file holds, alone or between the
// lines that nsc puts around it. No error shows any of the content.
func ReadSeed(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	defer clear(text)
	pair, err := nkeys.ParseDecoratedNKey(text)
	if err != nil {
		return nil, fmt.Errorf("%s does not hold the seed of an nkey", path)
	}
	defer pair.Wipe()
	public, err := pair.PublicKey()
	if err != nil || !nkeys.IsValidPublicUserKey(public) {
		return nil, fmt.Errorf("%s holds the seed of an nkey that is not a user's", path)
	}
	seed, err := pair.Seed()
	return bytes.Clone(seed), err // Wipe erases the other one
}

const (
	// lookEvery is how often the file of a key that is kept is looked at.
	lookEvery = 100 * time.Millisecond
)

// SigningKey returns the key by which an account signs what it sends and does. It
// follows from the account's nkey. To read the file and to derive the key costs several
// times what a signature does, so the key is kept until the file is another one, which
// is noticed within a tenth of a second: runners take the former key for a minute more.
func SigningKey(path, account string) proof.Source {
	k := &signingKey{path: path, account: account}
	return k.get
}

// signingKey is the key that follows from an nkey in a file that may be replaced.
type signingKey struct {
	path, account string

	mu sync.Mutex
	// kept is the key, nil if the file has to be read; of is the file that it was read from.
	kept   *proof.Key
	of     filestamp.Stamp
	looked time.Time
}

// get returns the key of the file.
func (k *signingKey) get() (*proof.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if k.kept != nil && now.Sub(k.looked) < lookEvery {
		return k.kept, nil
	}
	file, err := filestamp.Take(k.path)
	if err != nil {
		return nil, err
	}
	k.looked = now
	if k.kept != nil && k.of.Unchanged(file) {
		return k.kept, nil
	}
	k.kept = nil
	seed, err := ReadSeed(k.path)
	if err != nil {
		return nil, err
	}
	defer clear(seed)
	key, err := proof.Derive(seed, k.account)
	if err == nil && file.Settled() {
		k.kept, k.of = key, file
	}
	return key, err
}

// PublicKey returns the public part of the nkey whose seed a file holds.
func PublicKey(path string) (string, error) {
	seed, err := ReadSeed(path)
	if err != nil {
		return "", err
	}
	defer clear(seed)
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		return "", err
	}
	defer pair.Wipe()
	return pair.PublicKey()
}

// Check returns an error for a file that is missing or does not hold what it should.
func (t TLS) Check() error {
	if t.CA != "" {
		if _, err := t.authorities(); err != nil {
			return err
		}
	}
	if t.Cert == "" {
		return nil
	}
	_, err := t.certificate()
	return err
}

// authorities reads CA.
func (t TLS) authorities() (*x509.CertPool, error) {
	text, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%w: %s holds none in PEM", ErrCertificate, t.CA)
	}
	return pool, nil
}

// certificate reads Cert and Key.
func (t TLS) certificate() (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return pair, fmt.Errorf("%w: %s with the key %s: %w", ErrCertificate, t.Cert, t.Key, err)
	}
	return pair, nil
}

// options returns the options of a connection that is encrypted as t says.
func (t TLS) options() []nats.Option {
	if t == (TLS{}) {
		return nil
	}
	var roots nats.RootCAsHandler
	var own nats.TLSCertHandler
	if t.CA != "" {
		roots = t.authorities
	}
	if t.Cert != "" {
		own = t.certificate
	}
	return []nats.Option{nats.ClientTLSConfig(own, roots)}
}

// keyFile is an nkey in a file that may be replaced while a connection lives: the
// client library asks for a token before each connection, but not for a key.
type keyFile struct {
	path string
	log  *slog.Logger

	mu sync.Mutex
	// pair is of the connection that is being made, or was made last.
	pair nkeys.KeyPair
	// nc is the connection to give a replaced key to; nil until there is one.
	nc *nats.Conn
}

// option has a connection authorise itself by the key that the file holds when the
// connection is first made.
func (k *keyFile) option(o *nats.Options) error {
	public, err := k.read()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	o.Nkey, o.SignatureCB = public, k.sign
	return nil
}

// read reads the file and returns its public key. After an error the former key
// stays.
func (k *keyFile) read() (public string, err error) {
	seed, err := ReadSeed(k.path)
	if err != nil {
		return "", err
	}
	pair, err := nkeys.FromSeed(seed)
	clear(seed)
	if err != nil {
		return "", errors.New("the seed is not one of an nkey") // ReadSeed has looked
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pair = pair
	return pair.PublicKey()
}

// sign signs the server's challenge by the key that was read last.
func (k *keyFile) sign(nonce []byte) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pair.Sign(nonce)
}

// belongs says which connection is to have the key that is in the file whenever it
// is made anew.
func (k *keyFile) belongs(nc *nats.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.nc = nc
}

// again reads the file for a connection that is about to be made anew. The client
// calls it by its dialer, with the connection locked, and looks at the options after
// that. A file that cannot be read leaves the former key, which may still be good.
func (k *keyFile) again() {
	k.mu.Lock()
	nc := k.nc
	k.mu.Unlock()
	if nc == nil {
		return
	}
	public, err := k.read()
	if err != nil {
		k.log.Warn("cannot read the nkey; trying with the former one", "error", err)
		return
	}
	nc.Opts.Nkey = public
}
