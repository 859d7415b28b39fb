package forgedir

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/quota"
)

func TestImportedDraftsMove(t *testing.T) {
	d := newFixture(t)
	for i, text := range []string{"first\n", "second\n", "third\n"} {
		d.put(layout.Drafts+"/x.md", text)
		inputs, _ := d.drafts()
		decision := []forge.Decision{forge.Applied, forge.Ignored}[i%2]
		problems, err := d.Decided(inputs[0], rulings(inputs[0], decision))
		if err != nil || len(problems) > 0 {
			t.Fatal(problems, err)
		}
		if inputs, _ := d.drafts(); len(inputs) > 0 {
			t.Error("it is still a draft")
		}
	}
	got := d.under(layout.Imported)
	slices.Sort(got)
	want := []string{layout.Imported + "/x.2.md", layout.Imported + "/x.3.md", layout.Imported + "/x.md"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("imported (-want +got):\n%s", diff)
	}
	if d.text(layout.Imported+"/x.2.md") != "second\n" {
		t.Error("a draft's text was lost")
	}
}

func TestDraftThatChangesBeforeItIsDecidedStays(t *testing.T) {
	d := newFixture(t)
	d.put(layout.Drafts+"/x.md", "first\n")
	first, _ := d.drafts()
	d.put(layout.Drafts+"/x.md", "second\n")
	if _, err := d.Decided(first[0], rulings(first[0], forge.Applied)); err != nil {
		t.Fatal(err)
	}
	second, _ := d.drafts()
	if len(second) != 1 || second[0].Draft().Body != "second\n" || second[0].Events[0].ID == first[0].Events[0].ID {
		t.Errorf("got %v", second)
	}
	if err := os.Remove(d.file(layout.Drafts + "/x.md")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Decided(second[0], rulings(second[0], forge.Applied)); err != nil {
		t.Errorf("a draft that was removed meanwhile: %v", err)
	}
}

func TestRefusedDraftStaysUntilItChanges(t *testing.T) {
	d := newFixture(t)
	d.put(layout.Drafts+"/x.md", "---\nrecipe: nothing\n---\nfirst\n")
	inputs, _ := d.drafts()
	refused := rulings(inputs[0], forge.Refused)
	refused[0].Field, refused[0].Reason = "recipe", "recipe: there is no recipe nothing" // as the rules say it
	got, err := d.Decided(inputs[0], refused)
	if err != nil {
		t.Fatal(err)
	}
	want := []Problem{{Path: ".forge/intent-drafts/x.md", Line: 2, Field: "recipe", Reason: "there is no recipe nothing"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	inputs, again := d.drafts()
	if diff := cmp.Diff(want, again); diff != "" || len(inputs) > 0 {
		t.Errorf("the next scan: %v, problems (-want +got):\n%s", inputs, diff)
	}
	d.put(layout.Drafts+"/x.md", "second\n")
	if inputs, problems := d.drafts(); len(inputs) != 1 || len(problems) > 0 {
		t.Errorf("after it changed: %v %v", inputs, problems)
	}
}

// A draft that a quota has no room for is asked for again as it is.
func TestDraftOverQuotaComesAgain(t *testing.T) {
	d := newFixture(t)
	d.put(layout.Drafts+"/x.md", "first\n")
	inputs, _ := d.drafts()
	refused := rulings(inputs[0], forge.Refused)
	refused[0].Field, refused[0].Reason = quota.OfProject, quota.OfProject+": project shop has 3 open intents"
	got, err := d.Decided(inputs[0], refused)
	if err != nil || len(got) != 1 || got[0].Reason != "project shop has 3 open intents" {
		t.Fatal(got, err)
	}
	if inputs, problems := d.drafts(); len(inputs) != 1 || len(problems) > 0 {
		t.Errorf("the next scan: %v %v", inputs, problems)
	}
}

func TestDecidedWantsARulingPerEvent(t *testing.T) {
	d := newFixture(t)
	d.put(layout.Drafts+"/x.md", "first\n")
	inputs, _ := d.drafts()
	if _, err := d.Decided(inputs[0], nil); err == nil {
		t.Error("got no error")
	}
	if !exists(t, d.file(layout.Drafts+"/x.md")) {
		t.Error("the draft is gone")
	}
}

func TestInit(t *testing.T) {
	d := newFixture(t)
	made, err := d.Init()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"pfl-forge.yaml", ".forge/intent-drafts/example.md.txt"}, made); diff != "" {
		t.Errorf("made (-want +got):\n%s", diff)
	}
	if text, err := os.ReadFile(d.shared(disk.IgnoreFile)); err != nil || string(text) != ".forge/\n.e8/\n" {
		t.Errorf("git ignores %q, %v", text, err)
	}
	config := filepath.Join(d.root, config.FileName)
	writeText(t, config, "mine\n")
	if err := os.Remove(d.file(layout.Drafts + "/" + exampleFile)); err != nil {
		t.Fatal(err)
	}
	made, err = d.Init()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{".forge/intent-drafts/example.md.txt"}, made); diff != "" {
		t.Errorf("made again (-want +got):\n%s", diff)
	}
	if text, err := os.ReadFile(config); err != nil || string(text) != "mine\n" {
		t.Errorf("a person's configuration was touched: %q %v", text, err)
	}
	if inputs, problems := d.drafts(); len(inputs)+len(problems) > 0 {
		t.Errorf("the example is a draft: %v %v", inputs, problems)
	}
}
