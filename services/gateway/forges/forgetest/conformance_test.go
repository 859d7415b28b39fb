package forgetest_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/person"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/gitea"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/github"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/gitlab"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// world is a forge with people, each with a token.
type world struct {
	dialect

	t      *testing.T
	url    string
	tokens map[string]string
	// repo has bot as an administrator, ada as a writer, and the label forge. eve is a stranger.
	repo string
}

// realGitea names the folder of a Gitea that runs: its url, and the tokens of
// root1, bot, ada and eve.
const realGitea = "PFL_FORGE_GITEA"

// dialect is one way of speaking to a forge.
type dialect struct {
	// client returns the back end of an account, by its token.
	client func(t *testing.T, url, token string) pulls.Forge
	// method is one that the forge has.
	method forges.Method
	// nested says that a name may have more than two parts, summaries that the
	// words of a review are a comment as well, any that statuses are not
	// demanded by their names, and bodies that edits of a body are told.
	nested, summaries, any, bodies bool
}

// maxAnswer is less than the default, so that what is too large for it is quickly made.
const maxAnswer = 1 << 20

// dialects are those that the fake speaks.
var dialects = map[string]dialect{
	"gitea": {method: forges.FastForward, client: func(t *testing.T, url, token string) pulls.Forge {
		t.Helper()
		c, err := gitea.New(gitea.Config{URL: url, TokenFile: file(t, token), Bots: []string{"robot"}, MaxAnswer: maxAnswer})
		return closed(t, c, err)
	}},
	"github": {method: forges.MergeCommit, bodies: true, client: func(t *testing.T, url, token string) pulls.Forge {
		t.Helper()
		c, err := github.New(github.Config{URL: url, TokenFile: file(t, token), Bots: []string{"robot"}, MaxAnswer: maxAnswer})
		return closed(t, c, err)
	}},
	"gitlab": {method: forges.FastForward, nested: true, summaries: true, any: true, bodies: true, client: func(t *testing.T, url, token string) pulls.Forge {
		t.Helper()
		c, err := gitlab.New(gitlab.Config{URL: url, TokenFile: file(t, token), Bots: []string{"robot"}, MaxAnswer: maxAnswer})
		return closed(t, c, err)
	}},
}

// file returns the path of a file with a token.
func file(t *testing.T, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// closed returns a client that is closed with the test.
func closed(t *testing.T, c interface {
	pulls.Forge
	Close()
}, err error,
) pulls.Forge {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// worlds runs a test on the fake in each of its dialects and, where there is one, on a real Gitea.
func worlds(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	onFakesOnly(t, test)
	onRealGitea(t, test)
}

// onFakesOnly runs a test on the fake in each of its dialects.
func onFakesOnly(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for name, d := range dialects {
		t.Run("fake "+name, func(t *testing.T) {
			f := forgetest.NewFake()
			t.Cleanup(f.Close)
			test(t, newWorld(t, d, f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"}))
		})
	}
}

// onGiteas runs a test on the fake as a Gitea and, where there is one, on a
// real one, which has no fake.
func onGiteas(t *testing.T, test func(t *testing.T, w *world, f *forgetest.Fake)) {
	t.Helper()
	t.Run("fake", func(t *testing.T) {
		f := forgetest.NewFake()
		t.Cleanup(f.Close)
		test(t, newWorld(t, dialects["gitea"], f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"}), f)
	})
	onRealGitea(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		test(t, w, nil)
	})
}

// onRealGitea runs a test on a real Gitea where there is one.
func onRealGitea(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	if dir := os.Getenv(realGitea); dir != "" {
		t.Run("gitea", func(t *testing.T) {
			read := func(name string) string {
				text, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				return strings.TrimSpace(string(text))
			}
			test(t, newWorld(t, dialects["gitea"], read("url"), map[string]string{
				"root1": read("admin.token"), "bot": read("bot.token"), "ada": read("ada.token"), "eve": read("eve.token"),
			}))
		})
	}
}

// newWorld returns a world with a repository of its own.
func newWorld(t *testing.T, d dialect, url string, tokens map[string]string) *world {
	t.Helper()
	w := &world{t: t, dialect: d, url: url, tokens: tokens}
	name := fmt.Sprintf("r%d", time.Now().UnixNano())
	w.repo = "root1/" + name
	w.as("root1", "POST", "/user/repos", object{"name": name, "auto_init": true})
	w.as("root1", "PUT", "/repos/"+w.repo+"/collaborators/bot", object{"permission": "admin"})
	w.as("root1", "PUT", "/repos/"+w.repo+"/collaborators/ada", object{"permission": "write"})
	w.as("root1", "POST", "/repos/"+w.repo+"/labels", object{"name": "forge", "color": "#00aabb"})
	return w
}

// object is a JSON object.
type object map[string]any

// as calls the API as a person, and returns the answer, an object.
func (w *world) as(user, method, path string, in object) object {
	w.t.Helper()
	var raw json.RawMessage
	w.person(user).Does(w.t, method, path, in, &raw)
	out := object{}
	_ = json.Unmarshal(raw, &out) // what is none has no fields
	return out
}

// person returns an account that is used by a person, in Gitea's dialect.
func (w *world) person(user string) person.Person {
	return person.Person{API: w.url + person.Gitea, Token: w.tokens[user]}
}

// issue opens one as a person.
func (w *world) issue(user, title, body string) int64 {
	w.t.Helper()
	return int64(w.as(user, "POST", "/repos/"+w.repo+"/issues", object{"title": title, "body": body})["number"].(float64))
}

// say writes a comment as a person.
func (w *world) say(user string, issue int64, body string) int64 {
	w.t.Helper()
	return int64(w.as(user, "POST", fmt.Sprintf("/repos/%s/issues/%d/comments", w.repo, issue), object{"body": body})["id"].(float64))
}

// bot returns the back end of the account bot.
func (w *world) bot() pulls.Forge {
	w.t.Helper()
	return w.client(w.t, w.url, w.tokens["bot"])
}

// isNotFound reports whether an error says that something is not there.
func isNotFound(err error) bool { return errors.Is(err, forges.ErrNotFound) }

// TestConformance: what the back end says of a forge is so, on the fake in each
// dialect, and on a real Gitea.
func TestConformance(t *testing.T) {
	t.Parallel()
	worlds(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		c, ctx := w.bot(), wait.Context(t)
		self, err := c.Self(ctx)
		if err != nil || self.Login != "bot" || self.ID <= 0 {
			t.Fatalf("we are %+v, %v", self, err)
		}
		repo, err := c.Repository(ctx, w.repo)
		if err != nil || repo.Name != w.repo || repo.ID <= 0 {
			t.Fatalf("the repository is %+v, %v", repo, err)
		}
		n := w.issue("eve", "It crashes", "When\nit starts.")
		w.as("ada", "POST", fmt.Sprintf("/repos/%s/issues/%d/labels", w.repo, n), object{"labels": []string{"forge"}})
		i, err := c.Issue(ctx, w.repo, n)
		if err != nil || i.Title != "It crashes" || i.Body != "When\nit starts." || i.Author.Login != "eve" || !i.Open || i.Repository != repo {
			t.Errorf("the issue is %+v, %v", i, err)
		}
		if len(i.Labels) != 1 || i.Labels[0].Name != "forge" || i.Labels[0].By.Login != "ada" {
			t.Errorf("the labels are %+v", i.Labels)
		}
		for login, want := range map[string]intake.Account{
			"root1": {Kind: intake.Member, Permission: intake.Admin}, "bot": {Kind: intake.Member, Permission: intake.Admin},
			"ada": {Kind: intake.Member, Permission: intake.Write}, "eve": {Kind: intake.Outsider, Permission: intake.Read},
		} {
			if got, err := c.Account(ctx, w.repo, login); err != nil || got.Login != login || got.Kind != want.Kind || got.Permission != want.Permission {
				t.Errorf("%s is %+v, %v", login, got, err)
			}
		}
		for _, login := range []string{"nobody-of-that-name", "../eve", "eve/../ada"} {
			if got, err := c.Account(ctx, w.repo, login); err == nil {
				t.Errorf("the account %q is %+v", login, got)
			}
		}
		testComments(t, w, c, n)
		for range 2 { // again changes nothing
			if err := c.CloseIssue(ctx, w.repo, n); err != nil {
				t.Errorf("close it: %v", err)
			}
		}
		if i, err := c.Issue(ctx, w.repo, n); err != nil || i.Open {
			t.Errorf("closed it is %+v, %v", i, err)
		}
		changed, err := c.Changed(ctx, w.repo, time.Time{})
		if err != nil || len(changed) != 1 || changed[0].Number != n {
			t.Errorf("changed are %+v, %v", changed, err)
		}
		if later, err := c.Changed(ctx, w.repo, changed[0].At.Add(time.Hour)); err != nil || len(later) != 0 {
			t.Errorf("changed an hour later are %+v, %v", later, err)
		}
	})
}

// testComments is the part of TestConformance that is about comments.
func testComments(t *testing.T, w *world, c pulls.Forge, n int64) {
	t.Helper()
	ctx := wait.Context(t)
	first := w.say("eve", n, "/forge run")
	ours, err := c.Say(ctx, w.repo, forges.OfIssue(n), "a status")
	if err != nil || ours.Author.Login != "bot" || ours.Body != "a status" {
		t.Fatalf("we said %+v, %v", ours, err)
	}
	list, err := c.Comments(ctx, w.repo, forges.OfIssue(n), time.Time{})
	if err != nil || len(list) != 2 || list[0].ID != first || list[0].Author.Login != "eve" || list[0].Body != "/forge run" || list[0].Edited() {
		t.Errorf("the comments are %+v, %v", list, err)
	}
	for range 2 { // again changes nothing
		if err := c.React(ctx, w.repo, forges.OfIssue(n), first, forges.Seen); err != nil {
			t.Errorf("react: %v", err)
		}
	}
	// The forge's clock has seconds: an edit in the same one cannot be told.
	for edits := 0; ; edits++ {
		text := fmt.Sprintf("another status, %d", edits)
		if err := c.Edit(ctx, w.repo, forges.OfIssue(n), ours.ID, text); err != nil {
			t.Fatal(err)
		}
		list, err := c.Comments(ctx, w.repo, forges.OfIssue(n), time.Time{})
		if err != nil || len(list) != 2 || list[1].Body != text {
			t.Fatalf("after an edit the comments are %+v, %v", list, err)
		}
		if list[1].Edited() {
			break
		}
	}
	if later, err := c.Comments(ctx, w.repo, forges.OfIssue(n), time.Now().Add(24*time.Hour)); err != nil || len(later) != 0 {
		t.Errorf("the comments of tomorrow are %+v, %v", later, err)
	}
}

// TestFiles: a file of the default branch is read as it is now; what is not
// there is told from what is no file.
func TestFiles(t *testing.T) {
	t.Parallel()
	worlds(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		c, ctx := w.bot(), wait.Context(t)
		put := func(path, text string) {
			w.as("root1", "POST", "/repos/"+w.repo+"/contents/"+path, object{
				"branch": "main", "message": path, "content": base64.StdEncoding.EncodeToString([]byte(text)),
			})
		}
		put("rules.yaml", "rules: []\n")
		put("large.yaml", strings.Repeat("x", forges.MaxFile+1))
		if got, err := c.File(ctx, w.repo, "rules.yaml"); err != nil || strings.TrimSpace(string(got)) != "rules: []" {
			t.Errorf("read %q, %v", got, err)
		}
		if got, err := c.File(ctx, w.repo, "none.yaml"); !isNotFound(err) {
			t.Errorf("what is not there is %q, %v", got, err)
		}
		if got, err := c.File(ctx, w.repo, "large.yaml"); !errors.Is(err, forges.ErrNoFile) {
			t.Errorf("a large file has %d bytes, %v", len(got), err)
		}
		if got, err := c.File(ctx, w.repo, "../../../../user"); err == nil {
			t.Errorf("a path that leads elsewhere is %q", got)
		}
	})
}

// TestWhatIsNotThere: what is missing is told from what may not be seen, and a
// name never becomes another path.
func TestWhatIsNotThere(t *testing.T) {
	t.Parallel()
	worlds(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		c, ctx := w.bot(), wait.Context(t)
		if _, err := c.Issue(ctx, w.repo, 4711); !isNotFound(err) {
			t.Errorf("an issue that is not there: %v", err)
		}
		if _, err := c.Repository(ctx, "root1/nothing"); !isNotFound(err) {
			t.Errorf("a repository that is not there: %v", err)
		}
		if err := c.Edit(ctx, w.repo, forges.OfIssue(1), 999999, "x"); !isNotFound(err) {
			t.Errorf("a comment that is not there: %v", err)
		}
		for _, name := range []string{"", "root1", "root1/../eve", "root1/x/issues", "root1/x?y", "root1/%2e%2e"} {
			if w.nested && name == "root1/x/issues" {
				continue
			}
			if _, err := c.Repository(ctx, name); err == nil || !strings.Contains(err.Error(), "has to be owner/name") {
				t.Errorf("the repository %q: %v", name, err)
			}
		}
	})
}

func TestMain(m *testing.M) {
	wait.Beside()
	os.Exit(m.Run())
}
