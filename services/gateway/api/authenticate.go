package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

const (
	// maxSecret bounds a token of the file, in bytes: a longer one is not looked for there.
	maxSecret = 200
	// maxReason bounds the reason that is told of a token that does not count,
	// in characters: the token may have any text.
	maxReason = 300
)

// authenticate finds out whose token the request has: one of the operator's
// file, or else one of the issuer.
func (c *call) authenticate() error {
	if h := holderOf(c.r); h != nil {
		t, err := h.find()
		if err != nil {
			return problem(http.StatusUnauthorized, err.Error())
		}
		c.find, c.token = h.find, t
		return nil
	}
	// A proxy before the gateway may have checked the first of two headers, and the gateway
	// the second. So two are refused.
	values := c.r.Header.Values("Authorization")
	if len(values) != 1 {
		return c.unauthorized("", "give one header: Authorization: Bearer <token>")
	}
	scheme, secret, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return c.unauthorized("", "give one header: Authorization: Bearer <token>")
	}
	err := tokens.ErrUnknown
	if len(secret) <= maxSecret {
		c.find = func() (*tokens.Token, error) { return c.api.cfg.Tokens.Find(secret) }
		c.token, err = c.find()
	}
	if errors.Is(err, tokens.ErrUnknown) && c.api.cfg.Logins != nil && identity.IsToken(secret) {
		return c.loggedIn(secret)
	}
	if err != nil {
		return c.unauthorized(invalidToken, err.Error())
	}
	c.secret = secret
	return nil
}

// loggedIn finds out who has logged in at the issuer and whose entry of the file that is. What they
// may is the entry's, as it is now: the token says who they are, and nothing else of it counts.
func (c *call) loggedIn(token string) error {
	who, err := c.api.cfg.Logins.Verify(c.r.Context(), token)
	if errors.Is(err, identity.ErrAway) {
		p := problem(http.StatusServiceUnavailable, "the issuer of this token cannot be asked now: nothing was done")
		p.retryAfter = runnerPause
		return fmt.Errorf("%w (%w)", p, err) // the log has why: it may be a wrong ca
	}
	if err != nil {
		return c.unauthorized(invalidToken, "this token does not count: "+term.Short(err.Error(), maxReason))
	}
	issuer := c.api.cfg.Logins.Issuer()
	t, err := c.api.cfg.Tokens.ByLogin(who.Name)
	if err != nil {
		// There may be as many of them as have an account at the issuer, and
		// none has a limit by a name of the file.
		if !c.api.strangers.allow(issuer, who.Subject) {
			return tooOften("you are in no entry of the operator's file of tokens, and ask too often")
		}
		// To log in again does not help. The operator enters the name as it is.
		return problem(http.StatusForbidden, fmt.Sprintf("you are %q at the issuer: %v", who.Name, err))
	}
	c.secret, c.token = token, t
	// It is whole: two people whose names begin alike are two in the journal.
	// Its parts have bounds, by which it fits.
	c.login = fmt.Sprintf("token %s by login %s at %s", t.Name, who.Subject, issuer)
	c.find = func() (*tokens.Token, error) {
		who, err := c.api.cfg.Logins.Verify(c.r.Context(), token)
		if err != nil {
			return nil, err
		}
		return c.api.cfg.Tokens.ByLogin(who.Name)
	}
	return nil
}

// invalidToken is the code of RFC 6750 for a token that does not count.
const invalidToken = "invalid_token"

// unauthorized returns the problem of a request without a token that counts. Where people log
// in at an issuer it says how; code is one of RFC 6750, empty for a request without a token.
func (c *call) unauthorized(code, detail string) error {
	p := problem(http.StatusUnauthorized, detail)
	at := c.api.cfg.Logins
	if at == nil {
		return p
	}
	advice := fmt.Sprintf("log in with pfl-forge login --issuer %s --client-id %s", at.Issuer(), at.Client())
	p.Detail += "; " + advice
	if code != "" {
		p.challenge = fmt.Sprintf(` error="%s",`, code)
	}
	p.challenge += fmt.Sprintf(` error_description="%s"`, quotable(advice))
	return p
}

// quotable returns a text as it may stand between quotes in a header.
func quotable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return '?'
		}
		return r
	}, text)
}

// caller returns whoever asks, for a runner.
func (c *call) caller() *requests.Caller {
	name, person := c.token.Holder()
	if c.api.cfg.Direct {
		return &requests.Caller{Name: name, Person: person}
	}
	who := &requests.Caller{
		Name: name, Person: person, Gateway: c.api.cfg.Account, Account: "token " + c.token.Name, Ref: "request " + c.id,
	}
	if c.login != "" {
		who.Account = c.login
	}
	if h := holderOf(c.r); h != nil && h.account != "" {
		who.Account, who.Ref, who.Later = h.account, h.ref, h.later
	}
	return who
}

// again reports whether the token still counts for the route.
func (c *call) again(context.Context) bool {
	t, err := c.find()
	return err == nil && t.Name == c.token.Name && t.May(c.project, c.route.Verb)
}
