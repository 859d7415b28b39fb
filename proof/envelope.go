package proof

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"golang.org/x/crypto/ssh"

	"github.com/pfl-forge/pfl-forge"
)

// Bounds of envelopes, in bytes and in number.
const (
	maxEnvelope = 256 << 10
	maxInBundle = 16
	// MaxBundle bounds a text of envelopes.
	MaxBundle = 1 << 20
)

// Seal returns a payload with the key's signature, as one line of JSON: a DSSE
// envelope. The same payload gives the same line.
func (k *Key) Seal(payloadType string, payload []byte) (forge.Envelope, error) {
	signer, err := dsse.NewEnvelopeSigner(sealer{k})
	if err != nil {
		return "", err
	}
	e, err := signer.SignPayload(context.Background(), payloadType, payload)
	if err != nil {
		return "", err
	}
	line, err := json.Marshal(e)
	if err == nil && len(line) > maxEnvelope {
		err = fmt.Errorf("the envelope has %d bytes, more than %d", len(line), maxEnvelope)
	}
	return forge.Envelope(line), err
}

// sealer is a Key in the shape that package dsse asks for.
type sealer struct{ *Key }

// Sign returns the raw ed25519 signature.
func (s sealer) Sign(_ context.Context, data []byte) ([]byte, error) {
	return ed25519.Sign(s.private, data), nil
}

// KeyID returns the fingerprint of the key.
func (s sealer) KeyID() (string, error) { return s.ID(), nil }

// Sealed is an envelope that was read. Whether its signature is right is not known
// before Signed.
type Sealed struct {
	// PayloadType says what Payload is.
	PayloadType string
	Payload     []byte

	keyID     string
	signature []byte
}

// Unseal reads an envelope that Seal has made: with one signature, and in exactly
// its form.
func Unseal(line forge.Envelope) (Sealed, error) {
	if len(line) > maxEnvelope {
		return Sealed{}, fmt.Errorf("the envelope has %d bytes, more than %d", len(line), maxEnvelope)
	}
	var e dsse.Envelope
	if err := exact([]byte(line), &e); err != nil {
		return Sealed{}, fmt.Errorf("the envelope %w", err)
	}
	// DSSE allows several signatures. With one there is no question which of them
	// counts, and whose word a statement is.
	if len(e.Signatures) != 1 {
		return Sealed{}, fmt.Errorf("the envelope has %d signatures; want one", len(e.Signatures))
	}
	s := Sealed{PayloadType: e.PayloadType, keyID: e.Signatures[0].KeyID}
	var err error
	if s.Payload, err = base64Exact(e.Payload); err != nil {
		return Sealed{}, fmt.Errorf("the payload of the envelope: %w", err)
	}
	if s.signature, err = base64Exact(e.Signatures[0].Sig); err != nil {
		return Sealed{}, fmt.Errorf("the signature of the envelope: %w", err)
	}
	return s, nil
}

// Signed returns who signed the envelope, if that is a trusted key that may sign in
// the namespace, and could at a time.
func (s *Sealed) Signed(by Signers, namespace string, at time.Time) (Signer, error) {
	signer, err := by.find(s.keyID, namespace, at)
	if err != nil {
		return Signer{}, err
	}
	public, ok := signer.Key.(ssh.CryptoPublicKey)
	if !ok {
		return Signer{}, errors.New("the trusted key is not of ed25519")
	}
	key, ok := public.CryptoPublicKey().(ed25519.PublicKey)
	if !ok || !ed25519.Verify(key, dsse.PAE(s.PayloadType, s.Payload), s.signature) {
		return Signer{}, fmt.Errorf("the signature of %s is wrong: the content is not what was signed", signer.Principal)
	}
	return signer, nil
}

// Bundle returns envelopes as a text, each on a line.
func Bundle(envelopes ...forge.Envelope) string {
	var b strings.Builder
	for _, e := range envelopes {
		if e != "" {
			b.WriteString(string(e) + "\n")
		}
	}
	return b.String()
}

// Unbundle returns the envelopes of a text of Bundle.
func Unbundle(text string) ([]Sealed, error) {
	if len(text) > MaxBundle {
		return nil, fmt.Errorf("the proofs have %d bytes, more than %d", len(text), MaxBundle)
	}
	var list []Sealed
	for line := range strings.Lines(text) {
		if len(list) == maxInBundle {
			return nil, fmt.Errorf("there are more than %d proofs", maxInBundle)
		}
		s, err := Unseal(forge.Envelope(strings.TrimSuffix(line, "\n")))
		if err != nil {
			return nil, fmt.Errorf("line %d of the proofs: %w", len(list)+1, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// exact decodes JSON that is the same when it is written again. So nothing is given
// twice, in other letters, or is not known, and no two readers can take it for two
// things.
func exact(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	again, err := json.Marshal(into)
	if err != nil || !bytes.Equal(again, data) {
		return errors.New("is not in the one form that pfl-forge writes: a field is given twice, is not known, or was edited")
	}
	return nil
}
