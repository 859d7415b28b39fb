package outside

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// Who can lie or steal: a person who may write at the forge, and may only look
// in the project; one whose role was taken away, or whose entry has ended, with
// a comment that the gateway has not read yet; one who knows a hash.

// people returns the file of tokens: Ada has every role by which people decide.
func (w *forgeWorld) people() string { return w.peopleWith("requester, approver, operator") }

// peopleWith is people with the roles of Ada, who has no token: she is known by
// her account at the forge.
func (w *forgeWorld) peopleWith(roles string) string {
	return fmt.Sprintf("tokens:\n  ada-at-work: {person: ada, accounts: {work: %d}, projects: {shop: [%s]}}\n", w.ids["ada"], roles)
}

// asks returns the API of a bus, and the file of tokens, which is read again when say writes it.
func (w *forgeWorld) asks(b *bus.Bus) (*api.API, *tokens.Book) {
	w.t.Helper()
	if w.file == "" {
		w.file = filepath.Join(w.t.TempDir(), "tokens.yaml")
		w.writePeople(w.people())
	}
	log := slog.New(slog.DiscardHandler)
	book, err := tokens.Open(w.file, log, time.Now)
	if err != nil {
		w.t.Fatal(err)
	}
	w.book = book
	return api.New(api.Config{Bus: b, Account: "gateway", Tokens: book, Log: log}), book
}

// writePeople writes the file of tokens, and waits until it is read by whoever reads it.
func (w *forgeWorld) writePeople(text string) {
	w.t.Helper()
	if err := os.WriteFile(w.file+".new", []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(w.file+".new", w.file); err != nil {
		w.t.Fatal(err)
	}
	want, err := tokens.Parse("tokens.yaml", []byte(text))
	if err != nil {
		w.t.Fatal(err)
	}
	wait.Until(w.t, "the file of tokens is read again", func() bool {
		return w.book == nil || fmt.Sprint(w.book.In("shop")) == fmt.Sprint(want)
	})
}

// verbs are the commands that decide, each with the role that it takes.
var verbs = []struct{ command, verb, role string }{
	{"/forge approve %s", "approve", "the role approver"},
	{"/forge changes %s other words", "request_changes", "the role approver"},
	{"/forge reject no", "reject", "the role approver"},
	{"/forge answer 1 this one", "answer", "one of the roles requester, approver, operator"},
	{"/forge retry", "retry", "the role operator"},
	{"/forge adopt 3f786850e387", "retry", "the role operator"},
	{"/forge cancel", "cancel", "the role operator"},
	{"/forge pause", "pause", "the role operator"},
	{"/forge resume", "resume", "the role operator"},
}

// TestCommandsTakeRoles: a command in a comment takes the role of the project
// that the same verb takes by HTTP, whatever its author may do at the forge;
// what is missing is said in one line, and nothing is journaled.
func TestCommandsTakeRoles(t *testing.T) {
	t.Parallel()
	onForges(t, func(t *testing.T, w *forgeWorld, _ *forgetest.Fake) {
		t.Helper()
		w.file = filepath.Join(t.TempDir(), "tokens.yaml")
		w.writePeople(w.peopleWith("viewer"))
		w.watch(50 * time.Millisecond)
		issue := w.open()
		hash := w.hash(issue, "")
		for _, one := range verbs {
			w.say("ada", issue, "/forge status") // takes the last refusal out
			wait.Until(t, "there is no refusal", func() bool { return !strings.Contains(w.until(issue, "**proposed**"), "may not") })
			w.say("ada", issue, strings.Replace(one.command, "%s", hash, 1))
			verb, _, _ := strings.Cut(one.verb, "_") // which is escaped
			said := w.until(issue, "this account may not "+verb)
			if !strings.Contains(said, one.role) {
				t.Errorf("%s is refused with %q, want %s", one.command, said, one.role)
			}
		}
		list, err := w.nats.Connect(t).Journal.Summaries(wait.Context(t), "shop")
		if err != nil || len(list) != 1 || list[0].Status != forge.StatusProposed {
			t.Fatalf("there are %+v, %v", list, err)
		}
		// Roles count as they are when the command is carried out.
		w.writePeople(w.peopleWith("approver"))
		w.say("ada", issue, "/forge approve "+hash)
		w.until(issue, "/forge answer 1")
		w.say("ada", issue, "/forge cancel")
		w.until(issue, "this account may not cancel")
		w.writePeople(strings.Replace(w.people(), "accounts:", "expires: 2020-01-01T00:00:00Z, accounts:", 1))
		w.say("ada", issue, "/forge cancel")
		w.until(issue, "the entry of this account in the file of tokens has expired")
		w.writePeople("tokens: {}\n")
		w.say("ada", issue, "/forge cancel")
		w.until(issue, "no person is known for this account")
		w.writePeople(w.people())
		w.say("ada", issue, "/forge cancel")
		w.until(issue, "**cancelled**")
	})
}

// TestAskingAsAPersonTakesTheRole: a rule that asks in the name of a person
// does so for one who may ask in the project.
func TestAskingAsAPersonTakesTheRole(t *testing.T) {
	t.Parallel()
	f := forgetest.NewFake()
	t.Cleanup(f.Close)
	w := newForgeWorld(t, f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"})
	w.rules = "rules:\n  - {name: labelled, when: {label: forge, permission: write}, do: go, project: shop, as: person}\n"
	w.file = filepath.Join(t.TempDir(), "tokens.yaml")
	w.writePeople(w.peopleWith("approver"))
	w.watch(50 * time.Millisecond)
	issue := w.open()
	w.until(issue, "the account that asked may not submit")
	w.writePeople(w.people())
	w.say("eve", issue, "Please.") // it is looked at again
	w.until(issue, "of project `shop`")
}
