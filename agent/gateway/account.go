package gateway

import (
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

// FromEnvironment returns the accounts that variables such as ANTHROPIC_API_KEY and
// ANTHROPIC_BASE_URL define. Of several keys for one provider the first in apis is
// used. lookup is os.LookupEnv.
func FromEnvironment(lookup func(string) (string, bool)) ([]Account, error) {
	var out []Account
	for _, p := range []Provider{Anthropic, OpenAI, Gemini} {
		a := apis[p]
		base := a.base
		if v, ok := lookup(a.baseVar); ok && v != "" {
			base = v
		}
		for i := range a.keys {
			secret, ok := lookup(a.keys[i].variable)
			if secret = strings.TrimSpace(secret); !ok || secret == "" {
				continue
			}
			u, err := url.Parse(base)
			if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
				return nil, fmt.Errorf("%s is not an address such as %s", a.baseVar, a.base)
			}
			u.Path = strings.TrimRight(u.Path, "/")
			out = append(out, Account{Provider: p, api: a, key: &a.keys[i], base: u, secret: secret})
			break
		}
	}
	return out, nil
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
