package bus_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/backup"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// into makes a backup in a folder of them.
func into(t *testing.T, b *bus.Bus, parent string, keep int) *backup.Kept {
	t.Helper()
	got, err := b.Backups.WriteInto(wait.Context(t), parent, keep, unfollowed)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// renamed has a backup be one of another time, as if it had been made then.
func renamed(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, "manifest.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, path, []byte(strings.Replace(string(text), fmt.Sprintf("%q", filepath.Base(dir)), fmt.Sprintf("%q", name), 1)))
	to := filepath.Join(filepath.Dir(dir), name)
	if err := os.Rename(dir, to); err != nil {
		t.Fatal(err)
	}
	return to
}

// inside returns what a folder of backups has, without its lock.
func inside(t *testing.T, parent string) []string {
	t.Helper()
	entries, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		if e.Name() != ".pfl-forge-backups.lock" {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestBackupsInto: each is whole, has the time as its name, and those that are
// too many go, the oldest first.
func TestBackupsInto(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	chained(t, s, b)
	parent := t.TempDir()
	var made []string
	for range 4 { // some of them within one second
		got := into(t, b, parent, 0)
		if got.Begun.Format("2006") != filepath.Base(got.Folder)[:4] || len(got.Removed)+len(got.Left) > 0 {
			t.Errorf("it says %+v", got)
		}
		if _, err := backup.Open(got.Folder); err != nil {
			t.Error(err)
		}
		made = append(made, filepath.Base(got.Folder))
	}
	if diff := cmp.Diff(made, inside(t, parent)); diff != "" {
		t.Errorf("names do not sort as they were made (-made +there):\n%s", diff)
	}
	got := into(t, b, parent, 2)
	var want []string
	for _, name := range made[:3] {
		want = append(want, filepath.Join(parent, name))
	}
	if diff := cmp.Diff(want, got.Removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{made[3], filepath.Base(got.Folder)}, inside(t, parent)); diff != "" {
		t.Errorf("there (-want +got):\n%s", diff)
	}
	if got = into(t, b, parent, 1); len(got.Removed) != 2 {
		t.Errorf("of two one too many were removed: %v", got.Removed)
	}
	if _, back := restored(t, got.Folder); back.Records == 0 {
		t.Error("nothing is restored")
	}
	for name, dir := range map[string]string{"no folder": filepath.Join(parent, "none"), "a file": filepath.Join(got.Folder, "manifest.json")} {
		if _, err := b.Backups.WriteInto(t.Context(), dir, 0, unfollowed); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBackupsIntoWithAClockThatGoesBack: the newest backup is of a time that is
// still to come. The one that is made then is named after it, so it is not
// taken for the oldest, and says in its manifest when it was made.
func TestBackupsIntoWithAClockThatGoesBack(t *testing.T) {
	t.Parallel()
	b := bustest.StartServer(t).Connect(t)
	ensured(t, b)
	parent := t.TempDir()
	into(t, b, parent, 0)
	renamed(t, into(t, b, parent, 0).Folder, "29990101T000000Z")
	got := into(t, b, parent, 2)
	if filepath.Base(got.Folder) != "29990101T000001Z" || got.Begun.Year() >= 2999 || len(got.Removed) != 1 {
		t.Errorf("it says %+v", got)
	}
	if diff := cmp.Diff([]string{"29990101T000000Z", "29990101T000001Z"}, inside(t, parent)); diff != "" {
		t.Error(diff)
	}
	renamed(t, got.Folder, "99991231T235959Z")
	if _, err := b.Backups.WriteInto(t.Context(), parent, 2, unfollowed); err == nil || !strings.Contains(err.Error(), "99991231T235959Z") {
		t.Errorf("at the end of time: %v", err)
	}
}

// TestBackupsIntoLeaveWhatIsNotTheirs: what has the name of a backup and is
// another's, or more than that, stays, and does not count.
func TestBackupsIntoLeaveWhatIsNotTheirs(t *testing.T) {
	t.Parallel()
	b := bustest.StartServer(t).Connect(t)
	ensured(t, b)
	parent, elsewhere := t.TempDir(), t.TempDir()
	ours := func(name string) string {
		t.Helper()
		return renamed(t, into(t, b, parent, 0).Folder, name)
	}
	changed := func(dir, from, to string) {
		t.Helper()
		path := filepath.Join(dir, "manifest.json")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		overwrite(t, path, []byte(strings.Replace(string(text), from, to, 1)))
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// A person's, under such a name and others; a renamed one; one with a note in it;
	// of a later version; without a manifest; with one that is cut off, or a link;
	// links to a whole one and to a part; a file; a folder of others; one with a pipe.
	_, err := b.Backups.Write(t.Context(), filepath.Join(parent, "20010101T000000Z"), unfollowed)
	must(err)
	must(os.Rename(ours("20010102T000000Z"), filepath.Join(parent, "20010103T000000Z")))
	overwriteNew(t, filepath.Join(ours("20010104T000000Z"), "FORGE_JOURNAL", "note"))
	changed(ours("20010105T000000Z"), `"format": 1`, `"format": 2`)
	remove(t, filepath.Join(ours("20010106T000000Z"), "manifest.json"))
	changed(ours("20010107T000000Z"), "}", "")
	linked := ours("20010108T000000Z")
	must(os.Rename(filepath.Join(linked, "manifest.json"), filepath.Join(elsewhere, "manifest.json")))
	must(os.Symlink(filepath.Join(elsewhere, "manifest.json"), filepath.Join(linked, "manifest.json")))
	must(os.Rename(ours("20010109T000000Z"), filepath.Join(elsewhere, "20010109T000000Z")))
	must(os.Symlink(filepath.Join(elsewhere, "20010109T000000Z"), filepath.Join(parent, "20010109T000000Z")))
	must(os.Symlink(filepath.Join(elsewhere, "20010109T000000Z"), filepath.Join(parent, ".20010109T000000Z-1")))
	overwriteNew(t, filepath.Join(parent, "20010110T000000Z"))
	must(os.Mkdir(filepath.Join(parent, ".20010111T000000Z-1"), 0o700))
	overwriteNew(t, filepath.Join(parent, ".20010111T000000Z-1", "thesis"))
	must(os.Rename(ours("20010112T000000Z"), filepath.Join(parent, "before-the-move")))
	must(os.Mkdir(filepath.Join(parent, "lost+found"), 0o700))
	theirs := inside(t, parent)
	got := into(t, b, parent, 1)
	if diff := cmp.Diff([]string{}, got.Removed); diff != "" {
		t.Errorf("removed: %s", diff)
	}
	if len(got.Left) != len(theirs)-2 { // but the two with names of their own
		t.Errorf("left: %v", got.Left)
	}
	next := into(t, b, parent, 1)
	if diff := cmp.Diff([]string{got.Folder}, next.Removed); diff != "" {
		t.Errorf("removed: %s", diff)
	}
	if diff := cmp.Diff(append([]string{}, theirs...), without(inside(t, parent), filepath.Base(next.Folder))); diff != "" {
		t.Errorf("there (-before +after):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(elsewhere, "20010109T000000Z", "manifest.json")); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
}

// TestBackupsIntoAfterAKill: whatever a call leaves that is killed in the
// middle, which the folder is copied for after each stream, the next one makes
// a whole backup beside what was there, and leaves nothing of it.
func TestBackupsIntoAfterAKill(t *testing.T) {
	t.Parallel()
	b := bustest.StartServer(t).Connect(t)
	ensured(t, b)
	parent := t.TempDir()
	first := filepath.Base(into(t, b, parent, 0).Folder)
	var killed []string
	_, err := b.Backups.WriteInto(wait.Context(t), parent, 0, func(backup.Stream) {
		dir := filepath.Join(t.TempDir(), "killed")
		if err := os.CopyFS(dir, os.DirFS(parent)); err != nil {
			t.Error(err)
		}
		killed = append(killed, dir)
		// Meanwhile the folder is another's.
		if _, err := b.Backups.WriteInto(t.Context(), parent, 0, unfollowed); !errors.Is(err, backup.ErrBusy) {
			t.Errorf("two at once: %v", err)
		}
	})
	if err != nil || len(killed) == 0 {
		t.Fatalf("%v, %d streams", err, len(killed))
	}
	for _, dir := range []string{killed[0], killed[len(killed)/2], killed[len(killed)-1]} {
		before := inside(t, dir)
		if len(before) != 2 {
			t.Fatalf("a kill leaves %v", before)
		}
		got := into(t, b, dir, 2)
		if diff := cmp.Diff([]string{first, filepath.Base(got.Folder)}, inside(t, dir)); diff != "" || len(got.Removed) > 0 {
			t.Errorf("after %v, removed %v:\n%s", before, got.Removed, diff)
		}
	}
	// One that was killed while it removed: what is half gone is no backup.
	whole := killed[0]
	names := inside(t, whole)
	going := filepath.Join(whole, "."+names[0]+"-0")
	if err := errors.Join(os.Rename(filepath.Join(whole, names[0]), going), os.RemoveAll(filepath.Join(going, "FORGE_JOURNAL"))); err != nil {
		t.Fatal(err)
	}
	got := into(t, b, whole, 2)
	if diff := cmp.Diff([]string{names[1], filepath.Base(got.Folder)}, inside(t, whole)); diff != "" || len(got.Removed) > 0 {
		t.Errorf("removed %v:\n%s", got.Removed, diff)
	}
}

// TestBackupsIntoBesideOneByName: one that a person makes meanwhile, under a
// name that could be one of ours, goes on.
func TestBackupsIntoBesideOneByName(t *testing.T) {
	t.Parallel()
	b := bustest.StartServer(t).Connect(t)
	ensured(t, b)
	parent := t.TempDir()
	theirs := filepath.Join(parent, "20010101T000000Z")
	var got *backup.Kept
	_, err := b.Backups.Write(wait.Context(t), theirs, func(backup.Stream) {
		if got == nil {
			got = into(t, b, parent, 1)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Open(theirs); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"20010101T000000Z", filepath.Base(got.Folder)}, inside(t, parent)); diff != "" {
		t.Error(diff)
	}
}

// TestFolderOfBackupsNamesThem: who gives the folder, and cannot list it, is told which there are.
func TestFolderOfBackupsNamesThem(t *testing.T) {
	t.Parallel()
	b := bustest.StartServer(t).Connect(t)
	ensured(t, b)
	parent := t.TempDir()
	if _, err := backup.Open(parent); !errors.Is(err, backup.ErrNoBackup) || strings.Contains(err.Error(), "backups") {
		t.Errorf("an empty one: %v", err)
	}
	first, second := into(t, b, parent, 0), into(t, b, parent, 0)
	want := "it has the backups " + filepath.Base(first.Folder) + ", " + filepath.Base(second.Folder)
	if _, err := backup.Open(parent); !errors.Is(err, backup.ErrNoBackup) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestBackupsIntoThatFail: one that cannot be written, as on a full disk,
// leaves nothing, and removes nothing. Nor is a lock followed that is a link.
func TestBackupsIntoThatFail(t *testing.T) {
	t.Parallel()
	b := bustest.StartServer(t).Connect(t)
	ensured(t, b)
	parent := t.TempDir()
	into(t, b, parent, 0)
	into(t, b, parent, 0)
	before := inside(t, parent)
	_, err := b.Backups.WriteInto(wait.Context(t), parent, 1, func(one backup.Stream) {
		if one.Name == "FORGE_JOURNAL" { // no file can be made any more
			for _, name := range inside(t, parent) {
				if strings.HasPrefix(name, ".") {
					if err := os.RemoveAll(filepath.Join(parent, name)); err != nil {
						t.Error(err)
					}
				}
			}
		}
	})
	if diff := cmp.Diff(before, inside(t, parent)); err == nil || diff != "" {
		t.Errorf("%v; there:\n%s", err, diff)
	}
	lock, target := filepath.Join(parent, ".pfl-forge-backups.lock"), filepath.Join(t.TempDir(), "made")
	remove(t, lock)
	if err := os.Symlink(target, lock); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Backups.WriteInto(t.Context(), parent, 1, unfollowed); err == nil {
		t.Error("a link is taken as the lock")
	}
	if _, err := os.Lstat(target); err == nil {
		t.Error("a file was made elsewhere")
	}
}

// TestKeptAsJSON: programs find the folder, and what was removed, also where that is nothing.
func TestKeptAsJSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(backup.Kept{Folder: "f", Backups: []string{"f"}, Removed: []string{}, Left: []string{}})
	if err != nil || !strings.Contains(string(text), `"folder":"f","backups":["f"],"removed":[],"left":[]`) {
		t.Errorf("%v: %s", err, text)
	}
}

// ensured makes the streams.
func ensured(t *testing.T, b *bus.Bus) {
	t.Helper()
	if err := b.Ensure(wait.Context(t)); err != nil {
		t.Fatal(err)
	}
}

// overwriteNew writes a file that is not there.
func overwriteNew(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// without returns names without one of them.
func without(names []string, name string) []string {
	list := []string{}
	for _, n := range names {
		if n != name {
			list = append(list, n)
		}
	}
	return list
}
