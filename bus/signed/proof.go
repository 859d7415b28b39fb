package signed

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/proof"
)

// Header carries the text of a Proof.
const Header = "Forge-Signed"

const (
	// version begins the text of a Proof.
	version = "v1"
	// certified begins the text of a Proof with a certificate, which is its last
	// field.
	certified = "v2"
	// gathered begins the text of a Proof whose signature is over several messages. Its
	// ninth field is the Place; a certificate may follow.
	gathered = "v3"
	// domain begins the signed text, so that it is no signature of anything else.
	domain = "pfl-forge signed message v1"
	// certifiedDomain is domain for a Proof with a certificate.
	certifiedDomain = "pfl-forge signed message v2"
	// gatheredDomain is domain for one of several messages, with or without a certificate.
	gatheredDomain = "pfl-forge signed message v3"
	// maxText bounds the text of a Proof, in bytes. It has to fit in the headers of a
	// message.
	maxText = 3 << 10
	// fields is how many a text has, without a certificate.
	fields = 8
)

// Message describes a message as it is sent, or as it came, to be signed or compared
// with a signature.
type Message struct {
	// Subject is where it is sent, or where it came. It names project, sender and
	// verb, or step, project and intent.
	Subject string
	// ID is the message's own id, as the header Nats-Msg-Id has it; empty where the
	// content identifies it.
	ID string
	// ContentType is the header of that name; it may be empty.
	ContentType string
	// Payload is the content.
	Payload []byte
}

// Proof is an author's word on a message, with the signature. The zero value is
// none.
type Proof struct {
	// Subject, ID and ContentType are those of the Message that was signed.
	Subject, ID, ContentType string
	// At is when it was signed, by the author's clock, in UTC.
	At time.Time
	// Payload is the SHA-256 of the content.
	Payload [sha256.Size]byte
	// Key is the author's, and Signature is over all of the above and the key; where
	// there is a Place, over several messages.
	Key       ed25519.PublicKey
	Signature []byte
	// Place leads from the message to what was signed; nil where one message was.
	Place *Place
	// Certificate is the text of the proof.Certificate that says whose the key is,
	// and is signed with the rest; empty where a file of trusted keys says that.
	Certificate string
}

// Sign returns the proof of a message, made at a time by a key.
func Sign(key *proof.Key, m *Message, at time.Time) (Proof, error) {
	proofs := prove(key, []*Message{m}, at)
	_, err := proofs[0].text()
	return proofs[0], err
}

// SignAll returns the texts of proofs of 1 to MaxTogether messages, made at a time by one
// signature of a key, and for each message an error, nil if it is signed. Each proof is
// complete in itself.
func SignAll(key *proof.Key, list []*Message, at time.Time) (texts []string, errs []error) {
	texts, errs = make([]string, len(list)), make([]error, len(list))
	for i, p := range prove(key, list, at) {
		texts[i], errs[i] = p.text()
	}
	return texts, errs
}

// prove returns the proofs of messages by one signature.
func prove(key *proof.Key, list []*Message, at time.Time) []Proof {
	proofs := make([]Proof, len(list))
	for i, m := range list {
		proofs[i] = Proof{
			Subject: m.Subject, ID: m.ID, ContentType: m.ContentType, At: at.UTC().Round(0), Payload: sha256.Sum256(m.Payload), Key: key.Public(),
			Certificate: key.Certificate(),
		}
	}
	if len(list) > 1 {
		gather(proofs)
	}
	signature := key.Sign(proofs[0].signedText())
	for i := range proofs {
		proofs[i].Signature = signature
	}
	return proofs
}

// text is String, and an error for one that is too long.
func (p *Proof) text() (string, error) {
	s := p.String()
	if len(s) > maxText {
		return "", fmt.Errorf("the subject and the id of a message are too long to be signed: %d bytes, and at most %d are allowed", len(s), maxText)
	}
	return s, nil
}

// signedText returns the text that the signature is over.
func (p *Proof) signedText() []byte {
	if p.Place != nil {
		return p.gatheredText()
	}
	return p.content()
}

// content returns the statement of the proof about its message: every part
// after its length, so that no two lists of parts are the same bytes.
func (p *Proof) content() []byte {
	parts := []string{domain, p.Subject, p.ID, p.ContentType, p.time(), string(p.Payload[:]), string(p.Key)}
	if p.Certificate != "" {
		parts[0] = certifiedDomain
		parts = append(parts, p.Certificate)
	}
	if p.Place != nil {
		parts[0] = gatheredDomain
	}
	return lengthened(parts)
}

// lengthened returns parts, each after its length.
func lengthened(parts []string) []byte {
	b := make([]byte, 0, 512)
	for _, part := range parts {
		b = binary.BigEndian.AppendUint64(b, uint64(len(part)))
		b = append(b, part...)
	}
	return b
}

// time returns the time as it is signed.
func (p *Proof) time() string { return p.At.Format(time.RFC3339Nano) }

// Holds reports whether the signature is one of the key over the rest. Whose key it
// is, Keys knows.
func (p *Proof) Holds() bool {
	return len(p.Key) == ed25519.PublicKeySize && ed25519.Verify(p.Key, p.signedText(), p.Signature)
}

// Of reports whether the proof is of this content.
func (p *Proof) Of(payload []byte) bool { return p.Payload == sha256.Sum256(payload) }

// String returns the text of the proof: version, subject, id, content type, time,
// hash, key, signature and perhaps a place and a certificate, with spaces between them
// and escaped as in a URL.
func (p *Proof) String() string {
	parts := []string{
		version, url.QueryEscape(p.Subject), url.QueryEscape(p.ID), url.QueryEscape(p.ContentType), p.time(),
		hex.EncodeToString(p.Payload[:]), base64.RawURLEncoding.EncodeToString(p.Key), base64.RawURLEncoding.EncodeToString(p.Signature),
	}
	if p.Certificate != "" {
		parts[0] = certified
	}
	if p.Place != nil {
		parts[0] = gathered
		parts = append(parts, p.Place.String())
	}
	if p.Certificate != "" {
		parts = append(parts, p.Certificate)
	}
	return strings.Join(parts, " ")
}

// Parse is the reverse of String. It accepts nothing that String does not return, so
// that a proof has one text.
func Parse(text string) (Proof, error) {
	if len(text) > maxText {
		return Proof{}, fmt.Errorf("it has %d bytes; at most %d are allowed", len(text), maxText)
	}
	f := strings.Split(text, " ")
	var p Proof
	var err error
	switch rest := f[min(len(f), fields):]; {
	case len(f) == fields && f[0] == version:
	case len(rest) == 1 && f[0] == certified:
		err = p.parseCertificate(rest[0])
	case len(rest) == 1 && f[0] == gathered:
		p.Place, err = parsePlace(rest[0])
	case len(rest) == 2 && f[0] == gathered:
		p.Place, err = parsePlace(rest[0])
		err = errors.Join(err, p.parseCertificate(rest[1]))
	default:
		err = fmt.Errorf("want %s and %d fields behind it", version, fields-1)
	}
	if err != nil {
		return Proof{}, err
	}
	var errs [7]error
	p.Subject, errs[0] = url.QueryUnescape(f[1])
	p.ID, errs[1] = url.QueryUnescape(f[2])
	p.ContentType, errs[2] = url.QueryUnescape(f[3])
	p.At, errs[3] = time.Parse(time.RFC3339Nano, f[4])
	sum, err := hex.DecodeString(f[5])
	copy(p.Payload[:], sum)
	errs[4] = err
	p.Key, errs[5] = base64.RawURLEncoding.Strict().DecodeString(f[6])
	p.Signature, errs[6] = base64.RawURLEncoding.Strict().DecodeString(f[7])
	p.At = p.At.UTC()
	switch {
	case errors.Join(errs[:]...) != nil, p.String() != text:
		return Proof{}, errors.New("a field of it has another form than those that are made")
	case len(p.Key) != ed25519.PublicKeySize, len(p.Signature) != ed25519.SignatureSize:
		return Proof{}, errors.New("key or signature has another length than those of ed25519")
	}
	return p, nil
}

// parseCertificate reads the field of the certificate.
func (p *Proof) parseCertificate(text string) error {
	p.Certificate = text
	_, err := proof.ParseCertificate(text)
	return err
}
