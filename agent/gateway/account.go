package gateway

import (
	"fmt"
	"net/url"
	"strings"
)

// Account is a key of a provider, and where it is good.
type Account struct {
	Provider Provider

	api    *api
	key    *key
	base   *url.URL
	secret string
}

// FromEnvironment returns the accounts that variables such as ANTHROPIC_API_KEY and
// ANTHROPIC_BASE_URL name. lookup is os.LookupEnv.
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

// String names the variable that the key is in, and where it is good; not the key.
func (a *Account) String() string { return a.key.variable + ", for " + a.base.Host }
