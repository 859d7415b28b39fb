package login

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// At says where a person has logged in. Issuer and Client are compared with
// what a token says of itself.
type At struct {
	// Issuer is the URL, and Client the id that it knows the command line by. Both
	// may be empty where a token is given as it is; the issuer is then the token's.
	Issuer string `json:"issuer"`
	Client string `json:"client_id"`
	// IssuerCA is the path of a file with the authorities of the issuer's
	// certificate; empty for the system's.
	IssuerCA string `json:"issuer_ca"`
	// Subject is the claim sub, by which the issuer knows the person for ever. New fills it in.
	Subject string `json:"sub"`
}

// claims are those of a token that are of use here. Its signature is not looked
// at: the gateway does that.
type claims struct {
	Issuer   string   `json:"iss"`
	Audience audience `json:"aud"`
	Subject  string   `json:"sub"`
	Username string   `json:"preferred_username"`
	Email    string   `json:"email"`
	Issued   float64  `json:"iat"`
	Expires  float64  `json:"exp"`
}

// audience are the programs that a token is for. Of one the token may have the name alone.
type audience []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audience) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(a))
}

// New returns the login of a grant, as of now. A token of another issuer or for
// another program than was asked for is refused: it would be sent to the gateway,
// and what refreshes it to the other issuer. Server and CA are left open.
//
// The time for which the token of a login counts begins now: the clocks of the
// issuer and of this machine may be apart. A token that was given as it is may
// be old, and counts until it says itself.
func New(at At, g identity.Grant, now time.Time) (Login, error) {
	c, err := read(g.Token)
	if err != nil {
		return Login{}, err
	}
	given := at.Issuer == ""
	switch {
	case c.name() == "":
		return Login{}, errors.New("the token says of no person that it is theirs")
	case len(c.Subject) > identity.MaxName:
		return Login{}, fmt.Errorf("the sub of the token has %d bytes; a name has at most %d", len(c.Subject), identity.MaxName)
	case !given && c.Issuer != at.Issuer:
		return Login{}, fmt.Errorf("the token is of the issuer %.200q, and not of %s", c.Issuer, at.Issuer)
	case at.Client != "" && !slices.Contains(c.Audience, at.Client):
		return Login{}, fmt.Errorf("the token is for %.200q, and not for %s", strings.Join(c.Audience, ", "), at.Client)
	}
	until := now.Add(seconds(c.Expires - c.Issued))
	if given {
		until = now.Add(seconds(c.Expires - float64(now.Unix())))
		if !until.After(now) {
			return Login{}, errors.New("the token has expired, by the clock of this machine")
		}
	}
	at.Issuer, at.Subject = c.Issuer, c.Subject
	return Login{At: at, Token: g.Token, Refresh: g.Refresh, Until: until.Round(0), Name: c.name()}, nil
}

// read returns the claims of a token.
func read(token string) (c claims, err error) {
	if !identity.IsToken(token) {
		return c, errors.New("what the issuer gave is no token in the compact form of a signed JWT")
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil || json.Unmarshal(payload, &c) != nil {
		return c, errors.New("the claims of the token cannot be read")
	}
	return c, nil
}

// seconds returns a time that may be anything. No token counts for longer than identity.MaxAge.
func seconds(n float64) time.Duration {
	return time.Duration(min(max(n, 0), identity.MaxAge.Seconds())) * time.Second
}

// name returns a name of the account that people know. It is shown, and nothing follows from it.
func (c *claims) name() string {
	for _, name := range []string{c.Username, c.Email} {
		if name = term.Line(name); name != "" && len(name) <= identity.MaxName {
			return name
		}
	}
	return term.Line(c.Subject)
}
