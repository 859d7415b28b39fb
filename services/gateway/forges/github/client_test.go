package github_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/person"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/github"
)

// clock is moved by tests.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newClock returns one at the present second: tokens of Apps have times.
func newClock() *clock { return &clock{now: time.Now().UTC().Truncate(time.Second)} }

// file returns the path of a new file.
func file(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// newClient returns a client that is closed with the test.
func newClient(t testing.TB, cfg github.Config) *github.Client {
	t.Helper()
	c, err := github.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// clientOf returns a client of the account bot.
func clientOf(t testing.TB, url string, at *clock) *github.Client {
	t.Helper()
	return newClient(t, github.Config{URL: url, TokenFile: file(t, "bot\n"), Now: at.Now})
}

// world is a fake forge with a repository of root1, in which bot may administer and ada write.
type world struct {
	t    *testing.T
	fake *forgetest.Fake
	at   *clock
}

const repo = "root1/web"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, fake: forgetest.NewFake(), at: newClock()}
	t.Cleanup(w.fake.Close)
	w.makeRepo("root1")
	w.as("root1", "PUT", "/repos/"+repo+"/collaborators/bot", `{"permission": "admin"}`)
	w.as("root1", "PUT", "/repos/"+repo+"/collaborators/ada", `{"permission": "write"}`)
	w.as("root1", "POST", "/repos/"+repo+"/labels", `{"name": "forge"}`)
	return w
}

// makeRepo has a person make a repository of the name web.
func (w *world) makeRepo(user string) {
	w.t.Helper()
	w.as(user, "POST", "/user/repos", `{"name": "web"}`)
}

// as has a person act, by Gitea's API of the fake.
func (w *world) as(user, method, path, body string) {
	w.t.Helper()
	person.Person{API: w.fake.URL() + person.Gitea, Token: user}.Does(w.t, method, path, json.RawMessage(body), nil)
}

// bot returns a client of the account bot.
func (w *world) bot() *github.Client { return clientOf(w.t, w.fake.URL(), w.at) }

// key is that of the App, made once: it takes a while.
var key = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

// keyFile returns the path of a file with the App's key, as GitHub gives it.
func keyFile(t testing.TB) string {
	t.Helper()
	return file(t, string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key())})))
}

// app returns a client of an installation.
func (w *world) app(installation int64) *github.Client {
	w.t.Helper()
	return newClient(w.t, github.Config{
		URL: w.fake.URL(), Now: w.at.Now, App: &github.App{ID: "Iv1", Installation: installation, KeyFile: keyFile(w.t)},
	})
}

// parkedUntil reports whether an error says that nothing is asked for a time from now.
func (w *world) parkedUntil(err error, d time.Duration) bool {
	parked, ok := errors.AsType[*forges.ParkedError](err)
	return ok && parked.Until.Equal(w.at.Now().Add(d))
}

// TestLimits: each form of GitHub's limits is told with its end, nothing is
// asked before that, and a right that is missing is none.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	const secondary = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
	const tomorrow = "99999999999"
	usedUp := http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {tomorrow}}
	for what, test := range map[string]struct {
		fault forgetest.Fault
		until time.Duration
	}{
		"secondary, with its end":    {forgetest.Fault{Status: 403, Header: http.Header{"Retry-After": {"90"}}, Message: secondary}, 90 * time.Second},
		"secondary, by 429":          {forgetest.Fault{Status: 429, Header: http.Header{"Retry-After": {"90"}}}, 90 * time.Second},
		"secondary, by words alone":  {forgetest.Fault{Status: 403, Header: http.Header{"X-Ratelimit-Reset": {tomorrow}}, Message: secondary}, time.Minute},
		"secondary, its former name": {forgetest.Fault{Status: 403, Message: "You have triggered an abuse detection mechanism."}, time.Minute},
		"primary, for ever":          {forgetest.Fault{Status: 429, Header: usedUp}, time.Hour},
	} {
		c := w.bot()
		w.fake.Script(test.fault)
		if _, err := c.Self(wait.Context(t)); !w.parkedUntil(err, test.until) {
			t.Errorf("%s: %v", what, err)
		}
		before := w.fake.Asked("GET", "/user")
		w.at.move(test.until - time.Second)
		if _, err := c.Repository(wait.Context(t), repo); !w.parkedUntil(err, time.Second) || w.fake.Asked("GET", "/user")+w.fake.Asked("GET", repo) != before {
			t.Errorf("%s: before its end: %v", what, err)
		}
		w.at.move(time.Second)
		if _, err := c.Self(wait.Context(t)); err != nil {
			t.Errorf("%s: after its end: %v", what, err)
		}
	}
	p, ofPulls := w.pull() // GraphQL has the limit of the same account
	w.fake.Script(forgetest.Fault{Part: "/graphql", Status: 403, Header: http.Header{"Retry-After": {"90"}}, Message: secondary})
	err := ofPulls.EditPull(wait.Context(t), repo, p.Number, forges.PullText{Title: "T", Draft: true})
	if _, again := ofPulls.Self(wait.Context(t)); !w.parkedUntil(err, 90*time.Second) || !w.parkedUntil(again, 90*time.Second) {
		t.Errorf("by GraphQL: %v, and then %v", err, again)
	}
	c := w.bot()
	w.fake.Script(forgetest.Fault{Status: 403, Message: "Resource not accessible by personal access token"})
	if _, err := c.Self(wait.Context(t)); !errors.Is(err, forges.ErrDenied) || !strings.Contains(err.Error(), "our token has not been given that right") {
		t.Errorf("a right that is missing: %v", err)
	}
	if _, err := c.Self(wait.Context(t)); err != nil {
		t.Errorf("after a right that is missing: %v", err)
	}
}

// TestPrimaryLimit: what is so still costs nothing of the limit, and when it is
// used up its end is told.
func TestPrimaryLimit(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bot(), wait.Context(t)
	w.as("eve", "POST", "/repos/"+repo+"/issues", `{"title": "T", "body": "B"}`)
	look := func() {
		t.Helper()
		if _, err := c.Issue(ctx, repo, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Comments(ctx, repo, forges.OfIssue(1), time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	look()
	before := w.fake.Hub.Left()
	look()
	if left := w.fake.Hub.Left(); left != before {
		t.Errorf("a look at what did not change has cost %d requests", before-left)
	}
	w.as("eve", "POST", "/repos/"+repo+"/issues/1/comments", `{"body": "more"}`)
	if list, err := c.Comments(ctx, repo, forges.OfIssue(1), time.Time{}); err != nil || len(list) != 1 || w.fake.Hub.Left() != before-1 {
		t.Errorf("after a change the comments are %+v, %v", list, err)
	}
	w.fake.Hub.UseUp(1, w.at.Now().Add(10*time.Minute))
	_, _ = c.Say(ctx, repo, forges.OfIssue(1), "x")
	if _, err := c.Say(ctx, repo, forges.OfIssue(1), "y"); !w.parkedUntil(err, 10*time.Minute) {
		t.Errorf("used up: %v", err)
	}
}

// TestFaults: what is no limit is told apart as well, and nothing of the token is in an error.
func TestFaults(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bot(), wait.Context(t)
	for what, test := range map[string]struct {
		fault forgetest.Fault
		until time.Duration
		is    error
	}{
		"a fault of its own":  {forgetest.Fault{Status: 502}, 30 * time.Second, nil},
		"a bad token":         {forgetest.Fault{Status: 401}, 0, forges.ErrDenied},
		"gone":                {forgetest.Fault{Status: 410}, 0, forges.ErrNotFound},
		"sent elsewhere":      {forgetest.Fault{Status: 301, Header: http.Header{"Location": {"https://elsewhere.test/x"}}}, 0, nil},
		"sent round for ever": {forgetest.Fault{Status: 301, Header: http.Header{"Location": {w.fake.URL() + "/api/v3/loop"}}}, 0, nil},
		"bad":                 {forgetest.Fault{Status: 422, Message: "a\nb\x1b[2J"}, 0, nil},
	} {
		w.fake.Script(test.fault)
		_, err := c.Self(ctx)
		if err == nil || test.until > 0 && !w.parkedUntil(err, test.until) || test.is != nil && !errors.Is(err, test.is) ||
			strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.fake.Script(forgetest.Fault{})
	if err := c.Edit(ctx, repo, forges.OfIssue(1), 1, "x"); !w.parkedUntil(err, 30*time.Second) {
		t.Errorf("it hangs up: %v", err)
	}
}

// TestTheTokenStays: redirects lead nowhere but to the forge itself, however it is spelled.
func TestTheTokenStays(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	for _, status := range []int{301, 302, 307, 308} {
		first := httptest.NewServer(http.RedirectHandler(other.URL, status))
		c := clientOf(t, first.URL, newClock())
		_, err := c.Self(wait.Context(t))
		if err == nil || asked {
			t.Errorf("%d was followed: %v", status, err)
		}
		if err := c.Edit(wait.Context(t), "a/b", forges.OfIssue(1), 1, "x"); err == nil || asked {
			t.Errorf("%d of a change was followed: %v", status, err)
		}
		first.Close()
	}
}

// TestSettings: each error names its setting, and has nothing of what is in the files.
func TestSettings(t *testing.T) {
	token, notRSA := file(t, "bot"), file(t, "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n")
	good := github.App{ID: "Iv1", Installation: 7, KeyFile: keyFile(t)}
	with := func(change func(*github.App)) *github.App {
		a := good
		change(&a)
		return &a
	}
	for want, cfg := range map[string]github.Config{
		"url: ":             {URL: "http://github.com", TokenFile: token},
		"token_file: ":      {URL: "https://github.com"},
		"app: ":             {URL: "https://github.com", TokenFile: token, App: &good},
		"app.id: ":          {URL: "https://github.com", App: with(func(a *github.App) { a.ID = "a\nb" })},
		"app.installation:": {URL: "https://github.com", App: with(func(a *github.App) { a.Installation = 0 })},
		"app.key_file: its": {URL: "https://github.com", App: with(func(a *github.App) { a.KeyFile = notRSA })},
		"app.key_file: it ": {URL: "https://github.com", App: with(func(a *github.App) { a.KeyFile = token })},
	} {
		if _, err := github.New(cfg); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "AAAA") {
			t.Errorf("want %s, got %v", want, err)
		}
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key())
	if err != nil {
		t.Fatal(err)
	}
	other := file(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
	if _, err := github.New(github.Config{URL: "https://github.com", App: with(func(a *github.App) { a.KeyFile = other })}); err != nil {
		t.Errorf("a key of PKCS #8: %v", err)
	}
}
