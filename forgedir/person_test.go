package forgedir

import (
	"bytes"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// retitled is an edit of the sample, in one save.
func retitled(text string) string { return strings.Replace(text, "title: Mend", "title: Repair", 1) }

// Editors of all systems write the same text in many ways.
func TestWaysToSaveAFile(t *testing.T) {
	for _, tt := range []struct {
		name string
		save func(d *fixture, text string)
	}{
		{"in place", func(d *fixture, text string) { d.put(fixLogin, text) }},
		{"by a rename", func(d *fixture, text string) { d.save(fixLogin, text) }},
		{"the old one moved away first", func(d *fixture, text string) {
			d.rename(fixLogin, fixLogin+"~")
			d.put(fixLogin, text)
		}},
		{"removed first", func(d *fixture, text string) {
			d.remove(fixLogin)
			d.put(fixLogin, text)
		}},
		{"with files of the editor beside it", func(d *fixture, text string) {
			for _, name := range []string{".fix-login.yaml.swp", "4913", "fix-login.yaml~", "#fix-login.yaml#", "fix-login.yaml.bak", "fix-login.yaml___jb_tmp___"} {
				d.put(path.Join(layout.Intents, name), "title: x\n")
			}
			if err := os.Symlink("ada@host.1234", d.file(layout.Intents+"/.#fix-login.yaml")); err != nil {
				d.t.Fatal(err)
			}
			d.put(fixLogin, text)
		}},
		{"with carriage returns", func(d *fixture, text string) { d.put(fixLogin, strings.ReplaceAll(text, "\n", "\r\n")) }},
		{"with a byte order mark", func(d *fixture, text string) { d.put(fixLogin, "\ufeff"+text) }},
		{"without the last newline", func(d *fixture, text string) { d.put(fixLogin, strings.TrimSuffix(text, "\n")) }},
		{"with blanks at the end", func(d *fixture, text string) { d.put(fixLogin, text+"\n \n\n") }},
		{"read only", func(d *fixture, text string) {
			d.put(fixLogin, text)
			if err := os.Chmod(d.file(fixLogin), 0o444); err != nil {
				d.t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newFixture(t)
			v := sample()
			d.write(v)
			tt.save(d, retitled(d.text(fixLogin)))
			inputs, problems := d.edits(v)
			if len(inputs) != 1 || len(problems) > 0 || describe(inputs[0].Events[0]) != `edit title="Repair the login check"` {
				t.Fatalf("got %v %v", inputs, problems)
			}
			if _, err := d.Decided(inputs[0], rulings(inputs[0], forge.Applied)); err != nil {
				t.Fatal(err)
			}
			v.Seq, v.Intent.Title = 8, "Repair the login check"
			d.write(v)
			if text := d.text(fixLogin); !strings.HasPrefix(text, "title: Repair") || !strings.HasSuffix(text, "\nrevision: 8\n") {
				t.Errorf("the file was not written:\n%s", text)
			}
			if inputs, problems := d.edits(v); len(inputs)+len(problems) > 0 {
				t.Errorf("once more: %v %v", inputs, problems)
			}
		})
	}
}

// A file that ends anywhere before its end makes no event, and stays.
func TestHalfAFileIsNoEdit(t *testing.T) {
	d := newFixture(t)
	v := sample()
	d.write(v)
	whole := strings.Replace(retitled(d.text(fixLogin)), "They should be.", "They should be checked, all of them.", 1)
	for n := 1; n < len(strings.TrimSuffix(whole, "7\n")); n += testsize.Of(11, 1) {
		d.put(fixLogin, whole[:n])
		inputs, problems := d.edits(v)
		if len(inputs) > 0 || len(problems) == 0 {
			t.Fatalf("%d bytes: %v %v\n%s", n, inputs, problems, whole[:n])
		}
		d.write(v)
		if d.text(fixLogin) != whole[:n] {
			t.Fatalf("%d bytes were overwritten", n)
		}
	}
	d.put(fixLogin, whole)
	if inputs, problems := d.edits(v); len(inputs) != 1 || len(problems) > 0 {
		t.Errorf("the whole file: %v %v", inputs, problems)
	}
}

// What cannot be the intent's file is refused with a reason, and stays.
func TestFilesInThePlaceOfAnIntents(t *testing.T) {
	other := sample()
	other.Intent.ID, other.Summary.Key.Intent = "other", "other"
	other.Tasks, other.Reviews, other.History, other.Observations = nil, nil, nil, nil
	other.Seq, other.Intent.CreatedAt = 6, other.Intent.CreatedAt.Add(-time.Hour)
	other.Intent.Origin.EventID = "intent-drafts/other.md@11"
	for _, tt := range []struct {
		name  string
		place func(d *fixture)
		want  []string
	}{
		{"renamed", func(d *fixture) { d.rename(fixLogin, "intents/sign-in.yaml") }, []string{
			"sign-in.yaml: there is no intent sign-in (remove it; to ask for a new intent, write .forge/intent-drafts/sign-in.md)",
		}},
		{"another intent's", func(d *fixture) { d.put(fixLogin, d.text("intents/other.yaml")) }, []string{
			"fix-login.yaml:22: origin: is the id of another intent; this file is intent fix-login " +
				"(undo the rename, or remove the file to have it written again)",
		}},
		{"a link", func(d *fixture) {
			d.rename(fixLogin, "mine.yaml")
			if err := os.Symlink("../mine.yaml", d.file(fixLogin)); err != nil {
				d.t.Fatal(err)
			}
		}, []string{"fix-login.yaml: is a symbolic link, not a regular file (put a regular file in its place, or remove it)"}},
		{"a folder", func(d *fixture) {
			d.remove(fixLogin)
			if err := os.Mkdir(d.file(fixLogin), 0o755); err != nil {
				d.t.Fatal(err)
			}
		}, []string{"fix-login.yaml: is a directory, not a regular file (put a regular file in its place, or remove it)"}},
		{"too large", func(d *fixture) { d.put(fixLogin, "#"+strings.Repeat("x", disk.MaxIntent)) }, []string{
			"fix-login.yaml: is 4194305 bytes long; at most 4194304 are allowed (shorten it)",
		}},
		{"a second document", func(d *fixture) { d.replace(fixLogin, "revision:", "---\nrevision:") }, []string{
			"fix-login.yaml:37: holds a second document; only one is allowed (fix it, or remove the file to have it written again)",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newFixture(t)
			v := sample()
			d.write(v)
			d.write(other)
			tt.place(d)
			inputs, problems := d.edits(v, other)
			var got []string
			for _, p := range problems {
				got = append(got, strings.TrimPrefix(p.Error(), ".forge/intents/"))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || len(inputs) > 0 {
				t.Errorf("got %v, problems (-want +got):\n%s", inputs, diff)
			}
			d.write(v)
			if again, more := d.edits(v, other); len(again) > 0 || len(more) != len(problems) {
				t.Errorf("after it was to be written: %v %v", again, more)
			}
		})
	}
}

// A file of 20,000 keys is refused in no time.
func TestManyKeys(t *testing.T) {
	d := newFixture(t)
	v := sample()
	d.write(v)
	var b bytes.Buffer
	for i := range 20_000 {
		b.WriteString("k" + strings.Repeat("x", i%50) + string(rune('a'+i%26)) + ": 1\n")
	}
	d.put(fixLogin, b.String())
	wait.Until(t, "it takes less than five seconds", func() bool {
		began := time.Now()
		if inputs, problems := d.edits(v); len(inputs) > 0 || len(problems) == 0 {
			t.Fatalf("got %v %v", inputs, problems)
		}
		return time.Since(began) < 5*time.Second
	})
}

// Nobody reads changes of these, so they are taken back, and kept.
func TestChangesByHandOfWhatIsOnlyShown(t *testing.T) {
	for _, name := range []string{
		"work/fix-login-001.yaml", "reviews/fix-login-001-1.yaml", "knowledge/history/fix-login-1.yaml", layout.Observations, layout.State,
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			v := sample()
			state := func() []Problem {
				problems, err := d.WriteState([]forge.Summary{v.Summary})
				if err != nil {
					t.Fatal(err)
				}
				return problems
			}
			d.write(v)
			state()
			d.edits(v)
			want := d.text(name)
			d.put(name, "status: done\n")
			if inputs, problems := d.edits(v); len(inputs)+len(problems) > 0 {
				t.Errorf("got %v %v", inputs, problems)
			}
			if name == layout.State == d.StateWritten() || (name != layout.State) == (d.Projected("fix-login") == v.Seq) {
				t.Errorf("nobody knows that it has to be written: %d %t", d.Projected("fix-login"), d.StateWritten())
			}
			problems := append(d.write(v), state()...)
			if len(problems) != 1 || problems[0].Path != layout.Shown(name) || !kept(d, "status: done") {
				t.Errorf("got problems %v", problems)
			}
			if diff := cmp.Diff(want, d.text(name)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if d.edits(v); d.Projected("fix-login") != v.Seq || !d.StateWritten() {
				t.Error("it is not known to be back")
			}
		})
	}
}

// Whatever a person removes of the folder while it is in use comes back.
func TestRemovedFoldersComeBack(t *testing.T) {
	for _, name := range []string{
		layout.Drafts, layout.Intents, layout.Work, layout.Reviews, "knowledge", layout.Kept, layout.Cache, layout.Bases,
		layout.Staging, layout.Replaced, layout.Index, "all of it",
	} {
		t.Run(name, func(t *testing.T) {
			d, j := newFixture(t), newJournal(t)
			d.put(layout.Drafts+"/fix-login.md", "text\n")
			j.run(d)
			j.views["fix-login"].Tasks = sample().Tasks
			j.change(j.views["fix-login"])
			j.run(d)
			names := []string{name}
			if name == "all of it" {
				names = []string{layout.Drafts, layout.Intents, layout.Work, layout.Reviews, "knowledge", layout.Kept, layout.Cache, layout.State}
			}
			for _, name := range names {
				if err := os.RemoveAll(d.file(name)); err != nil {
					t.Fatal(err)
				}
			}
			j.run(d)
			j.check(d)
			d.put(layout.Drafts+"/second.md", "text\n")
			d.replace(fixLogin, "title: text", "title: another")
			j.run(d)
			if j.views["second"] == nil || j.views["fix-login"].Intent.Title != "another" {
				t.Errorf("titles %q", j.titles)
			}
			d.disk.Linger = 0
			d.reopen()
			j.run(d)
			j.check(d)
		})
	}
}
