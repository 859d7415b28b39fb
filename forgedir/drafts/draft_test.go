package drafts_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// draftKeys returns the keys of a draft's front matter, sorted: the fields that persons may
// set, but for the body, which is the text below, and the source, which is human.
func draftKeys() []string {
	keys := []string{}
	for _, f := range document.FieldsBy(document.Persons) {
		if f.Name != "body" && f.Name != "source" {
			keys = append(keys, f.Name)
		}
	}
	slices.Sort(keys)
	return keys
}

func TestDrafts(t *testing.T) {
	aliasBomb := "---\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n---\ntext\n"
	const idForm = "the file's name is the intent's id: a-z, 0-9 and -, at most 64 characters; rename it to "
	known := strings.Join(draftKeys(), ", ")
	for _, tt := range []struct {
		name, file, text string
		want             []string // problems
	}{
		{"unclosed front matter", "x.md", "---\ntype: fix\n\ntext\n", []string{
			"x.md:1: opens its front matter with --- but does not close it (add a line of --- between the YAML and the text)",
		}},
		{"broken front matter", "x.md", "---\ntype: [fix\n---\ntext\n", []string{
			"x.md:2: is not valid YAML: did not find expected ',' or ']'",
		}},
		{"unknown key", "x.md", "---\ntype: fix\nrsik: low\n---\ntext\n", []string{
			`x.md:3: rsik: unknown key; did you mean "risk"?`,
		}},
		{"an id key", "x.md", "---\nid: ../../x\n---\ntext\n", []string{
			"x.md:2: id: unknown key; known keys are " + known,
		}},
		{"empty body", "x.md", "---\ntype: fix\nrecipe: format\n---\n\n \n", []string{
			"x.md:5: body: is empty (describe the change below the front matter, and why it is needed)",
		}},
		{"empty file", "x.md", "", []string{
			"x.md:1: body: is empty (describe the change below the front matter, and why it is needed)",
		}},
		{"not UTF-8", "x.md", "one\ntwo \xff\n", []string{
			"x.md:2: is not UTF-8 (save the file as UTF-8 text)",
		}},
		{"not UTF-8 in front", "x.md", "---\ntitle: \xff\n---\ntext\n", []string{
			"x.md:2: is not UTF-8 (save the file as UTF-8 text)",
		}},
		{"NUL", "x.md", "one\n\ntwo\x00\n", []string{
			"x.md:3: holds a NUL character (remove it)",
		}},
		{"body too long", "x.md", strings.Repeat("x", forge.MaxBody+1), []string{
			fmt.Sprintf("x.md:1: body: has %d bytes; at most %d are allowed", forge.MaxBody+2, forge.MaxBody),
		}},
		{"upper case", "Fix Login.md", "text", []string{
			`Fix Login.md: id: "Fix Login" holds 'F' at position 1; only a-z, 0-9 and - are allowed (` + idForm + "fix-login.md)",
		}},
		{"space", "fix login.md", "text", []string{
			`fix login.md: id: "fix login" holds ' ' at position 4; only a-z, 0-9 and - are allowed (` + idForm + "fix-login.md)",
		}},
		{"dots", "...md", "text", nil}, // hidden
		{"path", "a..%2fx.md", "text", []string{
			`a..%2fx.md: id: "a..%2fx" holds '.' at position 2; only a-z, 0-9 and - are allowed (` + idForm + "a-2fx.md)",
		}},
		{"star", "*.md", "text", []string{
			`*.md: id: "*" holds '*' at position 1; only a-z, 0-9 and - are allowed (` + idForm + "my-change.md)",
		}},
		{"option", "-rf.md", "text", []string{
			`-rf.md: id: "-rf" must start with a letter or a digit (` + idForm + "rf.md)",
		}},
		{"65 characters", strings.Repeat("a", 65) + ".md", "text", []string{
			strings.Repeat("a", 65) + `.md: id: "aaaaaaaaaaaaaaaaaaaa..." has 65 characters; at most 64 are allowed (` + idForm + strings.Repeat("a", 63) + ".md)",
		}},
		{"upper-case ending", "x.MD", "text", []string{
			`x.MD: id: the file ends in ".MD", not in .md (` + idForm + "x.md)",
		}},
		{"alias bomb", "x.md", aliasBomb, []string{
			"x.md:2: a: unknown key; known keys are " + known,
			"x.md:3: b: unknown key; known keys are " + known,
			"x.md:4: c: unknown key; known keys are " + known,
		}},
		{"alias", "x.md", "---\nlabels: &l [a]\ncriteria: *l\n---\ntext\n", []string{
			"x.md:2: labels: has an anchor (&l); anchors are not allowed",
			"x.md:3: criteria: is an alias (*l); write the value out",
		}},
		{"tag", "x.md", "---\ntitle: !!str x\n---\ntext\n", []string{
			"x.md:2: title: has a tag (!!str); tags are not allowed",
		}},
		{"duplicate key", "x.md", "---\nrisk: low\ntype: fix\nrisk: high\n---\ntext\n", []string{
			"x.md:4: risk: duplicate key, first given on line 2",
		}},
		{"second document", "x.md", "---\nrisk: low\n--- # again\nrisk: high\n---\ntext\n", []string{
			"x.md:3: holds a second document; only one is allowed",
		}},
		{"octal", "x.md", "---\npriority: 010\n---\ntext\n", []string{
			`x.md:2: priority: must be a whole number, not "010"`,
		}},
		{"risk", "x.md", "---\nrisk: medium\n---\ntext\n", []string{
			`x.md:2: risk: is "medium"; it can be low, med or high (omit it to let the analysis choose)`,
		}},
		{"empty risk", "x.md", "---\nrisk:\n---\ntext\n", []string{
			`x.md:2: risk: must not be empty; give a value or leave the key out`,
		}},
		{"type", "x.md", "---\ntype: Big Fix\n---\ntext\n", []string{
			`x.md:2: type: is "Big Fix"; a type must be one lower-case word (such as feature, fix, refactor, test or audit)`,
		}},
		{"title", "x.md", "---\ntitle: \"a\\nb\"\n---\ntext\n", []string{
			"x.md:2: title: holds the control character U+000A; it must be one line of text",
		}},
		{"depends on itself", "x.md", "---\ndepends_on: [a, x]\n---\ntext\n", []string{
			"x.md:2: depends_on[1]: names the intent itself (remove it)",
		}},
		{"depends on no id", "x.md", "---\ndepends_on:\n  - a\n  - ../b\n  - a\n---\ntext\n", []string{
			`x.md:4: depends_on[1]: "../b" holds '.' at position 1; only a-z, 0-9 and - are allowed (give the ids of intents)`,
			"x.md:5: depends_on[2]: names a a second time (remove it)",
		}},
		{"negative budget", "x.md", "---\nbudget_usd: -1\n---\ntext\n", []string{
			"x.md:2: budget_usd: must be a positive amount",
		}},
		{"parameter", "x.md", "---\nwith: {A B: x, C: \"\\0\"}\n---\ntext\n", []string{
			`x.md:2: with.A B: "A B" must be upper case letters, digits and _, starting with a letter, at most 64`,
			"x.md:2: with.C: holds a NUL character",
		}},
		{"blank criterion", "x.md", "---\ncriteria:\n  - builds\n  - ' '\n---\ntext\n", []string{
			"x.md:4: criteria[1]: is empty",
		}},
		{"no title", "x.md", "##\n\n#\n", []string{"x.md: title: is empty"}},
		{"editors' files", "x.md~", "text", nil},
		{"editors' swap files", ".x.md.swp", "text", nil},
		{"hidden files", ".x.md", "text", nil},
		{"emacs", "#x.md#", "text", nil},
		{"other files", "example.md.txt", "text", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newFixture(t)
			d.put(tt.file, tt.text)
			inputs, problems := d.drafts()
			if len(inputs) > 0 {
				t.Errorf("got an input of %q", tt.file)
			}
			var got []string
			for _, p := range problems {
				got = append(got, strings.TrimPrefix(p.Error(), ".forge/intent-drafts/"))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if d.text(tt.file) != tt.text {
				t.Error("the draft was changed")
			}
		})
	}
}

// What is no regular file must not make anybody wait.
func TestDraftsThatAreNoFiles(t *testing.T) {
	const hint = " (put a regular file in its place, or remove it)"
	for _, tt := range []struct {
		what string
		make func(name string) error
		want string
	}{
		{"a FIFO", func(name string) error { return syscall.Mkfifo(name, 0o644) }, "is a named pipe, not a regular file" + hint},
		{"a directory", func(name string) error { return os.Mkdir(name, 0o755) }, "is a directory, not a regular file" + hint},
		{"a symbolic link", func(name string) error { return os.Symlink("/etc/passwd", name) }, "is a symbolic link, not a regular file" + hint},
		{"a link to a FIFO", func(name string) error {
			if err := syscall.Mkfifo(name+".fifo", 0o644); err != nil {
				return err
			}
			return os.Symlink(name+".fifo", name)
		}, "is a symbolic link, not a regular file" + hint},
		{"a link to nothing", func(name string) error { return os.Symlink("nothing", name) }, "is a symbolic link, not a regular file" + hint},
		{"a link to a device", func(name string) error { return os.Symlink("/dev/zero", name) }, "is a symbolic link, not a regular file" + hint},
		{"10 MB", func(name string) error {
			if err := os.WriteFile(name, nil, 0o644); err != nil {
				return err
			}
			return os.Truncate(name, 10<<20)
		}, "is 10485760 bytes long; at most 1048576 are allowed (shorten it)"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			d := newFixture(t)
			if err := tt.make(d.file("odd.md")); err != nil {
				t.Fatal(err)
			}
			d.put("good.md", "text\n")
			ctx := wait.Context(t)
			done := make(chan struct{})
			go func() {
				defer close(done)
				inputs, problems, err := d.Read(ctx)
				if err != nil || len(inputs) != 1 || inputs[0].Intent != "good" {
					t.Errorf("the other draft: got %v %v", inputs, err)
				}
				if len(problems) != 1 || problems[0].Error() != ".forge/intent-drafts/odd.md: "+tt.want {
					t.Errorf("got problems %v, want %q", problems, tt.want)
				}
			}()
			select {
			case <-done:
			case <-ctx.Done():
				t.Fatal("a draft made us wait")
			}
		})
	}
}

func TestDraft(t *testing.T) {
	d := newFixture(t)
	text := "\ufeff---\r\ntype: skill_extraction\r\nrisk: low\r\ndepends_on: [a, b]\r\nlabels: [x]\r\n" +
		"priority: -2\r\nagent: recipe\r\nbudget_usd: 1.5\r\nrecipe: rename\r\nwith: {FROM: no, TO: 0123}\r\n--- \r\n\r\n" +
		"## Rename it ##\r\n\r\n---\r\napproved: true\r\n"
	d.put("rename-it.md", text)
	written := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	if err := os.Chtimes(d.file("rename-it.md"), written, written); err != nil {
		t.Fatal(err)
	}
	inputs, problems := d.drafts()
	if len(inputs) != 1 || len(problems) > 0 {
		t.Fatalf("got %v %v", inputs, problems)
	}
	sum := disk.DigestOf([]byte(text)).String()
	want := []forge.Event{{
		ID: "draft:rename-it:" + sum, To: forge.Key{Project: "demo", Intent: "rename-it"}, Actor: "person",
		Message: &forge.Submit{Intent: forge.Intent{
			ID: "rename-it", Project: "demo", Settings: forge.Settings{
				Title:      "Rename it",
				Body:       "## Rename it ##\n\n---\napproved: true\n",
				Type:       "skill_extraction",
				Risk:       forge.RiskLow,
				DependsOn:  []forge.IntentID{"a", "b"},
				Attributes: forge.Attributes{Labels: []string{"x"}, Priority: -2},
				Agent:      "recipe",
				BudgetUSD:  1.5,
				Recipe:     "rename",
				With:       map[string]string{"FROM": "no", "TO": "0123"},
			}, Source: forge.SourceHuman, Status: forge.StatusProposed,
			Origin:    forge.Origin{System: "draft", EventID: "intent-drafts/rename-it.md@" + sum, Actor: "person"},
			CreatedAt: written,
		}},
	}}
	if diff := cmp.Diff(want, inputs[0].Events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	again, _ := d.drafts()
	if diff := cmp.Diff(inputs[0].Events, again[0].Events); diff != "" {
		t.Errorf("the same draft made other events:\n%s", diff)
	}
}
