package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Account is a key for one provider, and the address where it is valid.
type Account struct {
	Provider Provider

	api  *api
	key  *key
	base *url.URL
	// secret is the key itself. It must not appear in logs and errors.
	secret string
}

// Lookup returns the value of a variable; empty if it is not set. The error says why the value
// cannot be had.
type Lookup func(name string) (string, error)

// Accounts returns the accounts that variables such as ANTHROPIC_API_KEY and
// ANTHROPIC_BASE_URL define.
func Accounts(lookup Lookup) ([]Account, error) {
	var out []Account
	for _, p := range []Provider{Anthropic, OpenAI, Gemini} {
		a, err := accountOf(p, lookup)
		switch {
		case err == nil:
			out = append(out, *a)
		case !errors.Is(err, ErrNoAccount):
			return nil, err
		}
	}
	return out, nil
}

// accountOf returns the account for a provider: of several keys that are set, the first in
// apis. The error is ErrNoAccount if none is.
func accountOf(p Provider, lookup Lookup) (*Account, error) {
	a := apis[p]
	base, err := lookup(a.baseVar)
	if err != nil {
		return nil, err
	}
	for i := range a.keys {
		secret, err := lookup(a.keys[i].variable)
		if err != nil {
			return nil, err
		}
		if secret = strings.TrimSpace(secret); secret == "" {
			continue
		}
		u, err := url.Parse(cmp.Or(base, a.base))
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
			return nil, fmt.Errorf("%s is not an address such as %s", a.baseVar, a.base)
		}
		u.Path = strings.TrimRight(u.Path, "/")
		return &Account{Provider: p, api: a, key: &a.keys[i], base: u, secret: secret}, nil
	}
	return nil, fmt.Errorf("%s: %w", p, ErrNoAccount)
}

// Variables returns every variable that an account is made of.
func Variables() []string {
	var out []string
	for _, p := range []Provider{Anthropic, OpenAI, Gemini} {
		out = append(append(out, apis[p].baseVar), Keys(p)...)
	}
	return out
}

// Keys returns the variables that can hold a provider's key.
func Keys(p Provider) []string {
	var out []string
	for _, k := range apis[p].keys {
		out = append(out, k.variable)
	}
	return out
}

// String returns the name of the key's variable and the host; not the key.
func (a *Account) String() string { return a.key.variable + ", for " + a.base.Host }
