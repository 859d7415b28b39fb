package identity

import (
	"context"
	"fmt"
	"time"
)

// Bearer verifies tokens of an issuer that come with requests, one with each.
// It is safe for concurrent use.
//
// A token counts that the issuer has signed for the client id of the Bearer, now,
// and that is bound to no login: one with a nonce is proof of the login that made
// the nonce, as at the console or of a connection to NATS, and of nothing else.
type Bearer struct {
	cfg    SiteConfig
	issuer *issuer
}

// Person is the subject of a token.
type Person struct {
	// Name is the value of the claim that tells people apart.
	Name string
	// Subject is the claim sub, by which the issuer itself knows them for ever.
	// It is whole, and so is Name.
	Subject string
	// Until is when the token expires.
	Until time.Time
}

// maxIssuer bounds the URL of an issuer, in bytes: with MaxName and the name of
// an entry it fits into the journal, which takes 500.
const maxIssuer = 150

// NewBearer returns a Bearer. Of the settings it has no use for SecretFile and Back. The issuer
// is asked when the first token comes. An error names a field as a file of settings has it.
func NewBearer(cfg SiteConfig) (*Bearer, error) {
	if len(cfg.Issuer) > maxIssuer {
		return nil, fmt.Errorf("issuer: has %d bytes; at most %d fit into the journal, beside the name of a person", len(cfg.Issuer), maxIssuer)
	}
	i, err := cfg.issuer(false)
	return &Bearer{cfg, i}, err
}

// IsToken reports whether a text has the form of a token of an issuer, so that
// Verify is worth a try.
func IsToken(text string) bool { return len(text) <= maxToken && compact.MatchString(text) }

// Verify returns who a token is about. The error says why it does not count, in words for
// whoever sent it; it is ErrAway where that cannot be known, because the issuer does not answer.
func (b *Bearer) Verify(ctx context.Context, token string) (Person, error) {
	url, err := issuerOf(token)
	if err != nil {
		return Person{}, err
	}
	if url != b.cfg.Issuer { // its signature is not looked at: that would have our issuer asked for the key of another
		return Person{}, fmt.Errorf("no token of the issuer %.200q is taken", url)
	}
	claims, until, err := b.issuer.claims(ctx, token, "")
	if err != nil {
		return Person{}, err
	}
	name, err := b.issuer.rule.value(claims)
	if err != nil {
		return Person{}, err
	}
	subject, err := nameIn(claims, DefaultClaim)
	if err != nil {
		return Person{}, err
	}
	return Person{name, subject, until}, nil
}

// Issuer returns the URL of the issuer.
func (b *Bearer) Issuer() string { return b.cfg.Issuer }

// Client returns the id that tokens have to be for.
func (b *Bearer) Client() string { return b.cfg.Client }
