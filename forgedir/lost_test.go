package forgedir

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// Files are set aside as they are, whoever wrote them, and killed at every
// single point it can be done again.
func TestSetAsideKilledAnywhere(t *testing.T) {
	for n := 0; ; n++ {
		d := newFixture(t)
		d.write(sample())
		if seq := d.Shown()["fix-login"]; seq != 7 {
			t.Fatalf("the files show %d, want 7", seq)
		}
		shown := d.text(fixLogin)
		d.replace("work/fix-login-001.yaml", "title: ", "title: marker ")
		before := d.under("work")
		count := 0
		d.disk.Reached = func(point string) {
			if count++; count == n+1 {
				panic(crash{point})
			}
		}
		setAside := func() {
			if err := d.SetAside("fix-login"); err != nil {
				t.Fatal(err)
			}
		}
		died := dies(setAside)
		if died {
			d.reopen()
			setAside()
		}
		d.disk.Reached = func(string) {}
		if d.Shown()["fix-login"] != 0 || len(d.under("intents")) != 0 || len(d.under("work")) != 0 {
			t.Errorf("killed at %d: left %v, shown %v", n, d.under("intents"), d.Shown())
		}
		kept := ""
		for _, name := range d.under("kept") {
			kept += d.text(name)
		}
		if !strings.Contains(kept, shown) || !strings.Contains(kept, "title: marker ") || len(d.under("kept/work")) < len(before) {
			t.Errorf("killed at %d: kept only %v", n, d.under("kept"))
		}
		older := sample()
		older.Seq = 3
		if problems := d.write(older); len(problems) > 0 || d.Shown()["fix-login"] != 3 {
			t.Errorf("killed at %d: written anew with %v, shown %v", n, problems, d.Shown())
		}
		if !died {
			if n == 0 {
				t.Error("it was never killed")
			}
			return
		}
	}
}

// A draft that asks for a lost intent again says what its file said, and takes
// no other draft's place.
func TestRedraft(t *testing.T) {
	d := newFixture(t)
	d.write(sample())
	doc, ok := d.ReadIntent("fix-login")
	if !ok {
		t.Fatal("the file cannot be read")
	}
	for range 2 { // the second one is after a crash
		if path, err := d.Redraft("fix-login", &doc); err != nil || path != ".forge/intent-drafts/fix-login.md" {
			t.Fatal(path, err)
		}
	}
	inputs, problems := d.drafts()
	if len(problems) > 0 || len(inputs) != 1 {
		t.Fatalf("%d drafts, problems %v", len(inputs), problems)
	}
	want := sample().Intent
	got := forge.As[*forge.Submit](inputs[0].Events[0].Message).Intent
	same := got.Title == want.Title && strings.TrimSpace(got.Body) == strings.TrimSpace(want.Body) && got.Type == want.Type && got.Risk == want.Risk
	if !same || got.Recipe != want.Recipe || got.With["LEVEL"] != "010" || len(got.Labels) != 1 || len(got.DependsOn) != 1 || got.Status != forge.StatusProposed {
		t.Errorf("%+v", got)
	}
	d.save("intent-drafts/fix-login.md", "Mine.\n")
	if _, err := d.Redraft("fix-login", &doc); !errors.Is(err, fs.ErrExist) || d.text("intent-drafts/fix-login.md") != "Mine.\n" {
		t.Errorf("a draft of a person: %v, %q", err, d.text("intent-drafts/fix-login.md"))
	}
	if _, ok := d.ReadIntent("nobody"); ok {
		t.Error("a file that is not there was read")
	}
}
