package identity_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/identity/issuertest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// rules is a file of identities for an issuer.
const rules = `issuers:
  - url: %s
    audience: pfl-forge
    people:
      - is: ada
        account: ada
        projects: [shop]
    pattern:
      match: '([a-z0-9-]+)@example\.com'
      projects: [bank]
      no_clean: true
    services:
      - is: system:serviceaccount:pfl-forge:reviewer
        account: reviewer
removed: [mallory]
`

// open returns a book, and the path of its file.
func open(t *testing.T, text string, now func() time.Time) (book *identity.Book, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "identities.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	book, err := identity.Open(path, slog.New(slog.DiscardHandler), now)
	if err != nil {
		t.Fatal(err)
	}
	return book, path
}

// TestTokens checks whose each token is: those that an honest issuer signs for
// us and now are the accounts that the file says, and all others are nobody's.
func TestTokens(t *testing.T) {
	t.Parallel()
	i, other := issuertest.Start(t), issuertest.Start(t)
	book, _ := open(t, fmt.Sprintf(rules, i.URL), time.Now)
	now := time.Now()
	impostor := map[string]any{"iss": i.URL}
	rs256 := map[string]any{"alg": "RS256", "kid": "x"}
	for name, c := range map[string]struct{ token, key, want, reason string }{
		"ada":               {token: i.Sign(nil), want: "ada"},
		"a service":         {token: i.Sign(map[string]any{"sub": "system:serviceaccount:pfl-forge:reviewer"}), want: "reviewer"},
		"by pattern":        {token: i.Sign(map[string]any{"sub": "eve@example.com"}), want: "eve"},
		"bound":             {token: i.Sign(map[string]any{"nonce": identity.Nonce("UKEY")}), key: "UKEY", want: "ada"},
		"two audiences":     {token: i.Sign(map[string]any{"aud": []string{"pfl-forge", "x"}, "azp": "pfl-forge"}), want: "ada"},
		"a clock ahead":     {token: i.Sign(map[string]any{"iat": now.Add(20 * time.Second).Unix()}), want: "ada"},
		"nobody":            {token: i.Sign(map[string]any{"sub": "bob"}), reason: "is not among people"},
		"another namespace": {token: i.Sign(map[string]any{"sub": "system:serviceaccount:evil:reviewer"}), reason: "is not among people"},
		"a runner by name":  {token: i.Sign(map[string]any{"sub": "runner@example.com"}), reason: "taken by pfl-forge itself"},
		"auth by name":      {token: i.Sign(map[string]any{"sub": "auth@example.com"}), reason: "taken by pfl-forge itself"},
		"ada by pattern":    {token: i.Sign(map[string]any{"sub": "ada@example.com"}), reason: "belongs to a person who is listed"},
		"a longer domain":   {token: i.Sign(map[string]any{"sub": "eve@example.com.evil.org"}), reason: "is not among people"},
		"removed":           {token: i.Sign(map[string]any{"sub": "mallory@example.com"}), reason: "was removed"},
		"no subject":        {token: i.Sign(map[string]any{"sub": nil}), reason: "has no claim sub"},
		"a list as subject": {token: i.Sign(map[string]any{"sub": []string{"ada"}}), reason: "unmarshal"},
		"expired":           {token: i.Sign(map[string]any{"exp": now.Add(-time.Second).Unix()}), reason: "expired"},
		"without an end":    {token: i.Sign(map[string]any{"exp": nil}), reason: "expired"},
		"from the future":   {token: i.Sign(map[string]any{"iat": now.Add(time.Hour).Unix()}), reason: "from the future"},
		"not yet":           {token: i.Sign(map[string]any{"nbf": now.Add(time.Hour).Unix()}), reason: "nbf"},
		"without a time":    {token: i.Sign(map[string]any{"iat": nil}), reason: "from the future"},
		"for years":         {token: i.Sign(map[string]any{"iat": now.Add(-48 * time.Hour).Unix(), "exp": now.AddDate(9, 0, 0).Unix()}), reason: "older than"},
		"another audience":  {token: i.Sign(map[string]any{"aud": "mail"}), reason: "audience"},
		"no audience":       {token: i.Sign(map[string]any{"aud": nil}), reason: "audience"},
		"another party":     {token: i.Sign(map[string]any{"azp": "mail"}), reason: "issued to another"},
		"audiences":         {token: i.Sign(map[string]any{"aud": []string{"pfl-forge", "mail"}}), reason: "issued to another"},
		"another issuer":    {token: other.Sign(nil), reason: "no token of the issuer"},
		"in its name":       {token: other.Sign(map[string]any{"iss": i.URL}), reason: "failed to verify"},
		"issuer with slash": {token: i.Sign(map[string]any{"iss": i.URL + "/"}), reason: "no token of the issuer"},
		"another's key":     {token: i.Sign(map[string]any{"nonce": identity.Nonce("UKEY")}), key: "UTHIEF", reason: "bound to another key"},
		"key not proven":    {token: i.Sign(map[string]any{"nonce": identity.Nonce("UKEY")}), reason: "bound to another key"},
		"empty nonce":       {token: i.Sign(map[string]any{"nonce": ""}), key: "UKEY", reason: "bound to another key"},
		"alg none":          {token: i.Forge(map[string]any{"alg": "none"}, nil), reason: "compact form"},
		"none with a tail":  {token: i.Forge(map[string]any{"alg": "none"}, nil) + "eA", reason: "malformed"},
		"HS256":             {token: i.Forge(map[string]any{"alg": "HS256"}, nil), reason: "malformed"},
		"unknown kid":       {token: i.Forge(rs256, nil), reason: "failed to verify"},
		"kid as a path":     {token: i.Forge(map[string]any{"alg": "RS256", "kid": "../../etc/passwd"}, nil), reason: "failed to verify"},
		"own key in header": {token: other.Forge(map[string]any{"alg": "RS256", "jku": other.URL + "/keys"}, impostor), reason: "failed to verify"},
		"huge":              {token: i.Sign(map[string]any{"x": strings.Repeat("x", 1<<16)}), reason: "at most"},
		"empty":             {reason: "compact form"},
		"JSON":              {token: `{"payload": "e30", "signatures": []}`, reason: "compact form"},
		"garbage":           {token: "a.b.c", reason: "cannot be read"},
	} {
		got, err := book.Verify(wait.Context(t), c.token, c.key)
		switch {
		case c.reason == "" && (err != nil || got.Account.Name != c.want):
			t.Errorf("%s: %+v, %v", name, got, err)
		case c.reason != "" && (err == nil || !strings.Contains(err.Error(), c.reason)):
			t.Errorf("%s: %+v, %v; want %q", name, got, err, c.reason)
		}
	}
	if got, err := book.Verify(wait.Context(t), i.Sign(map[string]any{"sub": "eve@example.com"}), ""); err != nil || !got.Account.NoClean ||
		!slices.Equal(got.Account.Projects, []forge.ProjectID{"bank"}) || got.Account.Role != access.Operator {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestEmailHasToBeVerified checks that an email counts only if the issuer says
// that it is its owner's.
func TestEmailHasToBeVerified(t *testing.T) {
	t.Parallel()
	i := issuertest.Start(t)
	book, _ := open(t, fmt.Sprintf("issuers: [{url: %s, audience: pfl-forge, claim: email, require_nonce: true,\n"+
		"  people: [{is: a@b.c, account: ada}]}]\n", i.URL), time.Now)
	bound := identity.Nonce("UKEY")
	for _, verified := range []any{nil, false, "true", 1, "yes"} {
		if got, err := book.Verify(wait.Context(t), i.Sign(map[string]any{"nonce": bound, "email": "a@b.c", "email_verified": verified}), "UKEY"); err == nil {
			t.Errorf("email_verified %v: %+v", verified, got)
		}
	}
	if _, err := book.Verify(wait.Context(t), i.Sign(map[string]any{"nonce": bound, "email": "a@b.c", "email_verified": true}), "UKEY"); err != nil {
		t.Error(err)
	}
	if _, err := book.Verify(wait.Context(t), i.Sign(map[string]any{"email": "a@b.c", "email_verified": true}), "UKEY"); err == nil {
		t.Error("a token that is bound to no key is taken")
	}
}

// TestKeysOfTheIssuer checks an issuer that is away, that replaces its key, and that withdraws one.
func TestKeysOfTheIssuer(t *testing.T) {
	t.Parallel()
	i := issuertest.Start(t)
	clock := time.Now()
	book, _ := open(t, fmt.Sprintf(rules, i.URL), func() time.Time { return clock })
	verify := func(token string) error {
		_, err := book.Verify(wait.Context(t), token, "")
		return err
	}
	i.Away(true)
	if err := verify(i.Sign(nil)); err == nil || !strings.Contains(err.Error(), "cannot be asked") {
		t.Error(err)
	}
	i.Away(false)
	clock = clock.Add(10 * time.Second)
	former := i.Sign(nil)
	if err := verify(former); err != nil {
		t.Error(err)
	}
	i.Away(true)
	if err := verify(former); err != nil { // its keys are known
		t.Error(err)
	}
	clock = clock.Add(11 * time.Minute)
	if err := verify(former); err != nil {
		t.Errorf("an issuer that is away: %v", err)
	}
	i.Away(false)
	i.Rotate()
	if err := verify(i.Sign(nil)); err != nil {
		t.Errorf("the new key: %v", err)
	}
	clock = clock.Add(11 * time.Minute)
	if err := verify(former); err == nil {
		t.Error("the former key counts after it was withdrawn")
	}
	before := i.Asked(issuertest.Keys)
	for n := range 200 { // each with an id that nobody knows
		_ = verify(i.Forge(map[string]any{"alg": "RS256", "kid": fmt.Sprint(n), "x": n}, map[string]any{"sub": "bob"}))
		_ = verify(former)
	}
	if n := i.Asked(issuertest.Keys) - before; n > 3 {
		t.Errorf("the issuer was asked %d times for its keys", n)
	}
}

// TestRulesAreReadAgain checks that a person who is taken out of the file is
// not known any more, and that a broken file leaves the former one in force.
func TestRulesAreReadAgain(t *testing.T) {
	t.Parallel()
	i := issuertest.Start(t)
	text := fmt.Sprintf(rules, i.URL)
	book, path := open(t, text, time.Now)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if a, err := book.Person(i.URL, "ada"); err != nil || !a.Login {
		t.Error(a, err)
	}
	if a, err := book.Person(i.URL, "eve"); err != nil || !a.NoClean {
		t.Error(a, err)
	}
	for _, nobody := range []string{"mallory", "runner", "", "a b", "*"} {
		if a, err := book.Person(i.URL, nobody); err == nil {
			t.Error(nobody, a)
		}
	}
	write("garbage")
	if _, err := book.Person(i.URL, "ada"); err != nil {
		t.Error(err)
	}
	write(strings.Replace(text, "removed: [", "removed: [ada, ", 1))
	if a, err := book.Person(i.URL, "ada"); err == nil {
		t.Error(a)
	}
	if _, err := book.Verify(wait.Context(t), i.Sign(nil), ""); err == nil {
		t.Error("a person who was removed logs in")
	}
}

// TestBadRules checks that a mistake in the file is told with its field.
func TestBadRules(t *testing.T) {
	for text, want := range map[string]string{
		"issuers: []\n": "issuers",
		"issuers: [{url: 'http://a.example', audience: x, people: [{is: a, account: a}]}]\n":                         "https://",
		"issuers: [{url: 'https://a', people: [{is: a, account: a}]}]\n":                                             "audience",
		"issuers: [{url: 'https://a', audience: x}]\n":                                                               "who is let in",
		"issuers: [{url: 'https://a', audience: x, people: [{is: a, account: runner}]}]\n":                           "people[0]",
		"issuers: [{url: 'https://a', audience: x, people: [{account: a}]}]\n":                                       "is:",
		"issuers: [{url: 'https://a', audience: x, services: [{is: a, account: operator}]}]\n":                       "services[0]",
		"issuers: [{url: 'https://a', audience: x, services: [{is: a, account: auth}]}]\n":                           "services[0]",
		"issuers: [{url: 'https://a', audience: x, pattern: {match: '.*'}}]\n":                                       "first group",
		"issuers: [{url: 'https://a', audience: x, pattern: {match: '(x', projects: [a]}}]\n":                        "first group",
		"issuers: [{url: 'https://a', audience: x, pattern: {match: '(x)', projects: ['A B']}}]\n":                   "project",
		"session: 48h\nissuers: [{url: 'https://a', audience: x, people: [{is: a, account: a}]}]\n":                  "session",
		"issuers: [{url: 'https://a', audience: x, people: [{is: a, account: a}], ca: /nowhere}]\n":                  "ca:",
		"issuers: [{url: 'https://a', audience: x, persons: []}]\n":                                                  "persons",
		"issuers: [&a {url: 'https://a', audience: x, people: [{is: a, account: a}]}, *a]\n":                         "anchor",
		"issuers: [{url: 'https://u:p@a', audience: x, people: [{is: a, account: a}]}]\n":                            "url",
		"issuers: [{url: 'https://a', audience: x, people: [{is: a, account: a, projects: [shop, 'b/c']}]}]\n":       "people[0]",
		"issuers: [{url: 'https://a', audience: x, services: [{is: a, account: reviewer, projects: [shop]}]}]\n":     "services[0]",
		"issuers: [{url: 'https://a', audience: x, services: [{is: a, account: reviewer, no_clean: true}]}]\n":       "services[0]",
		"issuers: [{url: 'https://a', audience: x, people: [{is: a, account: a}]}, {url: 'https://a', audience: y}]": "issuers[1]",
	} {
		path := filepath.Join(t.TempDir(), "identities.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := identity.Open(path, slog.New(slog.DiscardHandler), time.Now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}

// FuzzRules reads files of anybody: nothing panics, and what is taken can be asked.
func FuzzRules(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(rules, "https://login.example.com")))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := identity.Parse("i.yaml", data)
		if (r == nil) == (err == nil) {
			t.Errorf("%v, %v", r, err)
		}
	})
}

// FuzzTokens: of all texts those that the issuer has signed are tokens, for
// whom it has signed them.
func FuzzTokens(f *testing.F) {
	i := issuertest.Start(f)
	signed := map[string]string{}
	sign := func(token, account string) string {
		signed[token[:strings.LastIndexByte(token, '.')]] = account
		return token
	}
	ada := sign(i.Sign(nil), "ada")
	bound := sign(i.Sign(map[string]any{"nonce": identity.Nonce("UKEY")}), "ada")
	f.Add(ada, "")
	f.Add(bound, "UKEY")
	f.Add(sign(i.Sign(map[string]any{"sub": "eve@example.com"}), "eve"), "")
	f.Add(i.Sign(map[string]any{"sub": "mallory@example.com"}), "")
	f.Add(i.Forge(map[string]any{"alg": "none"}, nil), "")
	f.Add("e30.bnVsbA.eA", "")
	path := filepath.Join(f.TempDir(), "identities.yaml")
	if err := os.WriteFile(path, []byte(fmt.Sprintf(rules, i.URL)), 0o600); err != nil {
		f.Fatal(err)
	}
	book, err := identity.Open(path, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, token, key string) {
		known, err := book.Verify(t.Context(), token, key)
		if err != nil {
			return
		}
		if account := signed[token[:strings.LastIndexByte(token, '.')]]; account == "" || known.Account.Name != account {
			t.Errorf("%q counts as %s", token, known.Account.Name)
		}
	})
}
