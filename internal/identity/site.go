package identity

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/time/rate"
)

// SiteConfig says by which issuer people sign in to pages of ours.
type SiteConfig struct {
	// Issuer is its URL, as its tokens have it.
	Issuer string
	// Client is the id that it knows us by, and SecretFile has the secret that
	// it gave us; empty where it gave none.
	Client, SecretFile string
	// Claim names the claim that tells people apart; sub if it is empty.
	Claim string
	// CA is a file with the authorities of the issuer's certificate; empty for the system's.
	CA string
	// Back is the address of ours to which its page leads back, as the issuer has it registered.
	Back string
	// Stays asks the issuer for something to refresh a login with, after its
	// first token has expired.
	Stays bool
	// Now is the clock.
	Now func() time.Time
}

// Site has people log in on the page of an issuer, which leads them back to a page of
// ours with a code, and finds out by the code who they are. It is the authorization
// code flow of OpenID Connect with PKCE (RFC 7636). It is safe for concurrent use.
type Site struct {
	cfg    SiteConfig
	issuer *issuer
	// codes bounds how many codes are sent, which can be made up. Each may have the keys
	// fetched, too: both fit into the bound of the issuer, so that no login ends between them.
	codes *rate.Limiter
}

// ErrOften says that too many codes were sent to an issuer, by whomever, so
// that another one was not sent.
var ErrOften = errors.New("the issuer was sent too many codes")

// NewSite returns a Site. The issuer is asked at the first login. An error
// names a field as a file of settings has it.
func NewSite(cfg SiteConfig) (*Site, error) {
	i, err := cfg.issuer(true)
	return &Site{cfg: cfg, issuer: i, codes: rate.NewLimiter(rate.Every(500*time.Millisecond), 4)}, err
}

// issuer returns the issuer of the settings, whose tokens may have to be bound to a login.
func (c *SiteConfig) issuer(bound bool) (*issuer, error) {
	rule := Rule{URL: c.Issuer, Audience: c.Client, Claim: c.Claim, CA: c.CA, RequireNonce: bound}
	if field, err := rule.checkSite(); err != nil {
		return nil, fmt.Errorf("%s: %w", map[string]string{"url": "issuer", "audience": "client_id"}[field], err)
	}
	return newIssuer(rule, c.Now)
}

// Attempt is one login. All of it stays with the browser that began it: whoever
// has seen the code of another can do nothing with it.
type Attempt struct {
	// State comes back with the code, Key binds the token to the login, and Verifier proves that
	// the code is ours. Without a Key the token is bound to nothing, and counts for who has it.
	State, Key, Verifier string
}

// NewBearerAttempt returns an attempt whose token is for requests to a Bearer.
func NewBearerAttempt() Attempt {
	return Attempt{State: rand.Text(), Verifier: oauth2.GenerateVerifier()}
}

// NewAttempt returns an attempt for a key; empty for one that is made up.
func NewAttempt(key string) Attempt {
	if key == "" {
		key = rand.Text()
	}
	return Attempt{State: rand.Text(), Key: key, Verifier: oauth2.GenerateVerifier()}
}

// Begin returns the address of the issuer's page for an attempt.
func (s *Site) Begin(ctx context.Context, a Attempt) (string, error) {
	cfg, err := s.config(ctx)
	if err != nil {
		return "", err
	}
	if a.Key == "" {
		return cfg.AuthCodeURL(a.State, oauth2.S256ChallengeOption(a.Verifier)), nil
	}
	return cfg.AuthCodeURL(a.State, oauth2.S256ChallengeOption(a.Verifier), oidc.Nonce(Nonce(a.Key))), nil
}

// Grant has the texts that an issuer gave for a login.
type Grant struct {
	// Token is the ID token, which is not verified.
	Token string
	// Refresh gets the next one, once or more often, as the issuer wants it; empty if it gave none.
	Refresh string
}

// ErrGrant says that an issuer gives nothing for a code, or for what it gave to
// refresh a login with: only another login helps.
var ErrGrant = errors.New("the issuer does not take the code")

// Token returns the grant of who has logged in. query is that of the address to
// which the issuer led back, whose state the caller has compared. The error is
// ErrOften where the code was not sent, and counts later.
//
// The code of another issuer is not sent (RFC 9207): ours would have it, and
// could end the login there in the person's place.
func (s *Site) Token(ctx context.Context, a Attempt, query url.Values) (Grant, error) {
	p, err := s.issuer.ask(ctx)
	if err != nil {
		return Grant{}, err
	}
	if from := query.Get("iss"); from != s.cfg.Issuer && (from != "" || p.saysIssuer) {
		return Grant{}, fmt.Errorf("the issuer leads back in the name of %.200q: nothing was sent", from)
	}
	code := query.Get("code")
	if code == "" {
		return Grant{}, fmt.Errorf("the issuer refuses: %.200q", query.Get("error"))
	}
	cfg, err := s.config(ctx)
	if err != nil {
		return Grant{}, err
	}
	if !s.codes.Allow() {
		return Grant{}, ErrOften
	}
	return s.issuer.granted(cfg.Exchange(oidc.ClientContext(ctx, s.issuer.client), code, oauth2.VerifierOption(a.Verifier)))
}

// Refresh returns a new grant for one whose token is about to expire. Errors: ErrGrant
// where the issuer wants another login, and ErrAway, after which it may be tried
// again. An issuer that gives nothing new to refresh with wants the same used again.
func (s *Site) Refresh(ctx context.Context, g Grant) (Grant, error) {
	if g.Refresh == "" {
		return Grant{}, fmt.Errorf("%w: it gave none to refresh the login with", ErrGrant)
	}
	cfg, err := s.config(ctx)
	if err != nil {
		return Grant{}, err
	}
	expired := &oauth2.Token{RefreshToken: g.Refresh}
	next, err := s.issuer.granted(cfg.TokenSource(oidc.ClientContext(ctx, s.issuer.client), expired).Token())
	if next.Refresh == "" {
		next.Refresh = g.Refresh
	}
	return next, err
}

// granted returns the grant in an answer of the issuer. Errors: ErrGrant, ErrAway.
func (s *issuer) granted(answer *oauth2.Token, err error) (Grant, error) {
	if err != nil {
		return Grant{}, s.notGranted(err)
	}
	g := Grant{Refresh: answer.RefreshToken}
	if g.Token, _ = answer.Extra("id_token").(string); g.Token == "" {
		return Grant{}, fmt.Errorf("%w: it has sent no ID token", ErrGrant)
	}
	return g, nil
}

// notGranted returns ErrGrant for a refusal in the words of OAuth 2.0 (RFC 6749,
// 5.2), and ErrAway for everything else: no answer, one that says that the
// issuer is busy or broken, and the page of a proxy before it may be followed by
// a grant. The library's own error would quote what came, which may be a page.
func (s *issuer) notGranted(err error) error {
	if broken, ok := errors.AsType[*url.Error](err); ok {
		return s.away(broken.Err)
	}
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok {
		return s.away(errors.New("it answers with no token"))
	}
	status := refused.Response.StatusCode
	if refused.ErrorCode == "" || status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		return s.away(fmt.Errorf("it answers with status %d", status))
	}
	return fmt.Errorf("%w: %.200q", ErrGrant, refused.ErrorCode)
}

// End returns who has logged in: the value of the claim in a token that was
// issued for this attempt. The rest is as with Token.
func (s *Site) End(ctx context.Context, a Attempt, query url.Values) (string, error) {
	given, err := s.Token(ctx, a, query)
	if err != nil {
		return "", err
	}
	claims, _, err := s.issuer.claims(ctx, given.Token, a.Key)
	if err != nil {
		return "", err
	}
	return s.issuer.rule.value(claims)
}

// config returns the settings of the library for the issuer. The secret is read
// each time, so that it can be replaced.
func (s *Site) config(ctx context.Context) (*oauth2.Config, error) {
	p, err := s.issuer.ask(ctx)
	if err != nil {
		return nil, err
	}
	cfg := &oauth2.Config{ClientID: s.cfg.Client, Endpoint: p.endpoint, RedirectURL: s.cfg.Back, Scopes: []string{oidc.ScopeOpenID, "profile", "email"}}
	if s.cfg.Stays && slices.Contains(p.scopes, oidc.ScopeOfflineAccess) { // some issuers refuse a scope that they do not know
		cfg.Scopes = append(cfg.Scopes, oidc.ScopeOfflineAccess)
	}
	// Without a style the library would try both, and send a code that is refused twice.
	cfg.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	if s.cfg.SecretFile != "" {
		text, err := os.ReadFile(s.cfg.SecretFile)
		if err != nil {
			return nil, fmt.Errorf("client_secret: %w", err)
		}
		cfg.ClientSecret = strings.TrimSpace(string(text))
		if slices.Contains(p.methods, "client_secret_basic") || !slices.Contains(p.methods, "client_secret_post") {
			cfg.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
		}
	}
	return cfg, nil
}
