package identity

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Rules are the content of the file.
type Rules struct {
	// Session is for how long a login is good; DefaultSession if it is left out.
	Session string `yaml:"session"`
	// Issuers sign tokens.
	Issuers []Rule `yaml:"issuers"`
	// Removed are people who are not let in any more, whatever an issuer says.
	Removed []string `yaml:"removed"`
}

// Rule says what the tokens of one issuer are good for.
type Rule struct {
	// URL is that of the issuer, as its tokens have it.
	URL string `yaml:"url"`
	// Audience is the client id of pfl-forge, which the tokens have to name.
	Audience string `yaml:"audience"`
	// Claim names the claim that tells people apart; sub if it is left out.
	Claim string `yaml:"claim"`
	// RequireNonce refuses tokens that are not bound to the key of a login.
	RequireNonce bool `yaml:"require_nonce"`
	// CA is a file with the authorities of the issuer's certificate; empty for the
	// system's.
	CA string `yaml:"ca"`
	// TokenFile holds a token that the issuer wants to be shown before it tells its
	// keys, as Kubernetes does.
	TokenFile string `yaml:"token_file"`
	// People are known one by one, by the value of the claim.
	People []Entry `yaml:"people"`
	// Pattern makes an account of whoever matches it.
	Pattern *Pattern `yaml:"pattern"`
	// Services are service accounts, by the claim sub.
	Services []Entry `yaml:"services"`
}

// Entry makes one value of a claim an account.
type Entry struct {
	// Is is the value of the claim.
	Is string `yaml:"is"`
	// Account is the name of the person, or the role of the service.
	Account string `yaml:"account"`
	// Projects are those of the person; none means all.
	Projects []string `yaml:"projects"`
	// NoClean says that the person may not have removed what intents left.
	NoClean bool `yaml:"no_clean"`
}

// Pattern makes accounts of all values of a claim that match.
type Pattern struct {
	// Match is a regular expression for the whole value. Its first group is the name
	// of the account.
	Match string `yaml:"match"`
	// Projects are those of each of these people; none means all.
	Projects []string `yaml:"projects"`
	// NoClean says that they may not have removed what intents left.
	NoClean bool `yaml:"no_clean"`

	match *regexp.Regexp
}

const (
	// DefaultSession is for how long a login is good.
	DefaultSession = 8 * time.Hour
	// maxSession bounds it.
	maxSession = 24 * time.Hour
	// DefaultClaim tells people apart where no other claim is named.
	DefaultClaim = "sub"
	// emailClaim counts only if the issuer has verified it.
	emailClaim = "email"
)

// Parse reads the content of a file of rules. name is that of the file, for errors.
func Parse(name string, data []byte) (*Rules, error) {
	var r Rules
	if _, err := strictyaml.Decode(data, &r, strictyaml.Options{File: name}); err != nil {
		return nil, err
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &r, nil
}

// check refuses rules that make no sense, and fills in defaults.
func (r *Rules) check() error {
	if d, err := r.session(); err != nil || d < time.Minute || d > maxSession {
		return fmt.Errorf("session: %q is no time between 1m and %s, such as 8h", r.Session, maxSession)
	}
	if len(r.Issuers) == 0 {
		return errors.New("issuers: name one at least")
	}
	seen := map[string]bool{}
	for i := range r.Issuers {
		rule := &r.Issuers[i]
		if err := rule.check(); err != nil {
			return fmt.Errorf("issuers[%d]: %w", i, err)
		}
		if seen[rule.URL] {
			return fmt.Errorf("issuers[%d]: url: %s is there twice", i, rule.URL)
		}
		seen[rule.URL] = true
	}
	return nil
}

// session returns for how long a login is good.
func (r *Rules) session() (time.Duration, error) {
	if r.Session == "" {
		return DefaultSession, nil
	}
	return time.ParseDuration(r.Session)
}

// check does the same for one issuer. An address without TLS is one of this machine:
// keys that came over a network in the clear would be those of whoever is on the
// way.
func (r *Rule) check() error {
	if field, err := r.checkSite(); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	if len(r.People)+len(r.Services) == 0 && r.Pattern == nil {
		return errors.New("say who is let in, by people, pattern or services")
	}
	return r.checkEntries()
}

// isSafe reports whether no one on the way can read or alter what goes to an
// address and comes back: by TLS, or on this machine.
func isSafe(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "127.0.0.1" || u.Hostname() == "localhost"))
}

// checkSite refuses an issuer whose tokens prove nothing, by a field, and fills in the claim.
func (r *Rule) checkSite() (field string, err error) {
	u, err := url.Parse(r.URL)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "url", fmt.Errorf("%q is not the https address of an issuer", r.URL)
	case !isSafe(r.URL):
		return "url", fmt.Errorf("%q has to begin with https://: anyone who can alter its keys can let in anyone", r.URL)
	case r.Audience == "":
		return "audience", errors.New("say whom the tokens have to be for; others of this issuer would count otherwise")
	}
	if r.Claim == "" {
		r.Claim = DefaultClaim
	}
	return "", nil
}

// checkEntries refuses accounts that there cannot be.
func (r *Rule) checkEntries() error {
	for i, e := range r.People {
		if err := e.check(access.Operator); err != nil {
			return fmt.Errorf("people[%d]: %w", i, err)
		}
	}
	for i, e := range r.Services {
		if err := e.check(access.Role(e.Account)); err != nil {
			return fmt.Errorf("services[%d]: %w", i, err)
		}
		if !slices.Contains(access.Services(), access.Role(e.Account)) || len(e.Projects) > 0 || e.NoClean {
			return fmt.Errorf("services[%d]: account: want one of %v, and no projects", i, access.Services())
		}
	}
	if r.Pattern == nil {
		return nil
	}
	var err error
	if r.Pattern.match, err = regexp.Compile(`^(?:` + r.Pattern.Match + `)$`); err != nil || r.Pattern.match.NumSubexp() < 1 {
		return fmt.Errorf("pattern: match: %q is no regular expression whose first group is the name of an account", r.Pattern.Match)
	}
	_, err = newPerson("x", r.Pattern.Projects, false)
	return err
}

// check refuses an entry without a value, or with a name that no account may have.
func (e *Entry) check(role access.Role) error {
	if e.Is == "" {
		return errors.New("is: give the value of the claim")
	}
	if role != access.Operator {
		_, err := access.NewAccount(role, e.Account)
		return err
	}
	_, err := newPerson(e.Account, e.Projects, e.NoClean)
	return err
}

// newPerson returns the account of a person who comes by a login.
func newPerson(name string, projects []string, noClean bool) (access.Account, error) {
	var ids []forge.ProjectID
	for _, p := range projects {
		id, err := forge.ParseProjectID(p)
		if err != nil {
			return access.Account{}, err
		}
		ids = append(ids, id)
	}
	account, err := access.NewAccount(access.Operator, name, ids...)
	account.NoClean, account.Login = noClean, true
	return account, err
}

// account returns whose account the claims of a token are, or why they are of no
// account. A value that is listed counts before the pattern, and services before
// people.
func (r *Rules) account(rule *Rule, claims map[string]any) (access.Account, error) {
	if sub, _ := claims[DefaultClaim].(string); sub != "" {
		for _, e := range rule.Services {
			if e.Is == sub {
				return access.NewAccount(access.Role(e.Account), e.Account)
			}
		}
	}
	value, err := rule.value(claims)
	if err != nil {
		return access.Account{}, err
	}
	for _, e := range rule.People {
		if e.Is == value {
			return r.person(rule.URL, e.Account)
		}
	}
	if rule.Pattern != nil {
		if m := rule.Pattern.match.FindStringSubmatch(value); m != nil {
			if r.listed(m[1]) {
				return access.Account{}, fmt.Errorf("the name %s belongs to a person who is listed: the pattern may not make it of another", m[1])
			}
			return r.person(rule.URL, m[1])
		}
	}
	return access.Account{}, fmt.Errorf("%q, the %s of the token, is not among people, pattern and services", value, rule.Claim)
}

// MaxName bounds the name that an issuer has for a person, in bytes. OpenID
// Connect Core bounds the claim sub by it.
const MaxName = 255

// value returns the value of the claim that tells people apart.
func (r *Rule) value(claims map[string]any) (string, error) {
	value, err := nameIn(claims, r.Claim)
	if err == nil && r.Claim == emailClaim && claims["email_verified"] != true {
		err = errors.New("the issuer has not verified the email of the token")
	}
	return value, err
}

// nameIn returns the value of a claim that names a person. It is taken as a whole or not
// at all: cut, or without a character that is not shown, it may be the name of another.
func nameIn(claims map[string]any, claim string) (string, error) {
	value, _ := claims[claim].(string)
	switch {
	case value == "":
		return "", fmt.Errorf("the token has no claim %s", claim)
	case len(value) > MaxName:
		return "", fmt.Errorf("the %s of the token has %d bytes; a name has at most %d", claim, len(value), MaxName)
	case term.Line(value) != value:
		return "", fmt.Errorf("the %s of the token, %q, has a character that is not shown, or white space where none is", claim, value)
	}
	return value, nil
}

// person returns a person's account by its name, as the rules of an issuer have it.
// They need not say so of the value of a claim: a login that is under way is known
// by its name alone.
func (r *Rules) person(issuer, name string) (access.Account, error) {
	if slices.Contains(r.Removed, name) {
		return access.Account{}, fmt.Errorf("%s was removed", name)
	}
	for i := range r.Issuers {
		rule := &r.Issuers[i]
		if rule.URL != issuer {
			continue
		}
		for _, e := range rule.People {
			if e.Account == name {
				return newPerson(e.Account, e.Projects, e.NoClean)
			}
		}
		if rule.Pattern == nil {
			break
		}
		if r.listed(name) {
			return access.Account{}, fmt.Errorf("%s is listed with another issuer", name)
		}
		return newPerson(name, rule.Pattern.Projects, rule.Pattern.NoClean)
	}
	return access.Account{}, fmt.Errorf("%s is not among the people of %s", name, issuer)
}

// listed reports whether the name is that of a person whom the file lists, with any
// issuer.
func (r *Rules) listed(name string) bool {
	return slices.ContainsFunc(r.Issuers, func(rule Rule) bool {
		return slices.ContainsFunc(rule.People, func(e Entry) bool { return e.Account == name })
	})
}
