package access_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

var rewrite = flag.Bool("rewrite", false, "write the documents' tables of permissions")

// services returns the accounts of all services, of the gateway, and the one that makes backups.
func services() []access.Account {
	var list []access.Account
	for _, role := range access.Services() {
		list = append(list, access.Account{Name: string(role), Role: role})
	}
	return append(list, access.Account{Name: string(access.Gateway), Role: access.Gateway}, access.Account{Name: string(access.Backup), Role: access.Backup})
}

// outsiders returns an account of each other role, as the documents have them.
func outsiders(t *testing.T) []access.Account {
	t.Helper()
	var list []access.Account
	for _, u := range []struct {
		role access.Role
		name string
	}{{access.Submitter, "scanner"}, {access.Follower, "tracker"}, {access.Operator, "ada"}} {
		account, err := access.NewAccount(u.role, u.name, "shop")
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, account)
	}
	return list
}

// users returns an installation with one account of each role.
func users(t *testing.T) []access.User {
	t.Helper()
	var list []access.User
	for _, account := range append(services(), outsiders(t)...) {
		list = append(list, access.User{Account: account})
	}
	for i := range list {
		public, _, err := access.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		list[i].Proof = access.NKey(public)
	}
	return list
}

// TestConfIsReadBack checks that the accounts of a written configuration are found again,
// and that one of somebody else is not taken for ours.
func TestConfIsReadBack(t *testing.T) {
	want := users(t)
	text := access.Conf(want, access.Accounts(want))
	got, err := access.ParseConf(text)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, bad := range []string{
		"", "authorization { token: x }", strings.Replace(text, "role runner", "role god", 1), strings.Replace(text, "    # account ada", "    # ada", 1),
		text + "\nauthorization { users: [ { user: a, password: b } ] }",
	} {
		if got, err := access.ParseConf(bad); !errors.Is(err, access.ErrNotOurs) {
			t.Errorf("%d users, %v of %.60q", len(got), err, bad)
		}
	}
}

// TestNoClean checks that an account can be made without the right to clean, and stays so when
// the configuration is written anew.
func TestNoClean(t *testing.T) {
	list := users(t)
	at := len(list) - 1
	cleans := func(u access.User) bool {
		return strings.Contains(access.Conf([]access.User{u}, access.Accounts(list)), "forge.api.shop.by.ada.clean")
	}
	if !cleans(list[at]) {
		t.Error("a person may not clean")
	}
	list[at].NoClean = true
	again, err := access.ParseConf(access.Conf(list, access.Accounts(list)))
	if diff := cmp.Diff(list, again); err != nil || diff != "" {
		t.Fatalf("%v\n%s", err, diff)
	}
	if cleans(again[at]) {
		t.Error("a person without the right may clean")
	}
}

// TestEveryRequestIsHeard checks that a service may hear each request that somebody may ask:
// one that nobody hears fails with accounts alone, and looks as if no runner were there.
func TestEveryRequestIsHeard(t *testing.T) {
	all := access.Accounts(users(t))
	var asked, heard []string
	for _, account := range all {
		for _, r := range account.Rights(all) {
			for _, s := range r.Publish {
				if strings.HasPrefix(s, "forge.api.") {
					asked = append(asked, s)
				}
			}
			heard = append(heard, r.Subscribe...)
		}
	}
	if len(asked) == 0 {
		t.Error("nothing is asked")
	}
	for _, subject := range asked {
		if !slices.ContainsFunc(heard, func(by string) bool { return server.SubjectsCollide(by, subject) }) {
			t.Errorf("no service may hear %s", subject)
		}
	}
}

// TestAccounts checks which names become a part of subjects, files and Secrets.
func TestAccounts(t *testing.T) {
	for _, name := range []string{"", "runner", "server", "ca", "services", "a.b", "*", ">", "A", "../x", "a b", "-a", strings.Repeat("a", 300)} {
		if _, err := access.NewAccount(access.Operator, name); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
	if _, err := access.NewAccount(access.Submitter, "ci", "a*b"); err == nil {
		t.Error("a project that is none is accepted")
	}
	if _, err := access.NewAccount("god", "a"); err == nil {
		t.Error("a role that is none is accepted")
	}
	if _, err := access.NewAccount(access.Runner, "", "shop"); err == nil {
		t.Error("a service has a project")
	}
}

// TestNoListIsEmpty checks that every account is given something to publish and to hear: the
// server takes an empty list for everything.
func TestNoListIsEmpty(t *testing.T) {
	all := access.Accounts(users(t))
	for _, account := range all {
		publish, subscribe := 0, 0
		for _, r := range account.Rights(all) {
			publish, subscribe = publish+len(r.Publish), subscribe+len(r.Subscribe)
		}
		if publish == 0 || subscribe == 0 {
			t.Errorf("%s: %d and %d", account.Name, publish, subscribe)
		}
	}
}

// TestPermissionsInDocuments compares what documents say of permissions with the table.
func TestPermissionsInDocuments(t *testing.T) {
	var some []access.User
	for _, account := range outsiders(t) {
		some = append(some, access.User{Account: account, Proof: fmt.Sprintf("user: %s, password: %s", account.Name, strings.ToUpper(account.Name))})
	}
	compare(t, "../../docs/guide-systems.md", "```conf\n", "```\n", access.Conf(some, access.Accounts(some)))
	compare(t, "../../docs/permissions.md", "<!-- table: permissions -->\n", "<!-- end of table -->\n", page(append(services(), outsiders(t)...)))
}

// page returns the table of permissions of every role, for people.
func page(all []access.Account) string {
	var b strings.Builder
	for _, account := range all {
		title := string(account.Role)
		if account.Name != title {
			title += ": " + account.Name
		}
		fmt.Fprintf(&b, "\n## %s\n\n| it ... | publishes | listens on |\n|---|---|---|\n", title)
		for _, r := range account.Rights(all) {
			publish := code(r.Publish)
			if len(r.Deny) > 0 {
				publish += "; but not " + code(r.Deny)
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", r.Why, publish, code(r.Subscribe))
		}
	}
	b.WriteString("\n")
	return b.String()
}

func code(subjects []string) string {
	var list []string
	for _, s := range subjects {
		list = append(list, "`"+s+"`")
	}
	return strings.Join(list, " ")
}

// compare checks, or with -rewrite writes, the text between two marks of a document.
func compare(t *testing.T, path, begin, end, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	got, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no %q", path, begin)
	}
	if *rewrite {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs from the table; go test ./bus/access -rewrite writes it:\n%s", path, diff)
	}
}

// TestNoGatewaySpeaksForPFLForge: whoever an account cannot be named after,
// nobody is named so by a gateway either.
func TestNoGatewaySpeaksForPFLForge(t *testing.T) {
	k := forge.Key{Project: "shop", Intent: "fix"}
	if _, err := subjects.PersonalVia(k, "ada", string(access.Gateway), "approve"); err != nil {
		t.Error(err)
	}
	for _, account := range append(services(), access.Account{Name: "auth"}, access.Account{Name: "server"}, access.Account{Name: "ca"},
		access.Account{Name: "signers"}, access.Account{Name: "services"}, access.Account{Name: "login"}) {
		if _, err := access.NewAccount(access.Operator, account.Name); err == nil {
			t.Errorf("a person can be named %q", account.Name)
		}
		if s, err := subjects.PersonalVia(k, account.Name, string(access.Gateway), "approve"); err == nil {
			t.Errorf("%q is allowed", s)
		}
	}
}
