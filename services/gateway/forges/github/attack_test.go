package github_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/github"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// TestApp: the App acts in its own name by tokens of its installation, makes one for many requests,
// another one before it ends, and another one at once where GitHub does not take it any more.
func TestApp(t *testing.T) {
	w := newWorld(t)
	ctx := wait.Context(t)
	c := w.app(w.fake.Hub.Install("Iv1", &key().PublicKey, repo))
	tokens := func() int { return w.fake.Asked("POST", "/access_tokens") }
	self, err := c.Self(ctx)
	if err != nil || self.Login != "builder[bot]" || self.Kind != intake.Bot || self.ID <= 0 {
		t.Fatalf("we are %+v, %v", self, err)
	}
	w.as("eve", "POST", "/repos/"+repo+"/issues", `{"title": "T", "body": "B"}`)
	said, err := c.Say(ctx, repo, forges.OfIssue(1), "x")
	if err != nil || said.Author.ID != self.ID || tokens() != 1 {
		t.Fatalf("we said %+v, %v, with %d tokens", said, err, tokens())
	}
	w.at.move(54 * time.Minute)
	if _, err := c.Say(ctx, repo, forges.OfIssue(1), "x"); err != nil || tokens() != 1 {
		t.Errorf("after 54 minutes: %v, %d tokens", err, tokens())
	}
	w.at.move(-54 * time.Minute) // the fake knows when it is, and takes no JWT of another time
	w.fake.Hub.Revoke()
	if _, err := c.Say(ctx, repo, forges.OfIssue(1), "x"); err != nil || tokens() != 2 {
		t.Errorf("after its token was revoked: %v, %d tokens", err, tokens())
	}
}

// TestTokenIsReplacedInTime: a token is replaced while it is good for minutes
// still, so that no request is refused.
func TestTokenIsReplacedInTime(t *testing.T) {
	w := newWorld(t)
	ctx := wait.Context(t)
	c := w.app(w.fake.Hub.Install("Iv1", &key().PublicKey, repo))
	if _, err := c.Repository(ctx, repo); err != nil {
		t.Fatal(err)
	}
	w.at.move(56 * time.Minute)
	// The fake refuses a JWT of another time than its own: that another one was
	// asked for is what counts.
	if _, err := c.Repository(ctx, repo); err == nil || w.fake.Asked("POST", "/access_tokens") != 2 {
		t.Errorf("after 56 minutes: %v, %d tokens", err, w.fake.Asked("POST", "/access_tokens"))
	}
}

// TestSuspended: an installation that was suspended is told as such, with the
// token that it had and without one.
func TestSuspended(t *testing.T) {
	w := newWorld(t)
	ctx := wait.Context(t)
	installation := w.fake.Hub.Install("Iv1", &key().PublicKey, repo)
	before := w.app(installation)
	if _, err := before.Repository(ctx, repo); err != nil {
		t.Fatal(err)
	}
	w.fake.Hub.Suspend(installation, true)
	for i, c := range []forges.Forge{before, w.app(installation)} {
		_, err := c.Issue(ctx, repo, 1)
		if !errors.Is(err, forges.ErrDenied) || !strings.Contains(err.Error(), "is suspended") {
			t.Errorf("client %d: %v", i, err)
		}
	}
	w.fake.Hub.Suspend(installation, false)
	if _, err := before.Repository(ctx, repo); err != nil {
		t.Errorf("after it was let in again: %v", err)
	}
}

// TestAnotherInstallation: the token of an installation reads what is public
// everywhere. A repository outside of it is refused all the same, as is the
// token of an installation of another App, or of none.
func TestAnotherInstallation(t *testing.T) {
	w := newWorld(t)
	ctx := wait.Context(t)
	w.makeRepo("eve")
	w.as("eve", "POST", "/repos/eve/web/issues", `{"title": "T", "body": "B"}`)
	ours := w.fake.Hub.Install("Iv1", &key().PublicKey, repo)
	theirs := w.fake.Hub.Install("Iv1", &key().PublicKey, "eve/web")
	for what, test := range map[string]struct {
		installation int64
		repository   string
	}{
		"a repository of another installation": {ours, "eve/web"},
		"the installation of others":           {theirs, repo},
		"no installation":                      {4711, repo},
		"the installation of another App":      {w.fake.Hub.Install("Iv2", &key().PublicKey, repo), repo},
	} {
		c := w.app(test.installation)
		if i, err := c.Issue(ctx, test.repository, 1); err == nil {
			t.Errorf("%s: the issue is %+v", what, i)
		}
		if a, err := c.Account(ctx, test.repository, "eve"); err == nil {
			t.Errorf("%s: eve is %+v", what, a)
		}
		if _, err := c.Say(ctx, test.repository, forges.OfIssue(1), "x"); err == nil {
			t.Errorf("%s: we could speak", what)
		}
	}
}

// TestRenamedRepository: a repository that was renamed is found by its former
// name, read and written, until another one has the name: that one is refused,
// whatever is public there, and whoever may write there.
func TestRenamedRepository(t *testing.T) {
	for what, client := range map[string]func(w *world) (*github.Client, func() *github.Client){
		"a token": func(w *world) (*github.Client, func() *github.Client) { return w.bot(), nil },
		"an App": func(w *world) (*github.Client, func() *github.Client) {
			installation := w.fake.Hub.Install("Iv1", &key().PublicKey, repo)
			return w.app(installation), func() *github.Client { return w.app(installation) }
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			ctx := wait.Context(t)
			w.as("eve", "POST", "/repos/"+repo+"/issues", `{"title": "T", "body": "B"}`)
			c, anew := client(w)
			before, err := c.Repository(ctx, repo)
			if err != nil {
				t.Fatal(err)
			}
			w.fake.Hub.Rename(repo, "root1/shop")
			after, err := c.Repository(ctx, repo)
			if err != nil || after.ID != before.ID || after.Name != "root1/shop" {
				t.Errorf("renamed it is %+v, %v", after, err)
			}
			if i, err := c.Issue(ctx, repo, 1); err != nil || i.Repository != after {
				t.Errorf("its issue is %+v, %v", i, err)
			}
			if _, err := c.Say(ctx, repo, forges.OfIssue(1), "x"); err != nil {
				t.Errorf("a comment: %v", err)
			}
			w.makeRepo("root1")
			w.as("root1", "POST", "/repos/"+repo+"/issues", `{"title": "Another", "body": "B"}`)
			clients := []*github.Client{c}
			if anew != nil { // a gateway that was started again knows no number, but the App its repositories
				clients = append(clients, anew())
			}
			for n, c := range clients {
				if i, err := c.Issue(ctx, repo, 1); err == nil {
					t.Errorf("client %d: the issue of the other one is %+v", n, i)
				}
				if a, err := c.Account(ctx, repo, "root1"); err == nil {
					t.Errorf("client %d: root1 is %+v", n, a)
				}
			}
		})
	}
}

// TestRenamedUser: a login that was given up is another account, with another
// number and without the rights.
func TestRenamedUser(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bot(), wait.Context(t)
	w.as("ada", "POST", "/repos/"+repo+"/issues", `{"title": "T", "body": "B"}`)
	before, err := c.Account(ctx, repo, "ada")
	if err != nil || before.Permission != intake.Write {
		t.Fatal(before, err)
	}
	w.fake.Hub.RenameUser("ada", "ada2")
	now, err := c.Account(ctx, repo, "ada")
	if err != nil || now.ID == before.ID || now.Permission != intake.Read || now.Kind != intake.Outsider {
		t.Errorf("whoever is ada now is %+v, %v", now, err)
	}
	if i, err := c.Issue(ctx, repo, 1); err != nil || i.Author.ID != before.ID || i.Author.Login != "ada2" {
		t.Errorf("the author is %+v, %v", i.Author, err)
	}
}

// TestTransferredIssue: an issue that was transferred is none of ours any more,
// although its former place leads to it and it has the same number.
func TestTransferredIssue(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bot(), wait.Context(t)
	w.makeRepo("eve")
	for _, in := range []string{repo, "eve/web"} {
		w.as("eve", "POST", "/repos/"+in+"/issues", `{"title": "T", "body": "B"}`)
	}
	w.fake.Script(forgetest.Fault{
		Part: "/issues/1", Status: http.StatusMovedPermanently, Header: http.Header{"Location": {w.fake.URL() + "/api/v3/repos/eve/web/issues/1"}},
	})
	if i, err := c.Issue(ctx, repo, 1); !errors.Is(err, forges.ErrNotFound) {
		t.Errorf("it is %+v, %v", i, err)
	}
	if _, err := c.Issue(ctx, repo, 1); err != nil {
		t.Errorf("one that is there: %v", err)
	}
}

// TestRoles: each of GitHub's roles is the right that it has.
func TestRoles(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bot(), wait.Context(t)
	for role, want := range map[string]intake.Permission{
		"admin": intake.Admin, "maintain": intake.Write, "write": intake.Write, "triage": intake.Triage, "read": intake.Read, "none": intake.None,
	} {
		w.as("root1", "PUT", "/repos/"+repo+"/collaborators/eve", `{"permission": "`+role+`"}`)
		if a, err := c.Account(ctx, repo, "eve"); err != nil || a.Permission != want {
			t.Errorf("%s is %+v, %v", role, a, err)
		}
	}
}
