package identity

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

const (
	// maxToken bounds a token, in bytes.
	maxToken = 12 << 10
	// maxReason bounds the part of an error that quotes an answer which is no
	// description of an issuer, in characters.
	maxReason = 300
	// maxAnswer bounds the documents about an issuer and its keys, in bytes.
	maxAnswer = 1 << 20
	// askFor bounds a question to an issuer: the server that waits for us waits
	// little longer.
	askFor = 3 * time.Second
	// askAgain is for how long the keys of an issuer count before it is asked anew,
	// so that one that was withdrawn ends.
	askAgain = 10 * time.Minute
	// failsFor is for how long an issuer of which nothing is known is not asked
	// again after it has failed.
	failsFor = 5 * time.Second
	// keysEach is how often an issuer is asked for its keys because of tokens by a key
	// that is not known, in the long run, and keysAtOnce how often one after the other.
	keysEach, keysAtOnce = 5 * time.Second, 3
	// leeway is how far the clock of an issuer may be ahead.
	leeway = time.Minute
	// MaxAge bounds how old a token may be, whatever it says itself.
	MaxAge = 24 * time.Hour
)

// algorithms are those of asymmetric keys. By another one the public key would be
// the secret, and whoever has read it could sign.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}

// compact matches a token in the one form that is taken.
var compact = pattern.New(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)

// Nonce returns the nonce by which a token is bound to a key of connections: whoever
// else has the token can do nothing with it.
func Nonce(key string) string {
	sum := sha256.Sum256([]byte("pfl-forge login " + key))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// issuer verifies the tokens of one issuer.
type issuer struct {
	rule   Rule
	now    func() time.Time
	client *http.Client
	// keyLimit bounds the questions for keys that were not known.
	keyLimit *rate.Limiter

	// asking has all who wait for the issuer wait for one answer.
	asking singleflight.Group

	mu    sync.Mutex
	known *provider
	// asked is when it was asked last, and failed is why nothing is known since.
	asked  time.Time
	failed error
}

// provider is an issuer as it describes itself.
type provider struct {
	// jwks is where it shows its keys, and keys are those that it showed last.
	jwks string
	keys []jose.JSONWebKey
	// endpoint is where people log in there.
	endpoint oauth2.Endpoint
	// methods are the ways in which a client proves who it is when it sends a
	// code; none stands for client_secret_basic.
	methods []string
	// scopes are those that a client may ask for; none where the issuer does not say.
	scopes []string
	// saysIssuer says that it leads back with its own name beside the code.
	saysIssuer bool
}

// ErrAway says that an issuer does not answer, so that it is not known whether a token counts.
var ErrAway = errors.New("cannot be asked now")

// away returns a failure to ask the issuer as ErrAway.
func (s *issuer) away(err error) error {
	return fmt.Errorf("the issuer %s %w: %w", s.rule.URL, ErrAway, err)
}

// newIssuer returns the issuer of a rule. It is asked when a token comes.
func newIssuer(rule Rule, now func() time.Time) (*issuer, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	if rule.CA != "" {
		text, err := os.ReadFile(rule.CA)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("ca: %s holds no certificate in PEM", rule.CA)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	// Codes of logins can be made up, and each would be sent.
	limit := rate.NewLimiter(rate.Every(200*time.Millisecond), 10)
	client := &http.Client{Timeout: askFor, Transport: &guarded{transport, limit, rule.TokenFile}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the issuer leads elsewhere: give its own address")
	}}
	// It never follows: a redirect would let a page of the issuer's site choose whose
	// keys count.
	return &issuer{rule: rule, now: now, client: client, keyLimit: rate.NewLimiter(rate.Every(keysEach), keysAtOnce)}, nil
}

// guarded is a transport with bounds.
type guarded struct {
	under     http.RoundTripper
	limit     *rate.Limiter
	tokenFile string
}

// RoundTrip implements http.RoundTripper.
func (g *guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if !g.limit.Allow() {
		return nil, errors.New("the issuer was asked too often")
	}
	if g.tokenFile != "" {
		text, err := os.ReadFile(g.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("token_file: %w", err)
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(text)))
	}
	answer, err := g.under.RoundTrip(r)
	if err == nil {
		answer.Body = &bounded{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	}
	return answer, err
}

// bounded is a body of which only the beginning is read.
type bounded struct {
	io.Reader
	io.Closer
}

// claims returns the claims of a token and when it expires, if the issuer has signed
// it, for us and for now. key is that of the connection with which the token came.
func (s *issuer) claims(ctx context.Context, token, key string) (map[string]any, time.Time, error) {
	if _, err := s.ask(ctx); err != nil {
		return nil, time.Time{}, err
	}
	signed := &signatureOf{issuer: s}
	verifier := oidc.NewVerifier(s.rule.URL, signed, &oidc.Config{ClientID: s.rule.Audience, SupportedSigningAlgs: algorithms, Now: s.now})
	t, err := verifier.Verify(ctx, token)
	if errors.Is(signed.err, ErrAway) { // the library hands on its text alone
		return nil, time.Time{}, signed.err
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	claims := map[string]any{}
	if err := t.Claims(&claims); err != nil {
		return nil, time.Time{}, err
	}
	now := s.now()
	notBefore, _ := claims["nbf"].(float64)
	azp, hasParty := claims["azp"].(string)
	nonce, hasNonce := claims["nonce"]
	switch {
	case claims["events"] != nil: // a logout token has no nonce either, and goes over the network
		return nil, time.Time{}, errKind
	case t.IssuedAt.IsZero() || t.IssuedAt.After(now.Add(leeway)):
		return nil, time.Time{}, errors.New("the token is from the future, or does not say when it was issued: a clock is wrong")
	case time.Unix(int64(notBefore), 0).After(now.Add(leeway)): // the library has a longer one
		return nil, time.Time{}, errors.New("the token does not count yet, by its nbf")
	case now.Sub(t.IssuedAt) > MaxAge:
		return nil, time.Time{}, fmt.Errorf("the token is older than %s", MaxAge)
	case hasParty && azp != s.rule.Audience, len(t.Audience) > 1 && !hasParty:
		return nil, time.Time{}, fmt.Errorf("the token was issued to another than %s", s.rule.Audience)
	case hasNonce && (key == "" || nonce != Nonce(key)):
		return nil, time.Time{}, errors.New("the token is bound to another key: whoever sent it did not log in for it")
	case !hasNonce && s.rule.RequireNonce:
		return nil, time.Time{}, errors.New("the token is bound to no key, and require_nonce asks for that")
	}
	return claims, t.Expiry, nil
}

// ask returns the description of the issuer, with its keys. It asks the issuer at first and
// again after a while; an issuer that does not answer then leaves its former keys in force.
// However many ask, the issuer is asked once; each of them waits as long as ctx lets it.
func (s *issuer) ask(ctx context.Context) (*provider, error) {
	if p, known, err := s.remembered(); known {
		return p, err
	}
	return s.together(ctx, "about", func() (*provider, error) {
		if p, known, err := s.remembered(); known { // it came meanwhile
			return p, err
		}
		return s.discover()
	})
}

// together has all who ask the issuer the same wait for one answer, each as long as ctx lets it.
func (s *issuer) together(ctx context.Context, what string, do func() (*provider, error)) (*provider, error) {
	answer := s.asking.DoChan(what, func() (any, error) { return do() })
	select {
	case a := <-answer:
		p, _ := a.Val.(*provider)
		return p, a.Err
	case <-ctx.Done():
		return nil, s.away(ctx.Err())
	}
}

// remembered returns the last answer of the issuer, or its last failure, and
// whether they still count.
func (s *issuer) remembered() (p *provider, counts bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	age := s.now().Sub(s.asked)
	if s.known != nil {
		return s.known, age < askAgain, nil
	}
	return nil, age < failsFor, s.failed
}

// discover asks the issuer about itself and for its keys. One of which nothing
// new comes keeps what is known.
func (s *issuer) discover() (*provider, error) {
	next, err := s.describe()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = s.now()
	switch {
	case err == nil:
		s.known = next
	case s.known == nil:
		s.failed = s.away(err)
		return nil, s.failed
	}
	return s.known, nil
}

// describe returns the issuer as it describes itself now, within askFor.
func (s *issuer) describe() (*provider, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askFor) // whoever asks may leave before the others
	defer cancel()
	made, err := oidc.NewProvider(oidc.ClientContext(ctx, s.client), s.rule.URL)
	if _, broken := errors.AsType[*url.Error](err); err != nil && !broken {
		return nil, errors.New(term.Short(err.Error(), maxReason)) // it has the whole answer
	}
	if err != nil {
		return nil, err
	}
	var told struct {
		JWKS    string   `json:"jwks_uri"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
		Scopes  []string `json:"scopes_supported"`
		SaysIss bool     `json:"authorization_response_iss_parameter_supported"`
	}
	if err := made.Claims(&told); err != nil {
		return nil, err
	}
	for field, address := range map[string]string{
		"jwks_uri": told.JWKS, "authorization_endpoint": made.Endpoint().AuthURL, "token_endpoint": made.Endpoint().TokenURL,
	} {
		if !isSafe(address) {
			return nil, fmt.Errorf("its %s %.200q has to begin with https://", field, address)
		}
	}
	keys, err := s.fetchKeys(ctx, told.JWKS)
	return &provider{told.JWKS, keys, made.Endpoint(), told.Methods, told.Scopes, told.SaysIss}, err
}
