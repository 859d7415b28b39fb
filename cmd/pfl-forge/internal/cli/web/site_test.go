package web

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// repository makes one of a person whose name no account could have.
func repository(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shop")
	for _, line := range [][]string{
		{"init", "-q", "-b", "main", dir},
		{"-C", dir, "config", "user.name", "Ada Lovelace"},
		{"-C", dir, "config", "user.email", "ada@example.com"},
		{"-C", dir, "commit", "-q", "--allow-empty", "-m", "first"},
	} {
		if out, err := exec.Command("git", line...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", line, err, out)
		}
	}
	return dir
}

// served is a console that runs until its test ends.
type served struct {
	t *testing.T
	// base is its origin, and enter the address that it printed, without the origin.
	base, enter string
	client      *http.Client
}

// serveConsole runs the command.
func serveConsole(t *testing.T, dir string) *served {
	t.Helper()
	out, in := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, &kit.App{Where: kit.Where{Dir: dir}, Out: in, Err: io.Discard, Getenv: func(string) string { return "" }}, 0)
	}()
	transport := &http.Transport{}
	t.Cleanup(func() {
		stop()
		transport.CloseIdleConnections()
		if err := wait.For(t, ended); err != nil {
			t.Errorf("it ended: %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return &served{t, "http://" + u.Host, u.RequestURI(), &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answer is that to a request.
type answer struct {
	status int
	header http.Header
	text   string
	cookie *http.Cookie // that was set; nil if none was
}

// ask sends a request. The headers are pairs of a name and a value; the name
// Host is that of the request.
func (s *served) ask(method, path string, cookie *http.Cookie, headers ...string) answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(wait.Context(s.t), method, s.base+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	if cookie != nil {
		r.AddCookie(cookie)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, text: string(data)}
	for _, c := range resp.Cookies() {
		if c.Value != "" {
			a.cookie = c
		}
	}
	return a
}

// follow begins to follow a stream, and returns what comes when it has ended.
func (s *served) follow(path string, c *http.Cookie) <-chan string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(wait.Context(s.t), http.MethodGet, s.base+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	r.AddCookie(c)
	resp, err := s.client.Do(r) //nolint:bodyclose // the goroutine that reads it does
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatal(resp, err)
	}
	told := make(chan string, 1)
	go func() {
		data, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		told <- string(data)
	}()
	return told
}

// opened opens the address as a browser does.
func (s *served) opened() *http.Cookie {
	s.t.Helper()
	a := s.ask(http.MethodGet, s.enter, nil)
	if a.status != http.StatusSeeOther || a.cookie == nil {
		s.t.Fatalf("the address: %d\n%s", a.status, a.text)
	}
	return a.cookie
}

// TestAddressCountsOnce: the address leads in one browser, once, and to a page
// whose address has no secret. What is not a person who opens it does not use
// it up, and whoever else has the port learns nothing and starts nothing.
func TestAddressCountsOnce(t *testing.T) {
	dir := repository(t)
	s := serveConsole(t, dir)
	for what, a := range map[string]answer{
		"no session":     s.ask(http.MethodGet, "/console/inbox", nil),
		"a wrong secret": s.ask(http.MethodGet, "/console/?token=x", nil),
		"an empty one":   s.ask(http.MethodGet, "/console/?token=", nil),
		"HEAD":           s.ask(http.MethodHead, s.enter, nil),
		"in advance":     s.ask(http.MethodGet, s.enter, nil, "Sec-Purpose", "prefetch;prerender"),
		"a form":         s.ask(http.MethodPost, "/console/sign-in", nil, "Sec-Fetch-Site", "same-origin"),
		"changes":        s.ask(http.MethodGet, "/console/projects/shop/events", nil),
	} {
		if a.status < 400 || a.cookie != nil || strings.Contains(a.text, "Ada") || strings.Contains(a.text, "shop") {
			t.Errorf("%s: %d, cookie %v\n%s", what, a.status, a.cookie, a.text)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, ".forge")); !os.IsNotExist(err) {
		t.Errorf("somebody else had the server started: %v", err)
	}
	first := s.ask(http.MethodGet, s.enter, nil)
	c := first.cookie
	if first.status != http.StatusSeeOther || first.header.Get("Location") != "/console/" || c == nil {
		t.Fatalf("the address: %d, to %s, %v", first.status, first.header.Get("Location"), c)
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(s.base, "http://"), ":")
	if c.Name != "pfl-forge-session-"+port || !c.HttpOnly || c.Secure || c.Domain != "" || c.SameSite != http.SameSiteLaxMode {
		t.Errorf("the cookie is %+v", c)
	}
	if again := s.ask(http.MethodGet, s.enter, nil); again.status != http.StatusUnauthorized || again.cookie != nil ||
		!strings.Contains(again.text, "pfl-forge console") {
		t.Errorf("once more, by another browser: %d, %v\n%s", again.status, again.cookie, again.text)
	}
	if again := s.ask(http.MethodGet, s.enter, c); again.status != http.StatusSeeOther || again.header.Get("Location") != "/console/" {
		t.Errorf("once more, by the same browser: %d", again.status)
	}
	if page := s.ask(http.MethodGet, "/console/inbox", c); page.status != http.StatusOK || !strings.Contains(page.text, "Ada Lovelace") ||
		!strings.Contains(page.text, "No run is active") || strings.Contains(page.text, "Sign out") {
		t.Errorf("the inbox: %d\n%s", page.status, page.text)
	}
}

// TestOtherNamesAndOrigins: by a name that leads to this machine nothing is answered, and
// what a page of another port sends is not done, though a browser sends the cookie along.
func TestOtherNamesAndOrigins(t *testing.T) {
	s := serveConsole(t, repository(t))
	host := strings.TrimPrefix(s.base, "http://")
	_, port, _ := strings.Cut(host, ":")
	for _, name := range []string{
		"evil.example:" + port, "127.0.0.1:1", "127.0.0.1", "localhost.evil.example:" + port, "127.0.0.1.nip.io:" + port, "[::1]:" + port,
	} {
		if a := s.ask(http.MethodGet, s.enter, nil, "Host", name); a.status != http.StatusMisdirectedRequest || a.cookie != nil {
			t.Errorf("as %s: %d, %v", name, a.status, a.cookie)
		}
	}
	if a := s.ask(http.MethodGet, "/console/inbox", nil, "Host", "localhost:"+port); a.status != http.StatusUnauthorized {
		t.Errorf("as localhost: %d", a.status)
	}
	c, path := s.opened(), "/console/projects/shop/intents/x/decide"
	for what, headers := range map[string][]string{
		"another port":  {"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:1"},
		"another site":  {"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"},
		"by origin":     {"Origin", "http://127.0.0.1:1"},
		"another name":  {"Origin", "http://localhost:" + port},
		"who says none": nil,
	} {
		if a := s.ask(http.MethodPost, path, c, headers...); a.status != http.StatusForbidden {
			t.Errorf("%s: %d\n%s", what, a.status, a.text)
		}
	}
	if a := s.ask(http.MethodPost, path, c, "Sec-Fetch-Site", "same-origin", "Origin", s.base); a.status != http.StatusBadRequest {
		t.Errorf("its own page: %d\n%s", a.status, a.text)
	}
}

// TestTwoConsoles: a session counts in the console that began it alone,
// whatever name its cookie gets, and what is not there has no other address.
func TestTwoConsoles(t *testing.T) {
	dir := repository(t)
	one, two := serveConsole(t, dir), serveConsole(t, dir)
	first, second := one.opened(), two.opened()
	stolen := *first
	stolen.Name = second.Name
	if a := two.ask(http.MethodGet, "/console/inbox", &stolen); a.status != http.StatusUnauthorized {
		t.Errorf("a session of another console: %d", a.status)
	}
	for what, s := range map[string]answer{
		"one": one.ask(http.MethodGet, "/console/board", first), "two": two.ask(http.MethodGet, "/console/board", second),
	} {
		if s.status != http.StatusOK {
			t.Errorf("%s: %d\n%s", what, s.status, s.text)
		}
	}
	for _, path := range []string{"/api/v1/projects/shop/intents", "/console/../api/v1/projects/shop/intents", "/console//inbox", "/x"} {
		if a := one.ask(http.MethodGet, path, first); a.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}

// TestIdlePageIsTold: while no run goes on, a page is told of what another
// command decides, and holds nothing that the command needs.
func TestIdlePageIsTold(t *testing.T) {
	dir := repository(t)
	s := serveConsole(t, dir)
	c := s.opened()
	told := s.follow("/console/projects/shop/events", c)
	repo, err := local.OpenRepository(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	other, err := local.Open(t.Context(), repo, (&kit.App{}).Log())
	if err != nil {
		t.Fatal(err)
	}
	r, err := other.Bus.Submissions.Ask(t.Context(), forge.Event{
		ID: "e", To: forge.Key{Project: "shop", Intent: "x"}, Actor: repo.Actor,
		Message: &forge.Submit{Intent: forge.Intent{
			Settings: forge.Settings{Title: "A title", Body: "Body"}, Project: "shop", ID: "x", Source: forge.SourceHuman,
			Origin: forge.Origin{System: "test", EventID: "x"},
		}},
	})
	other.Close(t.Context())
	if err != nil || r.Decision != forge.Applied {
		t.Fatal(r, err)
	}
	if text := wait.For(t, told); !strings.HasPrefix(text, "retry: 500\n\n") {
		t.Errorf("the page was told %q", text)
	}
	if a := s.ask(http.MethodGet, "/console/board", c); a.status != http.StatusOK || !strings.Contains(a.text, "A title") {
		t.Errorf("the board: %d\n%s", a.status, a.text)
	}
}
