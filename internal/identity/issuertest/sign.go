package issuertest

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"time"
)

// Sign returns a token with the claims of an honest one, for pfl-forge and now,
// altered by those that are given; nil takes one away.
func (i *Issuer) Sign(claims map[string]any) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.sign(map[string]any{"alg": "RS256", "kid": i.kid, "typ": "JWT"}, claims)
}

// Header returns the header of an honest token with one field of it altered, for Forge.
func (i *Issuer) Header(field string, value any) map[string]any {
	i.mu.Lock()
	defer i.mu.Unlock()
	header := map[string]any{"alg": "RS256", "kid": i.kid, "typ": "JWT"}
	header[field] = value
	return header
}

// SignWithout is Sign for a token without one field of its header.
func (i *Issuer) SignWithout(field string, claims map[string]any) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	header := map[string]any{"alg": "RS256", "kid": i.kid, "typ": "JWT"}
	delete(header, field)
	return i.sign(header, claims)
}

// Forge returns a token with the header that is given. alg none is unsigned, and
// HS256 signed by the public key, which all know.
func (i *Issuer) Forge(header, claims map[string]any) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.sign(header, claims)
}

// sign signs as the header says. The claims are honest ones for ada, with those that are given in
// their place; nil leaves one out.
func (i *Issuer) sign(header, altered map[string]any) string {
	now := time.Now()
	claims := map[string]any{"iss": i.URL, "aud": "pfl-forge", "sub": "ada", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	maps.Copy(claims, altered)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	h, err := json.Marshal(header)
	if err != nil {
		i.t.Fatal(err)
	}
	c, err := json.Marshal(claims)
	if err != nil {
		i.t.Fatal(err)
	}
	text := encode(h) + "." + encode(c)
	switch header["alg"] {
	case "none":
		return text + "."
	case "HS256":
		der, err := x509.MarshalPKIXPublicKey(&i.key.PublicKey)
		if err != nil {
			i.t.Fatal(err)
		}
		mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
		_, _ = fmt.Fprint(mac, text)
		return text + "." + encode(mac.Sum(nil))
	}
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		i.t.Fatal(err)
	}
	return text + "." + encode(signature)
}

// encode encodes as JWTs do (RFC 7515, 2): base64 for URLs, without padding.
func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
