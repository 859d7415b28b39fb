package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestAlteredJournal: what somebody altered in a journal is named by audit-log verify
// with its place, and by doctor and show; another project is whole, and readers go on.
func TestAlteredJournal(t *testing.T) {
	t.Parallel()
	o := newOrganisation(t)
	stop := o.runner()
	b := o.server.Connect(t)
	for _, project := range []string{"shop", "bank"} {
		o.announce("analyzer", "a-"+project, "v1", forge.ProjectID(project))
		for _, id := range []string{"one", "two"} {
			o.expect(kit.ExitOK, id+"\n", project, "create", id, "--title", "Title", "--body", "pay ten")
			wait.Until(t, "an attempt is open", func() bool {
				s, err := b.Journal.Summary(wait.Context(t), forge.Key{Project: forge.ProjectID(project), Intent: forge.IntentID(id)})
				return err == nil && len(s.Open) > 0
			})
		}
	}
	o.expect(kit.ExitOK, "3 journals with", "shop", "audit-log", "verify")
	o.expect(kit.ExitOK, "6 journals with", "shop", "audit-log", "verify", "--all")
	o.expect(kit.ExitError, "ok    journals      3 journals under way, none damaged\n", "shop", "doctor")
	stop()

	o.server.Alter(t, "FORGE_JOURNAL", "forge.journal.shop.one", "pay ten", "pay 999")
	for _, args := range [][]string{{}, {"--all"}, {"one"}} {
		out := o.expect(kit.ExitError, "broken   forge.journal.shop.one message ", "shop", append([]string{"audit-log", "verify"}, args...)...)
		if !strings.Contains(out, "missing  forge.journal.shop.one message 1: message 1 of forge.project.shop knows its message 1 with another content") ||
			!strings.Contains(out, ": not whole\n") || !strings.Contains(out, "         > nothing is decided on it any more: ") {
			t.Errorf("verify %v says\n%s", args, out)
		}
	}
	o.expect(kit.ExitOK, "whole\n", "shop", "audit-log", "verify", "two")
	o.expect(kit.ExitOK, "whole\n", "bank", "audit-log", "verify")
	o.expect(kit.ExitError, `"whole": false`, "shop", "audit-log", "verify", "-o", "json")
	o.expect(kit.ExitError, "the journals are not whole, such as forge.journal.shop.one message 1: ", "shop", "audit-log", "export", "--all")
	o.expect(kit.ExitOK, `"action":"asked"`, "bank", "audit-log", "export")
	o.expect(kit.ExitError, "fail  journals      shop/one: the chain of the journal is broken at message ", "shop", "doctor")
	out := o.expect(kit.ExitOK, "what is shown may be wrong, and nothing is decided on it: the chain of the journal is broken", "shop", "show", "one")
	if !strings.Contains(out, "pay 999") {
		t.Errorf("show says\n%s", out)
	}
}

// TestDoctorRepairs: a record that only a newer version understands is shown
// with its place, set aside when it is said so and not before, and then the
// intent can be decided on. Of a chain that does not hold nothing is set aside.
func TestDoctorRepairs(t *testing.T) {
	t.Parallel()
	o := newOrganisation(t)
	stop := o.runner()
	b := o.server.Connect(t)
	o.announce("analyzer", "a", "v1", "shop")
	for _, id := range []forge.IntentID{"one", "two"} {
		o.expect(kit.ExitOK, string(id)+"\n", "shop", "create", string(id), "--title", "Title", "--body", "pay ten")
		wait.Until(t, "an attempt is open", func() bool {
			s, err := b.Journal.Summary(wait.Context(t), forge.Key{Project: "shop", Intent: id})
			return err == nil && len(s.Open) > 0
		})
	}
	o.expect(kit.ExitOK, "", "shop", "doctor", "--repair")
	stop()

	ref := o.server.AppendNewer(t, "FORGE_JOURNAL", "forge.journal.shop.one")
	place := fmt.Sprintf("shop/one: message %d is not for this version: ", ref.Seq)
	o.expect(kit.ExitError, "fail  journals      "+place, "shop", "doctor")
	// There is no terminal, and nobody has said --yes.
	for range 2 { // nothing has changed
		o.expect(kit.ExitError, "  it would be set aside: ", "shop", "doctor", "--repair")
	}
	o.expect(kit.ExitOK, place, "shop", "doctor", "--repair", "--yes")
	o.expect(kit.ExitOK, "", "shop", "doctor", "--repair", "--yes")
	o.expect(kit.ExitError, "ok    journals      3 journals under way, none damaged\n", "shop", "doctor")
	if s, err := b.Journal.Summary(t.Context(), forge.Key{Project: "shop", Intent: "one"}); err != nil || s.Title != "Title" {
		t.Errorf("%+v, %v", s, err)
	}
	o.expect(kit.ExitOK, "whole\n", "shop", "audit-log", "verify", "two")
	// Behind a message that was altered, the honest one shows the break: it
	// must not be the one that goes.
	o.server.Alter(t, "FORGE_JOURNAL", "forge.journal.shop.two", "pay ten", "pay 999")
	o.expect(kit.ExitError, "  it stays: ", "shop", "doctor", "--repair", "--yes")
	o.runner()
	o.expect(kit.ExitOK, "", "shop", "cancel", "one")
}
