package gitea_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/gitea"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// now is the time of the client's clock.
var now = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

// clientOf returns a client for an address, with a clock that stands still.
func clientOf(t testing.TB, url string) *gitea.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("bot\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := gitea.New(gitea.Config{URL: url, TokenFile: path, Bots: []string{"Robot"}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestFaults: each way in which a forge fails is told from the others, and a
// limit with the time of its end.
func TestFaults(t *testing.T) {
	f := forgetest.NewFake()
	defer f.Close()
	c := clientOf(t, f.URL())
	date := now.Add(time.Minute).Format(http.TimeFormat)
	usedUp := http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1777888860"}}
	for what, fault := range map[string]struct {
		fault forgetest.Fault
		until time.Duration // of a ParkedError
		is    error
	}{
		"too many":              {forgetest.Fault{Status: 429, Header: http.Header{"Retry-After": {"90"}}}, 90 * time.Second, nil},
		"too many, by date":     {forgetest.Fault{Status: 429, Header: http.Header{"Retry-After": {date}}}, time.Minute, nil},
		"too many, for ever":    {forgetest.Fault{Status: 429, Header: http.Header{"Retry-After": {"99999999999"}}}, time.Hour, nil},
		"too many, for a day":   {forgetest.Fault{Status: 429, Header: http.Header{"Retry-After": {"86400"}}}, time.Hour, nil},
		"used up":               {forgetest.Fault{Status: 403, Header: usedUp}, time.Minute, nil},
		"a fault of its own":    {forgetest.Fault{Status: 502}, 30 * time.Second, nil},
		"not allowed":           {forgetest.Fault{Status: 403}, 0, forges.ErrDenied},
		"a token that is bad":   {forgetest.Fault{Status: 401}, 0, forges.ErrDenied},
		"gone":                  {forgetest.Fault{Status: 410}, 0, forges.ErrNotFound},
		"a redirect":            {forgetest.Fault{Status: 302, Header: http.Header{"Location": {"https://elsewhere.test"}}}, 0, nil},
		"a request that is bad": {forgetest.Fault{Status: 422}, 0, nil},
	} {
		f.Script(fault.fault)
		_, err := c.Self(wait.Context(t))
		parked, ok := errors.AsType[*forges.ParkedError](err)
		if err == nil || ok != (fault.until > 0) || ok && !parked.Until.Equal(now.Add(fault.until)) || fault.is != nil && !errors.Is(err, fault.is) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := c.Self(wait.Context(t)); err != nil {
		t.Errorf("after all that: %v", err)
	}
	f.Script(forgetest.Fault{}) // it hangs up; a request that changes nothing would be sent again at once
	err := c.Edit(wait.Context(t), "a/b", forges.OfIssue(1), 1, "x")
	if parked, ok := errors.AsType[*forges.ParkedError](err); !ok || !parked.Until.Equal(now.Add(30*time.Second)) {
		t.Errorf("it hangs up: %v", err)
	}
}

// TestTheTokenStays: a redirect is not followed, so the token goes to no other
// place; and no error has it.
func TestTheTokenStays(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer first.Close()
	if _, err := clientOf(t, first.URL).Self(wait.Context(t)); err == nil || asked {
		t.Errorf("the redirect was followed: %v", err)
	}
	for _, url := range []string{"http://git.example.com", "https://ada:secret@git.example.com", "git.example.com", "ftp://localhost", "https://x/?a=b"} {
		if _, err := gitea.New(gitea.Config{URL: url}); err == nil || !strings.HasPrefix(err.Error(), "url: ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("two\nlines"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := gitea.New(gitea.Config{URL: "https://x", TokenFile: empty}); err == nil || strings.Contains(err.Error(), "lines\"") {
		t.Errorf("a token of two lines: %v", err)
	}
}

// TestHint: a delivery leads to the issue that it is about, and to nothing if it is about
// a pull request or anything else; names in it are checked before they become a path.
func TestHint(t *testing.T) {
	c := clientOf(t, "https://git.example.com")
	want := forges.Hint{
		Repository: "shop/web", RepositoryID: 3, Number: 7, Text: intake.Hash("T", "B"), At: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC),
	}
	body := `{"action": "opened", "issue": {"number": 7, "title": "T", "body": "B", "pull_request": null, "updated_at": "2026-05-04T03:02:01Z"}, ` +
		`"sender": {"id": 8, "login": "eve"}, "repository": {"id": 3, "full_name": "shop/web"}}`
	if got, err := c.Hint("issues", []byte(body)); got != want || err != nil {
		t.Errorf("the hint is %+v, %v", got, err)
	}
	comment := strings.Replace(body, "opened", `edited", "comment": {"id": 1}, "x": "`, 1)
	if got, err := c.Hint("issue_comment", []byte(comment)); got != want || err != nil {
		t.Errorf("the hint of an edited comment is %+v, %v", got, err)
	}
	want.Editor, want.EditorID = "eve", 8
	if got, err := c.Hint("issues", []byte(strings.Replace(body, "opened", "edited", 1))); got != want || err != nil {
		t.Errorf("the hint of an edited issue is %+v, %v", got, err)
	}
	for change, fails := range map[[2]string]bool{
		{"7", "-7"}: false, {`"id": 3`, `"id": 0`}: false, {`"issue"`, `"release"`}: false,
		{"shop/web", "../web"}: true, {"{", "["}: true, {"7", `"7"`}: true,
	} {
		if got, err := c.Hint("issues", []byte(strings.Replace(body, change[0], change[1], 1))); (err != nil) != fails || got != (forges.Hint{}) {
			t.Errorf("%v: %+v, %v", change, got, err)
		}
	}
}

// TestHintOfPulls: what happens to a pull request leads to it, whatever the
// event is; a status and a push lead to their commit.
func TestHintOfPulls(t *testing.T) {
	c := clientOf(t, "https://git.example.com")
	const commit = "a466e452e239ae3ae94b6b16ce3ca92377690546"
	pull := forges.Hint{Repository: "shop/web", RepositoryID: 3, Number: 7, Pull: true}
	of := forges.Hint{Repository: "shop/web", RepositoryID: 3, Commit: commit}
	for body, want := range map[string]forges.Hint{
		`"action": "opened", "number": 7, "pull_request": {"number": 7}`:       pull,
		`"action": "reviewed", "pull_request": {"number": 7}, "review": {}`:    pull,
		`"action": "created", "issue": {"number": 7, "pull_request": {}}`:      pull,
		`"sha": "` + commit + `", "context": "ci", "state": "success"`:         of,
		`"ref": "refs/heads/forge/a", "before": "", "after": "` + commit + `"`: of,
		`"sha": "../../issues", "state": "success"`:                            {},
		`"number": -7, "pull_request": {}`:                                     {},
		`"number": 7`:                                                          {},
	} {
		if got, err := c.Hint("x", []byte(`{`+body+`, "repository": {"id": 3, "full_name": "shop/web"}}`)); got != want || err != nil {
			t.Errorf("%s leads to %+v, %v", body, got, err)
		}
	}
}

// FuzzHint: whatever a delivery holds, it leads to a repository that can be asked for, or nowhere.
func FuzzHint(f *testing.F) {
	f.Add([]byte(`{"issue": {"number": 7, "title": "T"}, "repository": {"id": 3, "full_name": "shop/web"}}`))
	f.Add([]byte(`{"sha": "a466e452e239ae3ae94b6b16ce3ca92377690546", "repository": {"id": 3, "full_name": "shop/web"}}`))
	c := clientOf(f, "https://git.example.com")
	f.Fuzz(func(t *testing.T, body []byte) {
		h, err := c.Hint("issues", body)
		nowhere := h.Number <= 0 && h.Commit == "" || h.Number < 0 || h.RepositoryID <= 0
		if err == nil && h.Repository != "" && (intake.CheckRepository(h.Repository) != nil || nowhere) {
			t.Errorf("%q leads to %+v", body, h)
		}
	})
}
