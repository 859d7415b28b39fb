package overhttp

import (
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// secret is the token of the tests.
const secret = "s3cret-token"

// heardToken counts the requests, and n those with the token.
type heardToken struct{ n, asked atomic.Int32 }

func (h *heardToken) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.asked.Add(1)
	if strings.Contains(fmt.Sprint(r.Header, r.URL), secret) {
		h.n.Add(1)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{}`)
}

// serve answers requests until the test ends.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s.URL
}

// client returns a client of a server, with bounds that a test does not wait for.
func client(t *testing.T, server string) *Client {
	t.Helper()
	c, err := New(Config{Server: server, Token: secret, Project: "shop", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c.bounds = bounds{answer: 5 * time.Second, all: 20 * time.Second, pause: time.Second, tries: 3, bytes: 64 << 10, silence: 5 * time.Second}
	t.Cleanup(c.Close)
	return c
}

// says answers with a status, a kind of content and a text.
func says(status int, kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

// wants checks that an error says something, and not the token.
func wants(t *testing.T, about string, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), secret) {
		t.Errorf("%s: %v, want %q", about, err, text)
	}
}

// TestRedirectTakesNoToken: whoever answers for the gateway cannot have the
// token sent elsewhere, nor to itself without TLS.
func TestRedirectTakesNoToken(t *testing.T) {
	t.Parallel()
	thief := &heardToken{}
	elsewhere := serve(t, thief.ServeHTTP)
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		c := client(t, serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere+"/take?x="+secret, status) }))
		_, err := c.Overview(wait.Context(t))
		wants(t, fmt.Sprint(status), err, "the server sends on to "+elsewhere+", where nothing was sent")
		_, err = c.Ask(wait.Context(t), forge.Event{To: forge.Key{Project: "shop", Intent: "a"}, Message: &forge.Cancel{}})
		wants(t, fmt.Sprint(status), err, "where nothing was sent")
	}
	if n := thief.n.Load(); n > 0 {
		t.Errorf("the token was sent on %d times", n)
	}
}

// TestAddresses refuses addresses to which a token is not sent, before anything is.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]string{
		"http://forge.example.com":          "--server: without TLS everybody on the way can read the token: give https://forge.example.com",
		"http://127.0.0.1.example.com":      "--server: without TLS",
		"http://10.0.0.1:8080":              "--server: without TLS",
		"https://user:" + secret + "@host":  "--server: leave out the user and the password",
		"https://host/?token=" + secret:     "--server: leave out what follows the path",
		"https://":                          "--server: not an address",
		"https://host:port\n":               "--server: not an address",
		"https://forge.example.com":         "",
		"https://forge.example.com/api/v1/": "",
		"https://example.com/forge":         "",
		"http://127.0.0.1:8080":             "",
		"http://[::1]:8080":                 "",
		"http://localhost:8080":             "",
	} {
		_, err := New(Config{Server: server, Token: secret, Project: "shop"})
		if want == "" && err != nil {
			t.Errorf("%s: %v", server, err)
		} else if want != "" {
			wants(t, server, err, want)
		}
	}
	c, err := New(Config{Server: "https://example.com/forge/api/v1", Token: secret, Project: "shop"})
	if got := c.path("intents", "a/../b"); err != nil || got != "https://example.com/forge/api/v1/projects/shop/intents/a%2F..%2Fb" {
		t.Errorf("%s, %v", got, err)
	}
	for token, want := range map[string]string{"": "is empty", "a b": "holds more", "a\nb": "holds more", strings.Repeat("x", 201): "at most 200"} {
		_, err := New(Config{Server: "https://host", Token: token, Project: "shop"})
		wants(t, "a token", err, want)
	}
}

// TestNameOfAnotherMachine: a name that is said to be this machine, and leads
// elsewhere, gets no token without TLS.
func TestNameOfAnotherMachine(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1": true, "127.8.9.10": true, "::1": true, "::ffff:127.0.0.1": true,
		"10.0.0.1": false, "192.168.0.1": false, "169.254.0.1": false, "0.0.0.0": false, "203.0.113.7": false, "fe80::1": false, "::ffff:10.0.0.1": false,
	} {
		if got := isThisMachine(&net.TCPAddr{IP: net.ParseIP(address), Port: 80}); got != want {
			t.Errorf("%s is this machine: %t", address, got)
		}
	}
	// A machine need not have an address that others reach; what is not of TCP
	// is none of the loopback either.
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	_, err = client(t, "http://localhost:1").dial(wait.Context(t), "unix", l.Addr().String())
	wants(t, "dial", err, "another machine")
}

// TestAnswersOfOthers: what is no answer of a gateway is told as such: a page to
// log in, half an answer, one without an end, one that does not come, and nonsense.
func TestAnswersOfOthers(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("[", 64<<10)); err != nil {
				return
			}
		}
	}
	half := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"intents":[`)
	}
	slow := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	for name, one := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a page to log in":   {says(200, "text/html; charset=utf-8", "<html>Sign in"), "a web page where a gateway answers with JSON"},
		"a page of an error": {says(502, "text/html", "<html>Bad gateway"), "status 502 (Bad Gateway) and a web page, as no gateway does"},
		"no kind":            {says(200, "", "{}"), "where a gateway answers with JSON"},
		"no JSON":            {says(200, "application/json", "{"), "is not JSON"},
		"another shape":      {says(200, "application/json", `{"intents": {"a": 1}}`), "is not understood: intents"},
		"no gateway":         {says(404, "text/plain", "\x1b[2J"), "and text/plain, as no gateway does"},
		"half":               {half, "did not come as a whole"},
		"endless":            {endless, "more than 65536 bytes"},
		"slow":               {slow, "no answer in time"},
		"a list in a circle": {says(200, "application/json", `{"intents": [], "next": "a"}`), "does not end"},
	} {
		c := client(t, serve(t, one.answer))
		if name == "slow" {
			c.bounds.answer = 50 * time.Millisecond
		}
		_, err := c.Overview(ctx)
		wants(t, name, err, one.want)
		if err != nil && strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%s: the error steers a terminal: %q", name, err)
		}
	}
}

// TestCertificates: a certificate that the system does not know is refused,
// once, and taken with the file of its authority.
func TestCertificates(t *testing.T) {
	t.Parallel()
	heard := &heardToken{}
	s := httptest.NewUnstartedServer(heard)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	s.StartTLS()
	defer s.Close()
	_, err := client(t, s.URL).Overview(wait.Context(t))
	wants(t, "unknown", err, "--tls-ca names a file")
	if heard.n.Load() > 0 {
		t.Error("the token was sent to a server that is not known")
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Server: s.URL, Token: secret, CA: file, Project: "shop", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Overview(wait.Context(t)); err != nil || heard.n.Load() != 1 {
		t.Errorf("with its authority: %v, %d requests", err, heard.n.Load())
	}
	_, err = New(Config{Server: s.URL, Token: secret, CA: file + ".none", Project: "shop"})
	wants(t, "no file", err, "--tls-ca: ")
}

// TestTexts: no text of an answer steers a terminal, be it a word of ours or
// one that is not known, and fields of a newer version are passed over.
func TestTexts(t *testing.T) {
	t.Parallel()
	const evil, hidden = `\u001b]0;x\u0007\u009b31m`, `\u202e`
	list := `{"newer": 1, "intents": [{"key": {"project": "shop", "intent": "a` + evil + `"}, "title": "t` + evil + `", "status": "done` + evil + `",
		"newer": {"x": [1]}, "tasks": [{"id": "a-001` + evil + `", "detail": "d` + evil + `\nline"}], "requester": "r` + evil + hidden + `"}],
		"project": [{"project": {"queue": {"a-001` + evil + `": "next` + evil + `"}}}]}`
	c := client(t, serve(t, says(200, "application/json", list)))
	all, err := c.Overview(wait.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	if s := all.Intents[0]; s.Title != "t" || s.Key.Intent != "a" || s.Status != forge.StatusDone || s.Tasks[0].Detail != "d\nline" {
		t.Errorf("it is %+v", s)
	}
	if text := fmt.Sprintf("%+v %+v", all, all.Project[0].Project); strings.ContainsAny(text, "\x1b\x07\u009b\u202e") {
		t.Errorf("%q steers a terminal", text)
	}
	c = client(t, serve(t, says(400, "application/problem+json", `{"detail": "d", "errors": [{"field": "f`+evil+`", "reason": "r`+evil+`"}]}`)))
	_, err = c.Queue(wait.Context(t))
	wants(t, "a problem", err, "f: r")
	if strings.ContainsAny(err.Error(), "\x1b\x07\u009b\u202e") {
		t.Errorf("%q steers a terminal", err)
	}
}
