package forgedir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/edits"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// seen returns all that a look tells, as a text.
func (d *fixture) seen(quick bool, current edits.Current) (string, error) {
	l, err := OpenLook(d.root, Options{Project: "demo", Actor: "person"}, quick)
	if err != nil {
		return "", err
	}
	if l.disk != nil {
		l.disk.Settle = 0
	}
	shown, project := l.Shown()
	text := fmt.Sprintln(shown, project) // a map is printed in the order of its keys
	inputs, problems, err := l.Read(d.context(), current)
	for i := range inputs {
		for _, e := range inputs[i].Events {
			text += inputs[i].Path + " " + e.ID + "\n"
		}
	}
	for i := range problems {
		text += problems[i].Error() + "\n"
	}
	return text, errors.Join(err, l.Close())
}

// looks compares a quick look with a whole one, and returns what they tell.
func (d *fixture) looks(t interface {
	Fatalf(format string, args ...any)
}, current edits.Current,
) string {
	whole, err := d.seen(false, current)
	if err != nil {
		t.Fatalf("a whole look: %v", err)
	}
	for _, turn := range []string{"first", "second"} {
		if quick, err := d.seen(true, current); err != nil || quick != whole {
			t.Fatalf("the %s quick look: %v\n%s\nthe whole one:\n%s", turn, err, quick, whole)
		}
	}
	return whole
}

// TestQuickLook: whatever a person and the runner do to the files, in whatever
// order, with crashes in between, and whatever becomes of the cache, a look
// that goes on from the one before finds what one finds that reads all.
func TestQuickLook(t *testing.T) {
	testsize.Checks(t, 20, 200)
	rapid.Check(t, func(rt *rapid.T) {
		d := &fixture{t: t, root: t.TempDir()}
		d.reopen()
		defer func() { _ = d.Close() }()
		j := newJournal(t)
		d.put(layout.Drafts+"/fix-login.md", "text\n")
		j.run(d)
		p := &author{d: d, marks: map[string]string{}}
		actions := p.actions(t, j)
		actions["person looks"] = func(rt *rapid.T) { d.looks(rt, j.view) }
		actions["person looks while a run is active"] = func(rt *rapid.T) {
			if _, err := d.seen(true, nil); err != nil {
				rt.Fatal(err)
			}
		}
		actions["a run notes the project"] = func(*rapid.T) {
			if err := d.RememberProject(j.seq); err != nil {
				rt.Fatal(err)
			}
		}
		actions["person changes a letter and puts the time back"] = func(rt *rapid.T) {
			info, err := os.Stat(d.file(fixLogin))
			if err != nil {
				rt.Skip("no file")
			}
			data := []byte(d.text(fixLogin))
			data[rapid.IntRange(0, len(data)-1).Draw(rt, "at")] ^= 1
			d.put(fixLogin, string(data))
			if err := os.Chtimes(d.file(fixLogin), info.ModTime(), info.ModTime()); err != nil {
				rt.Fatal(err)
			}
		}
		actions["the cache is damaged"] = func(rt *rapid.T) {
			data, err := os.ReadFile(d.file(layout.Looked))
			if err != nil {
				rt.Skip("no cache")
			}
			if at := rapid.IntRange(0, len(data)).Draw(rt, "at"); at == len(data) || rapid.Bool().Draw(rt, "cut off") {
				data = data[:at]
			} else {
				data[at] ^= 1
			}
			d.put(layout.Looked, string(data))
		}
		rt.Repeat(actions)
		p.finish()
		d.looks(rt, j.view)
	})
}

// TestQuickLookElsewhere: what was seen of one repository is not taken for
// another one, whoever copies the cache with the files or without, and where no
// cache can be written, a look finds all the same.
func TestQuickLookElsewhere(t *testing.T) {
	one, v := newFixture(t), sample()
	one.write(v)
	current := func(id forge.IntentID) (forge.View, bool) { return v, id == v.Intent.ID }
	one.looks(t, current)
	other := newFixture(t)
	other.write(v)
	other.replace(fixLogin, "title: Mend", "title: Heal")
	for _, rel := range []string{layout.Looked, layout.Index} {
		other.put(rel, one.text(rel))
		if text := other.looks(t, current); !strings.Contains(text, fixLogin) {
			t.Errorf("with %s of another one, an edit is not seen: %s", rel, text)
		}
	}
	if err := os.RemoveAll(other.file(layout.Staging)); err != nil {
		t.Fatal(err)
	}
	other.remove(layout.Looked)
	if text := other.looks(t, current); !strings.Contains(text, fixLogin) || exists(t, other.file(layout.Looked)) {
		t.Errorf("where nothing can be written: %s", text)
	}
	if text, err := (&fixture{t: t, root: t.TempDir()}).seen(true, current); err != nil || text != "map[] 0\n" {
		t.Errorf("where there is no folder: %q, %v", text, err)
	}
}

// TestQuickLooksAtOnce: looks at the same time do not hurt each other, whatever
// is saved meanwhile, and leave nothing behind.
func TestQuickLooksAtOnce(t *testing.T) {
	d, v := newFixture(t), sample()
	d.write(v)
	current := func(id forge.IntentID) (forge.View, bool) { return v, id == v.Intent.ID }
	original := d.text(fixLogin)
	for turn := range 20 {
		text := original
		if turn%2 == 0 {
			text = strings.Replace(original, "title: Mend", "title: Heal", 1)
		}
		d.save(fixLogin, text)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if seen, err := d.seen(true, current); err != nil || strings.Contains(seen, fixLogin) != (turn%2 == 0) {
					t.Errorf("turn %d: %v: %s", turn, err, seen)
				}
			})
		}
		all.Wait()
		d.looks(t, current)
	}
	if left := d.under(layout.Staging); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestListed: a list is there as it was kept, all of it or nothing.
func TestListed(t *testing.T) {
	d := newFixture(t)
	if list := Listed(d.root); list != nil {
		t.Errorf("before it was kept: %q", list)
	}
	KeepListed(d.root, []byte("some"))
	KeepListed(d.root, []byte("all"))
	if list := Listed(d.root); string(list) != "all" {
		t.Errorf("got %q", list)
	}
	whole := d.text(layout.Listed)
	for i := range whole {
		d.put(layout.Listed, whole[:i])
		if list := Listed(d.root); list != nil {
			t.Fatalf("of %d bytes of %d: %q", i, len(whole), list)
		}
	}
	d.remove(layout.Listed)
	if err := os.Symlink(filepath.Join(d.root, "elsewhere"), d.file(layout.Listed)); err != nil {
		t.Fatal(err)
	}
	KeepListed(d.root, []byte("again"))
	if list := Listed(d.root); string(list) != "again" || exists(t, filepath.Join(d.root, "elsewhere")) {
		t.Errorf("through a link: %q", list)
	}
	if left := d.under(layout.Staging); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	KeepListed(t.TempDir(), nil) // there is no folder
}

// TestStartBesideLooks: a run starts whatever looks keep beside it, in the
// folder from which a start takes what a killed run has left.
func TestStartBesideLooks(t *testing.T) {
	d, v := newFixture(t), sample()
	d.write(v)
	current := func(id forge.IntentID) (forge.View, bool) { return v, id == v.Intent.ID }
	var looks sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer looks.Wait()
	defer stop()
	for range 4 {
		looks.Go(func() {
			for ctx.Err() == nil {
				_ = os.Remove(filepath.Join(d.root, ".forge", "cache", "looked")) // so that it is kept anew
				if _, err := d.seen(true, current); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 300 {
		d.reopen()
	}
}
