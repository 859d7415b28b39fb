package signed_test

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/proof"
)

// TestForm makes a signature by the words of the package comment alone, as a
// system in another language does.
func TestForm(t *testing.T) {
	seed := []byte("SUAMLK2ZNL35WSMW37E7UD4VZ7ELPKW7DHC3BWBSD2GCZ7IUQQXZIORRBU") // of no account
	raw, err := hkdf.Key(sha256.New, seed, nil, "pfl-forge signing key v1: scanner", ed25519.SeedSize)
	if err != nil {
		t.Fatal(err)
	}
	private := ed25519.NewKeyFromSeed(raw)
	public := private.Public().(ed25519.PublicKey)
	const subject, at, content = "forge.intent.shop.from.scanner.submit", "2026-11-20T10:00:00.000000123Z", `{"title": "t"}`
	sum := sha256.Sum256([]byte(content))
	var text []byte
	for _, part := range []string{"pfl-forge signed message v1", subject, "a b", "application/json", at, string(sum[:]), string(public)} {
		text = append(binary.BigEndian.AppendUint64(text, uint64(len(part))), part...)
	}
	url := base64.RawURLEncoding
	want := fmt.Sprintf("v1 %s a+b application%%2Fjson %s %s %s %s",
		subject, at, hex.EncodeToString(sum[:]), url.EncodeToString(public), url.EncodeToString(ed25519.Sign(private, text)))
	k, err := proof.Derive(seed, "scanner")
	if err != nil {
		t.Fatal(err)
	}
	m := signed.Message{Subject: subject, ID: "a b", ContentType: "application/json", Payload: []byte(content)}
	if got, err := signed.Sign(k, &m, made); err != nil || got.String() != want {
		t.Errorf("got  %s\nwant %s, %v", got.String(), strings.TrimSpace(want), err)
	}
}
