package edits

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
	"github.com/pfl-forge/pfl-forge/forgedir/projection"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// What is written is read as the same, so an untouched file is never an edit.
func TestFilesReadBackAsTheyWere(t *testing.T) {
	testsize.Checks(t, 20, 100)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`[ -~\n\t]{0,40}`),
			rapid.String(),
			rapid.SampledFrom([]string{
				"no", "~", "null", "0123", "1e3", "2026-01-02", "- a", "a: b",
				"#", " x", "x ", "\n", "\r\n", "---", "...", "|", "\u2028", "\ufeff", "a\n b\n", "x\n\n\n",
			}),
		)
		lists := rapid.SliceOfN(text, 0, 3)
		v := forge.View{Seq: 7, Intent: forge.Intent{ID: "fix-login", Project: "demo", Source: forge.SourceHuman, Status: forge.StatusProposed}}
		v.Intent.Title, v.Intent.Body, v.Intent.Type = text.Draw(t, "title"), text.Draw(t, "body"), text.Draw(t, "type")
		v.Summary.Reason, v.Intent.Recipe, v.Intent.Agent = text.Draw(t, "reason"), text.Draw(t, "recipe"), text.Draw(t, "agent")
		v.Intent.Criteria, v.Intent.Labels = lists.Draw(t, "criteria"), lists.Draw(t, "labels")
		v.Intent.Goal = nil
		if rapid.Bool().Draw(t, "goal") {
			v.Intent.Goal = &forge.GoalOptions{
				MaxIterations: rapid.IntRange(0, 100).Draw(t, "most"), Model: text.Draw(t, "model"), Tools: lists.Draw(t, "tools"),
				SystemPrompt: text.Draw(t, "prompt"), RawLog: rapid.Bool().Draw(t, "raw"),
			}
		}
		v.Intent.With = rapid.MapOfN(text, text, 0, 3).Draw(t, "with")
		v.Intent.BudgetUSD = float64(rapid.IntRange(0, 10000).Draw(t, "cents")) / 100
		v.Intent.Clarifications = nil
		for _, q := range lists.Draw(t, "questions") {
			c := forge.Clarification{Question: q, Context: text.Draw(t, "context"), SuggestedAnswers: lists.Draw(t, "suggested")}
			if rapid.Bool().Draw(t, "answered") {
				c.Answer = new(text.Draw(t, "answer"))
			}
			v.Intent.Clarifications = append(v.Intent.Clarifications, c)
		}
		doc := document.IntentOf(&v)
		doc.Revision = int64(v.Seq)
		data, err := projection.EncodeIntent(doc)
		if err != nil {
			t.Skip("text that no file can hold")
		}
		back, pos, err := projection.DecodeIntent(data)
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		if again, err := projection.EncodeIntent(back); err != nil || string(again) != string(data) {
			t.Fatalf("read and written again:\n%s\nwas\n%s", again, data)
		}
		in := &person.Input{Intent: "fix-login", Source: person.Source{Rel: "intents/fix-login.yaml"}}
		c := comparison{in: in, base: doc, based: true, mine: back, now: doc, pos: pos, view: &v}
		if events := c.run(); len(events)+len(c.problems) > 0 {
			t.Fatalf("an edit: %v %v\n%s", events, c.problems, data)
		}
	})
}
