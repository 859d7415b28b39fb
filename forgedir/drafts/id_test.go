package drafts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
)

// Files may be named in any language; their ids can be typed on every keyboard.
func TestDraftsInAnyLanguage(t *testing.T) {
	want := map[string]forge.IntentID{
		"Écrire le manuel.md": "ecrire-le-manuel",
		"größe-ändern.md":     "grosse-andern",
		"変更.md":               "bian-geng",
		"修复登录.md":             "xiu-fu-deng-lu",
		"مرحبا.md":            "mrhb",
		"🚀.md":                "intent-ebbc0b28",
		"fix-登录 🚀.md":         "fix-deng-lu",
		"plain.md":            "plain",
	}
	d := newFixture(t)
	for name := range want {
		d.put(name, name+"\n")
	}
	inputs, problems := d.drafts()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got := map[string]forge.IntentID{}
	for _, in := range inputs {
		got[strings.TrimPrefix(in.Path, ".forge/intent-drafts/")] = in.Intent
		if _, err := forge.ParseIntentID(string(in.Intent)); err != nil || in.Draft().ID != in.Intent || in.Events[0].To.Intent != in.Intent {
			t.Errorf("%s: %+v, %v", in.Path, in.Events[0], err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	again, _ := d.drafts()
	if diff := cmp.Diff(events(inputs), events(again)); diff != "" {
		t.Errorf("the same drafts made other events:\n%s", diff)
	}
	i := slices.IndexFunc(inputs, func(in person.Input) bool { return in.Intent == "bian-geng" })
	if err := d.Imported(&inputs[i]); err != nil {
		t.Fatal(err)
	}
	if !d.exists("imported/変更.md") || d.exists("変更.md") {
		t.Error("the imported draft did not move")
	}
}

func events(inputs []person.Input) (all []forge.Event) {
	for _, in := range inputs {
		all = append(all, in.Events...)
	}
	return all
}

// A file system may give names in another form than they were written in: the intent, and
// where it comes from, are the same.
func TestDraftNameInAnotherForm(t *testing.T) {
	var origins []forge.Origin
	for _, form := range []norm.Form{norm.NFC, norm.NFD} {
		d := newFixture(t)
		d.put(form.String("été-각")+".md", "text\n")
		inputs, problems := d.drafts()
		if len(problems) > 0 || len(inputs) != 1 || inputs[0].Intent != "ete-gag" {
			t.Fatalf("got %+v, %v", inputs, problems)
		}
		origins = append(origins, inputs[0].Draft().Origin)
	}
	if origins[0] != origins[1] {
		t.Errorf("origins differ: %q", origins)
	}
}

// Two files of one id are not one intent.
func TestDraftsWithOneID(t *testing.T) {
	d := newFixture(t)
	d.put("bian-geng.md", "one\n")
	d.put("変更.md", "two\n")
	d.put("编更.md", "three\n")
	inputs, problems := d.drafts()
	var got []string
	for _, p := range problems {
		got = append(got, strings.TrimPrefix(p.Error(), ".forge/intent-drafts/"))
	}
	want := []string{
		"変更.md: id: is bian-geng, as that of bian-geng.md (rename one of the two files)",
		"编更.md: id: is bian-geng, as that of bian-geng.md (rename one of the two files)",
	}
	if diff := cmp.Diff(want, got); diff != "" || len(inputs) != 1 || inputs[0].Path != ".forge/intent-drafts/bian-geng.md" {
		t.Errorf("%d inputs; problems: %s", len(inputs), diff)
	}
}

func TestDraftsInAnyLanguageRefused(t *testing.T) {
	d := newFixture(t)
	d.put("変更.md", "---\ndepends_on: [登录]\n---\ntext\n")
	d.put("é\x01.md", "text\n")
	d.put("é\xff.md", "text\n")
	_, problems := d.drafts()
	var got []string
	for _, p := range problems {
		got = append(got, strings.TrimPrefix(p.Error(), ".forge/intent-drafts/"))
	}
	const hint = "the file's name is the intent's id: a-z, 0-9 and -, at most 64 characters; rename it to e.md"
	want := []string{
		"é\x01.md: id: \"é\\x01\" holds 'é' at position 1; only a-z, 0-9 and - are allowed (" + hint + ")",
		"é\xff.md: id: \"é\\xff\" holds 'é' at position 1; only a-z, 0-9 and - are allowed (" + hint + ")",
		`変更.md:2: depends_on[0]: "登录" holds '登' at position 1; only a-z, 0-9 and - are allowed (give the ids of intents; that of 登录.md is deng-lu)`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	d = newFixture(t)
	d.put("変更.md", "text\n")
	inputs, _ := d.drafts()
	taken := forge.Ruling{Decision: forge.Refused, Field: "id", Reason: "id: is taken by another intent; choose another one"}
	problem := inputs[0].Refused(0, taken, nil)
	if problem.Error() != ".forge/intent-drafts/変更.md: id: is taken by another intent; choose another one (the file's name makes the id bian-geng)" {
		t.Errorf("got %v", problem)
	}
}
