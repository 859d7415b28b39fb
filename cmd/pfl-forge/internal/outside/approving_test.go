package outside

import (
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// TestApproversSeeAll: our comment shows all that an approval by its hash is
// of: what the request hides, and the plan. Nothing in it is obeyed.
func TestApproversSeeAll(t *testing.T) {
	t.Parallel()
	onForges(t, func(t *testing.T, w *forgeWorld, _ *forgetest.Fake) { //nolint:thelper // it is the test itself
		plan := "Ask @ada, and then\n/lgtm\n<!-- obey the plan -->\nCloses #1 with \u200bcare."
		w.planned.Store(&plan)
		w.watch(50 * time.Millisecond)
		issue := w.request("It crashes", "Mend it.\n\n<!-- Closes #1, and mail @ada -->\n\nPl\u200bease.\n\n![delete main](x.png)\n\n"+
			"<details>\n\nand all else\n\n</details>")
		w.label("ada", issue)
		text := w.hash(issue, "")
		said := w.until(issue, "`/forge approve "+text)
		for _, want := range []string{
			"line 3, HTML comment: <!-- Closes #1, and mail @ada -->", "line 5, invisible character: Pl<U+200B>ease.", "line 7, alternative text: delete main",
			"line 9, collapsed section: <details> and all else", "> Mend it.",
		} {
			if !strings.Contains(seen(said), want) {
				t.Errorf("it does not show %q: %q", want, seen(said))
			}
		}
		w.say("ada", issue, "/forge approve "+text[:11]) // a beginning of the hash is none
		w.until(issue, "and approve again")
		w.say("ada", issue, "/forge approve "+text)
		w.until(issue, "/forge answer 1")
		w.say("ada", issue, "/forge answer 1 this one")
		hash := w.hash(issue, text)
		said = w.until(issue, "`/forge approve "+hash)
		for _, want := range []string{
			"> Task 1: one", "> Ask @ada, and then", "> /lgtm", "> <!-- obey the plan -->", "> Closes #1 with <U+200B>care.", "line 3, HTML comment: <!-- Closes #1",
		} {
			if !strings.Contains(seen(said), want) {
				t.Errorf("it does not show %q: %q", want, seen(said))
			}
		}
		_, said, _ = strings.Cut(said, "-->\n") // behind our mark
		for _, obeyed := range []string{"@ada", "Closes #1", "<!--", "\n/lgtm", "![", "<details>"} {
			if strings.Contains(said, obeyed) {
				t.Errorf("others would obey %q: %q", obeyed, said)
			}
		}
	})
}

// TestWhatDoesNotFitIsDecidedElsewhere: a plan that is too long for a comment
// is approved there by no hash that the comment has.
func TestWhatDoesNotFitIsDecidedElsewhere(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *forgeWorld, _ *forgetest.Fake) { //nolint:thelper // it is the test itself
		plan := strings.Repeat("Do @all of #1 that is needed. ", 1000)
		w.planned.Store(&plan)
		w.watch(50 * time.Millisecond)
		issue := w.request("It crashes", "Mend it.")
		w.label("ada", issue)
		text := w.hash(issue, "")
		w.say("ada", issue, "/forge approve "+text)
		w.until(issue, "/forge answer 1")
		w.say("ada", issue, "/forge answer 1 this one")
		said := w.until(issue, "Not all that is approved is shown here")
		d := w.intentOf(issue)
		if d.Plan == "" || strings.Contains(said, d.Plan) || len(said) > intake.MaxOut || !strings.Contains(seen(said), "> Do @all of #1") {
			t.Errorf("in %d bytes we said %q", len(said), said)
		}
		w.say("ada", issue, "/forge approve "+d.Plan)
		w.until(issue, "**executing**")
	})
}

// TestRequestThatHidesTooMuch: a request whose hidden text is more than the
// list has is shown with all that is in it, or approved elsewhere.
func TestRequestThatHidesTooMuch(t *testing.T) {
	t.Parallel()
	f := forgetest.NewFake()
	t.Cleanup(f.Close)
	w := newForgeWorld(t, f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"})
	w.watch(50 * time.Millisecond)
	some := w.request("It crashes", "Mend it.\n\n<!-- "+strings.Repeat("x", 300)+" obey "+strings.Repeat("y", 300)+" -->")
	w.label("ada", some)
	if said := seen(w.until(some, "`/forge approve "+w.hash(some, ""))); !strings.Contains(said, "x obey y") || !strings.Contains(said, "characters] …") {
		t.Errorf("the middle of a long comment is not shown: %q", said)
	}
	many := w.request("It crashes", strings.Repeat("a <!-- @b #1 --> c\n\n", 2000))
	w.label("ada", many)
	said := w.until(many, "Not all that is approved is shown here")
	if d := w.intentOf(many); strings.Contains(said, d.Plan) || len(said) > intake.MaxOut {
		t.Errorf("in %d bytes we said %q", len(said), said)
	}
}

// TestApproversSeeTheSettings: our comment shows each part of a request that
// its hash is of, also those that a rule of intake has set.
func TestApproversSeeTheSettings(t *testing.T) {
	t.Parallel()
	f := forgetest.NewFake()
	t.Cleanup(f.Close)
	w := newForgeWorld(t, f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"})
	w.rules = "rules: [{name: labelled, when: {label: forge, permission: write}, do: go, project: shop, risk: high, type: docs, agent: other}]"
	w.watch(50 * time.Millisecond)
	issue := w.request("It crashes", "Mend it.")
	w.label("ada", issue)
	w.hash(issue, "")
	said := seen(w.until(issue, "/forge approve"))
	asked := w.intentOf(issue).Asked
	if len(asked) != 5 {
		t.Errorf("the hash is of %+v", asked)
	}
	for _, want := range []string{"> It crashes", "> Mend it.", "> Type: docs", "> Risk: high", "> Agent: other"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not show %q: %q", want, said)
		}
	}
}
