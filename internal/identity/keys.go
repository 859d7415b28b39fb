package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// errSignature says that a token was not signed by a key that its issuer is known to have.
var errSignature = errors.New("the issuer is not known to have the key that made it")

// errKind says that a token was made for something else than to say who a person is.
var errKind = errors.New("it is no ID token")

// signatures are the algorithms, for the library that checks signatures.
func signatures() (list []jose.SignatureAlgorithm) {
	for _, a := range algorithms {
		list = append(list, jose.SignatureAlgorithm(a))
	}
	return list
}

// signatureOf checks the signature of one token. It is an oidc.KeySet.
type signatureOf struct {
	issuer *issuer
	// err is why it does not count.
	err error
}

// VerifySignature implements oidc.KeySet.
func (o *signatureOf) VerifySignature(ctx context.Context, token string) (content []byte, err error) {
	content, o.err = o.issuer.signed(ctx, token)
	return content, o.err
}

// signed returns the content of a token that a key of the issuer has signed. Keys that are
// known count without a question, also while the issuer is away. A token by another one has
// the issuer asked for its keys, since it may have a new one; key ids can be made up, so that
// is bounded, together for all tokens. Errors: errSignature, and those that are ErrAway.
func (s *issuer) signed(ctx context.Context, token string) ([]byte, error) {
	jws, err := jose.ParseSigned(token, signatures())
	if err != nil {
		return nil, err
	}
	if kind, _ := jws.Signatures[0].Header.ExtraHeaders[jose.HeaderType].(string); strings.HasSuffix(strings.ToLower(kind), "+jwt") {
		return nil, errKind // such as at+jwt of RFC 9068 and logout+jwt
	}
	s.mu.Lock()
	p := s.known
	s.mu.Unlock()
	if content, ok := p.open(jws); ok {
		return content, nil
	}
	p, err = s.askKeys(ctx)
	if err != nil {
		return nil, err
	}
	if content, ok := p.open(jws); ok {
		return content, nil
	}
	return nil, errSignature
}

// open returns the content of a token that a key of the issuer has signed; false if none has.
func (p *provider) open(jws *jose.JSONWebSignature) ([]byte, bool) {
	id := jws.Signatures[0].Header.KeyID // the compact form has one
	for i := range p.keys {
		if id != "" && p.keys[i].KeyID != id {
			continue
		}
		if content, err := jws.Verify(&p.keys[i]); err == nil {
			return content, true
		}
	}
	return nil, false
}

// askKeys asks the issuer for its keys, and returns it with these. All who ask
// at the same time wait for one answer, as long as their ctx lets them. Too
// many questions are answered with errSignature, and not asked.
func (s *issuer) askKeys(ctx context.Context) (*provider, error) {
	return s.together(ctx, "keys", func() (*provider, error) {
		if !s.keyLimit.AllowN(s.now(), 1) {
			return nil, errSignature
		}
		s.mu.Lock()
		next := *s.known
		s.mu.Unlock()
		asking, cancel := context.WithTimeout(context.Background(), askFor)
		defer cancel()
		var err error
		if next.keys, err = s.fetchKeys(asking, next.jwks); err != nil {
			return nil, s.away(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.known = &next
		return s.known, nil
	})
}

// fetchKeys returns the keys at an address of the issuer. One of a kind that is
// not known here is left out.
func (s *issuer) fetchKeys(ctx context.Context, address string) (keys []jose.JSONWebKey, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body) // it is bounded
	if err != nil || answer.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("its keys: status %d", answer.StatusCode), err)
	}
	return parseKeys(body)
}

// parseKeys reads the keys of an issuer, which may have some that this program has no use for.
func parseKeys(body []byte) (keys []jose.JSONWebKey, err error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("its keys: %w", err)
	}
	for _, text := range set.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(text) == nil && key.Valid() && key.IsPublic() {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("its keys: there is none for signatures by public keys")
	}
	return keys, nil
}
