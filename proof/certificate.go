package proof

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// LoginRole takes the place of the role where the key of a login is derived: whose
// it is not known before it is certified.
const LoginRole = "login"

const (
	// certificateVersion begins the text of a Certificate.
	certificateVersion = "c1"
	// certificateDomain begins the signed text, so that it is no signature of
	// anything else.
	certificateDomain = "pfl-forge certificate v1"
	// maxCertificate bounds the text of a Certificate, in bytes.
	maxCertificate = 1 << 10
	// certificateFields is how many a text has.
	certificateFields = 9
)

// connectionKeys matches the public nkeys of users.
var connectionKeys = pattern.New(`^U[A-Z2-7]{55}$`)

// Certificate says that two keys are a person's for some hours: the one that signs
// what the person asks for and decides, and the one by which they connect. It is
// signed by a key with NamespaceCertify. Its owner can speak as a person alone,
// never as a service.
type Certificate struct {
	// Account is the name of the person.
	Account string
	// Login is the address of the issuer at which the person has logged in.
	Login string
	// Connection is the public nkey of the person's connections.
	Connection string
	// Key is the public key of what the person signs.
	Key ed25519.PublicKey
	// From and Until say when the certificate is good, by the second.
	From, Until time.Time
	// Issuer is the public key that has signed it, and Signature is over all of the
	// above and that key.
	Issuer    ed25519.PublicKey
	Signature []byte
}

// Certify signs a certificate by a key with NamespaceCertify.
func Certify(key *Key, c Certificate) (Certificate, error) {
	c.From, c.Until = c.From.UTC().Truncate(time.Second), c.Until.UTC().Truncate(time.Second)
	c.Issuer = key.Public()
	c.Signature = key.Sign(c.content())
	_, err := ParseCertificate(c.String())
	return c, err
}

// content returns the text that is signed: every part after its length.
func (c *Certificate) content() []byte {
	var b []byte
	for _, part := range []string{
		certificateDomain, c.Account, c.Login, c.Connection, string(c.Key), seconds(c.From), seconds(c.Until), string(c.Issuer),
	} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	return b
}

// seconds returns a time as it is signed.
func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// Holds reports whether the signature is one of the issuer over the rest. Whether
// the issuer may certify, the trusted keys say.
func (c *Certificate) Holds() bool {
	return len(c.Issuer) == ed25519.PublicKeySize && ed25519.Verify(c.Issuer, c.content(), c.Signature)
}

// String returns the text of the certificate: version, account, login, the two keys,
// the two times in seconds since 1970, issuer and signature, with commas between
// them. Bytes and the login are in base64 as in URLs, without padding.
func (c *Certificate) String() string {
	encode := base64.RawURLEncoding.EncodeToString
	return strings.Join([]string{
		certificateVersion, c.Account, encode([]byte(c.Login)), c.Connection, encode(c.Key), seconds(c.From), seconds(c.Until),
		encode(c.Issuer), encode(c.Signature),
	}, ",")
}

// IsCertificate reports whether a text claims to be that of a certificate.
func IsCertificate(text string) bool { return strings.HasPrefix(text, certificateVersion+",") }

// ParseCertificate is the reverse of String. It accepts nothing that String does not
// return.
func ParseCertificate(text string) (Certificate, error) {
	if len(text) > maxCertificate {
		return Certificate{}, fmt.Errorf("a certificate has %d bytes; at most %d are allowed", len(text), maxCertificate)
	}
	f := strings.Split(text, ",")
	if len(f) != certificateFields || f[0] != certificateVersion {
		return Certificate{}, fmt.Errorf("certificate: want %s and %d fields behind it", certificateVersion, certificateFields-1)
	}
	decode := base64.RawURLEncoding.Strict().DecodeString
	c := Certificate{Account: f[1], Connection: f[3]}
	var errs [6]error
	login, err := decode(f[2])
	c.Login, errs[0] = string(login), err
	c.Key, errs[1] = decode(f[4])
	c.From, errs[2] = parseSeconds(f[5])
	c.Until, errs[3] = parseSeconds(f[6])
	c.Issuer, errs[4] = decode(f[7])
	c.Signature, errs[5] = decode(f[8])
	switch {
	case errors.Join(errs[:]...) != nil, c.String() != text:
		return Certificate{}, errors.New("certificate: a field of it has another form than those that are made")
	case !principals.MatchString(c.Account), !connectionKeys.MatchString(c.Connection):
		return Certificate{}, errors.New("certificate: the name of the account, or the key of its connections, is none")
	case len(c.Key) != ed25519.PublicKeySize, len(c.Issuer) != ed25519.PublicKeySize, len(c.Signature) != ed25519.SignatureSize:
		return Certificate{}, errors.New("certificate: a key or the signature has another length than those of ed25519")
	}
	return c, nil
}

// parseSeconds is the reverse of seconds.
func parseSeconds(s string) (time.Time, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	return time.Unix(n, 0).UTC(), err
}
