package tokens

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// verbs are all of them.
var verbs = []Verb{List, Show, Diff, Transcript, Settings, Follow, Submit, Edit, Answer, Approve, Reject, Retry, Cancel, Pause, Resume}

// may says which role has which verbs, each spelled out.
var may = map[Role][]Verb{
	Viewer:    {List, Show, Diff, Transcript, Settings, Follow},
	Auditor:   {List, Show, Diff, Transcript, Settings, Follow},
	Requester: {List, Show, Diff, Transcript, Settings, Follow, Submit, Edit, Answer},
	Approver:  {List, Show, Diff, Transcript, Settings, Follow, Answer, Approve, Reject},
	Operator:  {List, Show, Diff, Transcript, Settings, Follow, Answer, Retry, Cancel, Pause, Resume},
}

// TestWhoMayWhat holds each role to the table, for people and systems, in their
// project and in another one.
func TestWhoMayWhat(t *testing.T) {
	if len(may) != len(Roles()) {
		t.Fatalf("roles are %v", Roles())
	}
	for _, role := range Roles() {
		person := Token{Person: "ada", Projects: map[string][]Role{"shop": {role}}}
		system := Token{System: "ci", Projects: map[string][]Role{"shop": {role}}}
		every := Token{Person: "ada", Projects: map[string][]Role{"*": {role}, "shop": {Viewer}}}
		for _, verb := range verbs {
			want := slices.Contains(may[role], verb)
			if person.May("shop", verb) != want || every.May("shop", verb) != want || every.May("bank", verb) != want {
				t.Errorf("%s may %s: want %t", role, verb, want)
			}
			if person.May("bank", verb) || person.May("*", verb) {
				t.Errorf("%s of shop may %s elsewhere", role, verb)
			}
			if got := system.May("shop", verb); got != (want && slices.Contains(forSystems, verb)) {
				t.Errorf("a system that is %s may %s: %t", role, verb, got)
			}
		}
	}
	if Role("root").May(List) {
		t.Error("a role that is none may look")
	}
}

// hash is the SHA-256 of a token.
const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// TestParseRefuses: what is wrong is told with its field.
func TestParseRefuses(t *testing.T) {
	entry := func(rest string) string { return "tokens:\n  a: {sha256: " + hash + ", " + rest + "}\n" }
	for _, bad := range []struct{ text, want string }{
		{entry("person: ada, projects: {shop: [viewer]}, role: root"), "role"},
		{entry("person: ada"), "projects"},
		{entry("projects: {shop: [viewer]}"), "give either person or system"},
		{entry("person: ada, system: ci, projects: {shop: [viewer]}"), "give either person or system"},
		{entry(`person: "a\nb", projects: {shop: [viewer]}`), "control character"},
		{entry("person: ada, projects: {shop: [root]}"), `"root" is no role`},
		{entry("person: ada, projects: {SHOP: [viewer]}"), "only a-z"},
		{entry("system: ci, projects: {shop: [approver]}"), "a system cannot be approver"},
		{entry("person: ada, projects: {shop: [viewer]}, expires: tomorrow"), "is no time"},
		{"tokens:\n  a: {sha256: pflt_secret, person: ada, projects: {shop: [viewer]}}\n", "64 hexadecimal digits"},
		{"tokens:\n  A.b: {sha256: " + hash + ", person: ada, projects: {shop: [viewer]}}\n", "name of a token"},
		{entry("person: ada, projects: {shop: [viewer]}") + "  b: {sha256: " + hash + ", person: bob, projects: {shop: [viewer]}}\n", "is that of a as well"},
		{"token: {}\n", "token"},
		{"tokens:\n  a: {person: ada, projects: {shop: [viewer]}}\n", "64 hexadecimal digits"},
		{"tokens:\n  a: {login: x, sha256: abc, person: ada, projects: {shop: [viewer]}}\n", "64 hexadecimal digits"},
		{"tokens:\n  a: {login: x, system: ci, projects: {shop: [viewer]}}\n", "is for a person"},
		{"tokens:\n  a: {login: \"a\\nb\", person: ada, projects: {shop: [viewer]}}\n", "control character"},
		{"tokens:\n  a: {accounts: {Work: 7}, person: ada, projects: {shop: [viewer]}}\n", "tokens.a.accounts.Work: is no name of a forge or chat"},
		{"tokens:\n  a: {accounts: {work: \"\"}, person: ada, projects: {shop: [viewer]}}\n", "tokens.a.accounts.work: is empty"},
		{"tokens:\n  a: {accounts: {work: [7]}, person: ada, projects: {shop: [viewer]}}\n", "tokens.a.accounts.work"},
		{"tokens:\n  a: {accounts: {work: 7}, system: ci, projects: {shop: [viewer]}}\n", "tokens.a.accounts: is for a person"},
		{
			"tokens:\n  a: {accounts: {work: 7}, person: ada, projects: {shop: [viewer]}}\n  b: {accounts: {work: 7}, person: bob, projects: {shop: [viewer]}}\n",
			"tokens.b.accounts.work: is the account of a as well",
		},
		{"tokens:\n  a: {login: x, person: ada, projects: {shop: [viewer]}}\n  b: {login: x, person: bob, projects: {shop: [viewer]}}\n", "is that of a as well"},
	} {
		_, err := Parse("tokens.yaml", []byte(bad.text))
		if err == nil || !strings.Contains(err.Error(), bad.want) || !strings.Contains(err.Error(), "tokens.yaml:") {
			t.Errorf("%s: %v, want %s", bad.text, err, bad.want)
		}
	}
}

// TestBook follows its file: tokens are found, expire, are removed, and stay in
// force while the file is broken.
func TestBook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	written := time.Now().Add(-time.Hour)
	write := func(text string) {
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path+".new", written, written); err != nil { // all within a tick of the clock
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	secret, sum := Make()
	other, otherSum := Make()
	if secret == other || !strings.HasPrefix(secret, prefix) || len(secret) < 40 {
		t.Fatalf("made are %s and %s", secret, other)
	}
	const ends = "2026-12-01T00:00:00Z"
	text := fmt.Sprintf("tokens:\n  a: {sha256: %s, person: ada, projects: {shop: [viewer]}, expires: %s}\n", sum, ends)
	write(text)
	now := time.Date(2026, 11, 30, 23, 59, 59, 0, time.UTC)
	var log bytes.Buffer
	b, err := Open(path, slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	if got, err := b.Find(secret); err != nil || got.Name != "a" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, unknown := range []string{"", sum, other, secret + "x", secret[1:]} {
		if got, err := b.Find(unknown); got != nil || err != ErrUnknown { //nolint:errorlint // exactly this one
			t.Errorf("%q is %+v, %v", unknown, got, err)
		}
	}
	now = now.Add(time.Second)
	if got, err := b.Find(secret); got != nil || err != ErrExpired { //nolint:errorlint // exactly this one
		t.Errorf("at its end it is %+v, %v", got, err)
	}
	now = now.Add(-time.Hour)
	found := func(secret string) bool { _, err := b.Find(secret); return err == nil }
	write(strings.Replace(text, sum, otherSum, 1))
	wait.Until(t, "a token is another's, in a file of the same size", func() bool { return found(other) && !found(secret) })
	write(text + fmt.Sprintf("  b: {sha256: %s, system: ci, projects: {shop: [requester]}}\n", otherSum))
	wait.Until(t, "an added token is found", func() bool { return found(other) })
	write("tokens: [")
	wait.Until(t, "it is logged", func() bool { return found(other) && strings.Contains(log.String(), "the former ones stay in force") })
	for range 5 {
		b.looked = time.Time{} // it is looked at again at once
		found(other)
	}
	if n := strings.Count(log.String(), "the former ones stay in force"); n != 1 {
		t.Errorf("a mistake that stays is logged %d times", n)
	}
	write("tokens: {}\n")
	wait.Until(t, "removed tokens are not found", func() bool { return !found(secret) && !found(other) })
	if strings.Contains(log.String(), secret) {
		t.Error("a token is in the log")
	}
	for _, mode := range []os.FileMode{0o602, 0o620} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, slog.New(slog.DiscardHandler), time.Now); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
			t.Errorf("a file that others can write to, by mode %o: %v", mode, err)
		}
	}
}

// FuzzParse: whatever is in the file, it is refused or its entries make sense.
func FuzzParse(f *testing.F) {
	f.Add("tokens:\n  a: {sha256: " + hash + ", person: ada, projects: {shop: [viewer]}, expires: 2027-01-01T00:00:00Z}\n")
	f.Add("tokens:\n  a: {sha256: " + hash + `, system: ci, projects: {"*": [requester]}}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Parse("x", []byte(text))
		if err != nil {
			return
		}
		for i := range list {
			one := &list[i]
			if name, _ := one.Holder(); name == "" || one.Name == "" || len(one.Projects) == 0 {
				t.Errorf("%q has %+v", text, one)
			}
			if one.System != "" && one.May("shop", Approve) {
				t.Errorf("%q lets a system approve", text)
			}
		}
	})
}

// TestOwn: a person on their own machine has every role in their project and
// none elsewhere, under any name, and no token leads to them.
func TestOwn(t *testing.T) {
	b, err := Own("Ada Lovelace", "shop")
	if err != nil {
		t.Fatal(err)
	}
	own, err := b.Named(OwnEntry)
	if err != nil {
		t.Fatal(err)
	}
	if name, person := own.Holder(); name != "Ada Lovelace" || !person || own.Everywhere() || len(own.Named()) != 1 {
		t.Errorf("it is %+v", own)
	}
	for _, v := range []Verb{List, Submit, Edit, Answer, Approve, Retry, Pause} {
		if !own.May("shop", v) || own.May("docs", v) {
			t.Errorf("%s: %v in shop, %v in docs", v, own.May("shop", v), own.May("docs", v))
		}
	}
	for _, secret := range []string{"", OwnEntry, own.SHA256} {
		if _, err := b.Find(secret); err == nil {
			t.Errorf("%q is its token", secret)
		}
	}
	for _, name := range []string{"", "a\nb", strings.Repeat("x", maxName+1)} {
		if _, err := Own(name, "shop"); err == nil {
			t.Errorf("%q has an entry", name)
		}
	}
}

// TestLoginIsNoToken: an entry without a token is found by its login alone.
func TestLoginIsNoToken(t *testing.T) {
	list, err := Parse("tokens.yaml", []byte("tokens:\n  a: {login: ada@example.com, person: ada, projects: {shop: [viewer]}}\n"+
		"  b: {sha256: "+hash+", person: bob, projects: {shop: [viewer]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	b := &Book{list: list, now: time.Now}
	for _, secret := range []string{"", "ada@example.com", "a", strings.Repeat("0", 64)} {
		if found, err := b.Find(secret); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q is the token of %v", secret, found)
		}
	}
	for login, want := range map[string]string{"ada@example.com": "a", "Ada@example.com": "", "": "", "bob": ""} {
		found, err := b.ByLogin(login)
		if want == "" && !errors.Is(err, ErrNoLogin) || want != "" && (err != nil || found.Name != want) {
			t.Errorf("%q is the login of %v, %v", login, found, err)
		}
	}
	if sum := [sha256.Size]byte{}; find(list, "x") != nil || list[0].Sum() != sum {
		t.Error("an entry without a token has one")
	}
}

// TestAccountsAreOfPeople: an account leads to the entry of its person at that forge
// or chat alone, and an entry that has nothing else to be known by has no token.
func TestAccountsAreOfPeople(t *testing.T) {
	list, err := Parse("tokens.yaml", []byte("tokens:\n  ada: {accounts: {work: 7, chat: U7}, person: ada, projects: {shop: [approver]}}\n"+
		"  bob: {sha256: "+hash+", accounts: {home: 7}, person: bob, projects: {shop: [viewer]}}\n"+
		"  old: {accounts: {work: 8}, person: old, projects: {shop: [viewer]}, expires: 2020-01-01T00:00:00Z}\n"+
		"  ci: {system: ci, projects: {shop: [requester]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	b := &Book{list: list, now: time.Now}
	for _, test := range []struct {
		at, id, want string
		err          error
	}{
		{"work", "7", "ada", nil},
		{"chat", "U7", "ada", nil},
		{"home", "7", "bob", nil},
		{"work", "8", "", ErrExpired},
		{"work", "U7", "", ErrNoAccount},
		{"work", "", "", ErrNoAccount},
		{"", "", "", ErrNoAccount},
		{"elsewhere", "7", "", ErrNoAccount},
	} {
		found, err := b.ByAccount(test.at, test.id)
		if !errors.Is(err, test.err) || (found != nil) != (test.want != "") || found != nil && found.Name != test.want {
			t.Errorf("%q at %q is %+v, %v; want %q, %v", test.id, test.at, found, err, test.want, test.err)
		}
	}
	for _, secret := range []string{"", "7", "ada", "ci", strings.Repeat("0", 64)} {
		if found, err := b.Find(secret); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q is the token of %v", secret, found)
		}
	}
	if found, err := None().ByAccount("work", "7"); !errors.Is(err, ErrNoAccount) {
		t.Errorf("without a file it is %+v, %v", found, err)
	}
}
