package drafts_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/drafts"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
)

func TestCheckDependencies(t *testing.T) {
	for _, tt := range []struct {
		name          string
		drafts, known string // "a: b c, d"
		accepted      string
		problems      []string
	}{
		{"none", "b, a", "", "b a", nil},
		{"dependencies first", "a: b c, b: c, c", "", "c b a", nil},
		{"on what is there", "a: x", "x: y, y", "a", nil},
		{"unknown", "a: x, b", "", "b", []string{"a.md:4: depends_on[0]: there is no intent x (correct the id, or write that draft too)"}},
		{"second is unknown", "a: y x", "y", "", []string{"a.md:5: depends_on[1]: there is no intent x (correct the id, or write that draft too)"}},
		{"cycle", "a: b, b: c, c: a, d", "", "d", []string{
			"a.md:4: depends_on[0]: waits for itself: a -> b -> c -> a (remove one of these dependencies)",
			"b.md:4: depends_on[0]: waits for itself: b -> c -> a -> b (remove one of these dependencies)",
			"c.md:4: depends_on[0]: waits for itself: c -> a -> b -> c (remove one of these dependencies)",
		}},
		{"cycle through what is there", "a: x", "x: a", "", []string{
			"a.md:4: depends_on[0]: waits for itself: a -> x -> a (remove one of these dependencies)",
		}},
		{"on a cycle", "a: b, b: c, c: b, d: a", "", "", []string{
			"b.md:4: depends_on[0]: waits for itself: b -> c -> b (remove one of these dependencies)",
			"c.md:4: depends_on[0]: waits for itself: c -> b -> c (remove one of these dependencies)",
			"a.md:4: depends_on[0]: waits for b, which is refused (fix that draft first)",
			"d.md:4: depends_on[0]: waits for a, which is refused (fix that draft first)",
		}},
		{"again", "a: b", "a: c, c", "a", nil}, // what its submission means is not decided here
		{"on a draft of an intent that is there", "a, b: a", "a: c, c", "a b", nil},
		{"diamond", "a: b c, b: d, c: d, d", "", "d b c a", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newFixture(t)
			for id, needs := range graphOf(tt.drafts) {
				text := "---\ntype: fix\n"
				if len(needs) > 0 {
					text += "depends_on:\n"
				}
				for _, need := range needs {
					text += "  - " + string(need) + "\n"
				}
				d.put(string(id)+".md", text+"---\ntext\n")
			}
			inputs, problems := d.drafts()
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			inputs = inOrder(tt.drafts, inputs)
			accepted, problems := drafts.CheckDependencies(inputs, graphOf(tt.known))
			var ids, texts []string
			for _, in := range accepted {
				ids = append(ids, string(in.Intent))
			}
			for _, p := range problems {
				texts = append(texts, strings.TrimPrefix(p.Error(), ".forge/intent-drafts/"))
			}
			if got := strings.Join(ids, " "); got != tt.accepted {
				t.Errorf("accepted %q, want %q", got, tt.accepted)
			}
			if diff := cmp.Diff(tt.problems, texts); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func graphOf(text string) map[forge.IntentID][]forge.IntentID {
	g := map[forge.IntentID][]forge.IntentID{}
	for part := range strings.SplitSeq(text, ",") {
		id, needs, _ := strings.Cut(strings.TrimSpace(part), ":")
		if id == "" {
			continue
		}
		g[forge.IntentID(id)] = nil
		for need := range strings.FieldsSeq(needs) {
			g[forge.IntentID(id)] = append(g[forge.IntentID(id)], forge.IntentID(need))
		}
	}
	return g
}

// inOrder puts the inputs in the order in which the text names them.
func inOrder(text string, inputs []person.Input) []person.Input {
	var out []person.Input
	for part := range strings.SplitSeq(text, ",") {
		id, _, _ := strings.Cut(strings.TrimSpace(part), ":")
		for _, in := range inputs {
			if string(in.Intent) == id {
				out = append(out, in)
			}
		}
	}
	return out
}
