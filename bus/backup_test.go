package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/backup"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// unfollowed is what backups are followed with in tests that look at the end only.
func unfollowed(backup.Stream) {}

// empty connects to a server without streams, as an administrator who restores.
func empty(t *testing.T, s *bustest.Server) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(wait.Context(t), bus.Config{URL: s.URL(), Name: t.Name(), Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// written makes a backup in a folder of the test.
func written(t *testing.T, b *bus.Bus, done func(backup.Stream)) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "backup")
	if _, err := b.Backups.Write(wait.Context(t), dir, done); err != nil {
		t.Fatal(err)
	}
	return dir
}

// restored puts a backup into a server of its own.
func restored(t *testing.T, dir string) (*bus.Bus, *backup.Restored) {
	t.Helper()
	b := empty(t, bustest.StartServer(t))
	got, err := b.Backups.Restore(wait.Context(t), dir, backup.Options{Done: unfollowed})
	if err != nil {
		t.Fatal(err)
	}
	return b, got
}

// entries returns every message of every journal, with its place.
func entries(t *testing.T, b *bus.Bus) []string {
	t.Helper()
	var list []string
	err := b.Journal.Each(t.Context(), forge.Key{}, func(e *journal.Entry) error {
		list = append(list, fmt.Sprint(e.Ref, e.Broken, e.Other))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestBackup(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	chained(t, s, b)
	before := entries(t, b)
	after, got := restored(t, written(t, b, unfollowed))
	if diff := cmp.Diff(before, entries(t, after)); diff != "" || len(before) == 0 {
		t.Errorf("the journals (-before +after):\n%s", diff)
	}
	if got.Journals != 3 || got.Records != len(before) || got.LeftOut != 0 || len(got.Findings) > 0 {
		t.Errorf("it says %+v of %d records", got, len(before))
	}
	// It can be worked with: the streams that are not in it are made, and journals go on.
	if err := after.Ensure(wait.Context(t)); err != nil {
		t.Fatal(err)
	}
	head, err := after.Journal.Last(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := after.Journal.Append(t.Context(), key, head, record(key, 99)); err != nil {
		t.Error(err)
	}
}

// TestBackupOfWhatGoesOn: between the copies of two streams work goes on. What a project decided
// on the word of an intent that was copied before is not there; all else is, and proves itself.
func TestBackupOfWhatGoesOn(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	a := chained(t, s, b)
	before := entries(t, b)
	project := key.ProjectKey()
	add := func(k, from forge.Key, n int) {
		t.Helper()
		head, err := b.Journal.Last(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		rec := record(k, n)
		rec.Events[0].ID = fmt.Sprintf("%s-%d", k, n)
		if from != (forge.Key{}) {
			rec.Events[0].Anchor = a.anchor(b, from)
		}
		if _, err := b.Journal.Append(t.Context(), k, head, rec); err != nil {
			t.Fatal(err)
		}
	}
	dir := written(t, b, func(one backup.Stream) {
		if one.Name == "FORGE_JOURNAL" {
			add(project, key, 100) // on the word of an intent that is in the backup
			add(key, forge.Key{}, 101)
			add(project, key, 102) // on that of one that is not
			add(project, other, 103)
		}
	})
	after, got := restored(t, dir)
	if got.LeftOut != 2 || len(got.Findings) > 0 || got.Records != len(before)+1 {
		t.Errorf("it says %+v; there were %d records", got, len(before))
	}
	if list := entries(t, after); len(list) != len(before)+1 || strings.Contains(fmt.Sprint(list), "missing") {
		t.Errorf("it has %v", list)
	}
	// The project goes on after the last record that is there.
	head, err := after.Journal.Last(t.Context(), project)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := after.Journal.Append(t.Context(), project, head, record(project, 104)); err != nil {
		t.Error(err)
	}
}

// anchor names the newest message of a journal, as an event from there does.
func (a *attacker) anchor(b *bus.Bus, of forge.Key) string {
	a.t.Helper()
	head, err := b.Journal.Last(a.t.Context(), of)
	if err != nil {
		a.t.Fatal(err)
	}
	ref, err := chain.NewRef(of, &head)
	if err != nil {
		a.t.Fatal(err)
	}
	return ref.String()
}

// TestBackupBesideWriters: journals are written while all is copied, by many at once, and each
// backup restores to journals that prove themselves.
func TestBackupBesideWriters(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	defer writers.Wait()
	defer stop()
	began := make(chan struct{}, 4)
	for w := range 4 {
		k := forge.Key{Project: forge.ProjectID(fmt.Sprint("p", w)), Intent: "x"}
		writers.Go(func() { converse(ctx, t, b, k, began) })
	}
	for range 4 {
		wait.For(t, began)
	}
	for range 3 {
		_, got := restored(t, written(t, b, unfollowed))
		if len(got.Findings) > 0 || got.Journals == 0 {
			t.Errorf("it says %+v", got)
		}
	}
}

// converse has an intent and its project go on, each on the word of the other, until ctx ends.
func converse(ctx context.Context, t *testing.T, b *bus.Bus, k forge.Key, began chan<- struct{}) {
	t.Helper()
	heads := map[forge.Key]string{}
	for n := 0; ctx.Err() == nil; n++ {
		for _, turn := range []struct{ to, from forge.Key }{{k, k.ProjectKey()}, {k.ProjectKey(), k}} {
			head, err := b.Journal.Last(ctx, turn.to)
			if err == nil {
				rec := record(turn.to, n)
				rec.Events[0].ID, rec.Events[0].Anchor = fmt.Sprint(turn.to, n), heads[turn.from]
				head, err = b.Journal.Append(ctx, turn.to, head, rec)
			}
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			if ref, err := chain.NewRef(turn.to, &head); err == nil {
				heads[turn.to] = ref.String()
			}
		}
		if n == 0 {
			began <- struct{}{}
		}
	}
}

// TestBackupIsWholeOrNone: a server that goes away in the middle leaves no
// folder that looks like a backup.
func TestBackupIsWholeOrNone(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	chained(t, s, b)
	parent := t.TempDir()
	dir := filepath.Join(parent, "backup")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := b.Backups.Write(ctx, dir, func(one backup.Stream) {
		if one.Name == "FORGE_JOURNAL" {
			cancel()
		}
	})
	left, readErr := os.ReadDir(parent)
	if err == nil || readErr != nil || len(left) > 0 {
		t.Errorf("error %v; what is left: %v (%v)", err, left, readErr)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Backups.Write(t.Context(), dir, unfollowed); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("into a folder that exists: %v", err)
	}
}

// TestAlteredBackups: whatever was changed in a backup is named, and nothing of it is restored.
func TestAlteredBackups(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	chained(t, s, b)
	whole := written(t, b, unfollowed)
	target := bustest.StartServer(t)
	to := empty(t, target)
	manifest := func(change func(*backup.Manifest)) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			m, err := backup.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			change(m)
			data, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			overwrite(t, filepath.Join(dir, "manifest.json"), data)
		}
	}
	for name, tt := range map[string]struct {
		alter func(*testing.T, string)
		want  string
	}{
		"no manifest": {func(t *testing.T, dir string) { t.Helper(); remove(t, filepath.Join(dir, "manifest.json")) }, "not a backup"},
		"a bit": {func(t *testing.T, dir string) {
			t.Helper()
			path := filepath.Join(dir, "FORGE_JOURNAL", "stream.arc.s2")
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)/2] ^= 1
			overwrite(t, path, data)
		}, "not what was copied"},
		"the state": {func(t *testing.T, dir string) {
			t.Helper()
			overwrite(t, filepath.Join(dir, "FORGE_JOURNAL", "backup.json"), []byte("{}"))
		}, "not what was copied"},
		"a file is gone": {func(t *testing.T, dir string) {
			t.Helper()
			remove(t, filepath.Join(dir, "FORGE_PROJECTS", "stream.arc.s2"))
		}, "no such file"},
		"a stream less":  {manifest(func(m *backup.Manifest) { m.Streams = m.Streams[1:] }), "is not in its manifest.json"},
		"another format": {manifest(func(m *backup.Manifest) { m.Format = 2 }), "another version"},
		"a path":         {manifest(func(m *backup.Manifest) { m.Streams[0].Name = "../../etc" }), "no stream of pfl-forge"},
		"another file":   {manifest(func(m *backup.Manifest) { m.Streams[0].File = "../x" }), "no stream of pfl-forge"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "b")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			tt.alter(t, dir)
			_, err := to.Backups.Restore(t.Context(), dir, backup.Options{Done: unfollowed})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if names := streamNames(t, target); len(names) > 0 {
				t.Errorf("the server has %v", names)
			}
		})
	}
}

// TestRestoreTakesNoPlace: nothing is restored beside what is there; a restore
// that was cut off goes on.
func TestRestoreTakesNoPlace(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	chained(t, s, b)
	dir := written(t, b, unfollowed)
	if _, err := b.Backups.Restore(t.Context(), dir, backup.Options{Done: unfollowed}); !errors.Is(err, backup.ErrNotEmpty) {
		t.Errorf("into a server that works: %v", err)
	}
	to := bustest.StartServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := empty(t, to).Backups.Restore(ctx, dir, backup.Options{Done: func(one backup.Stream) {
		if one.Name == "FORGE_PROJECTS" {
			cancel()
		}
	}})
	if err == nil || len(streamNames(t, to)) == 0 {
		t.Fatalf("error %v, streams %v", err, streamNames(t, to))
	}
	again := empty(t, to)
	if _, err := again.Backups.Restore(t.Context(), dir, backup.Options{Done: unfollowed}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(entries(t, b), entries(t, again)); diff != "" {
		t.Errorf("the journals (-before +after):\n%s", diff)
	}
}

// TestRestoreWithOtherReplicas: a backup of a cluster goes into a single
// server, if that is asked for.
func TestRestoreWithOtherReplicas(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	chained(t, s, b)
	dir := written(t, b, unfollowed)
	for replicas, want := range map[int]string{1: "", 3: "restore stream"} {
		_, err := empty(t, bustest.StartServer(t)).Backups.Restore(t.Context(), dir, backup.Options{Replicas: replicas, Done: unfollowed})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", replicas, err)
		}
	}
}

func streamNames(t *testing.T, s *bustest.Server) []string {
	t.Helper()
	var names []string
	for name := range jetStream(t, raw(t, s)).StreamNames(t.Context()).Name() {
		names = append(names, name)
	}
	return names
}

func overwrite(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// TestAccountOfBackups makes and restores a backup with what the account may,
// and no more: nothing is refused.
func TestAccountOfBackups(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	from, to := guardedServer(t), guardedServer(t)
	runner := connectAs(ctx, t, from, "runner", "RUNNER")
	if err := runner.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := runner.Journal.Append(ctx, key, chain.Head{}, record(key, 1)); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "backup")
	if _, err := connectAs(ctx, t, from, "backup", "BACKUP").Backups.Write(ctx, dir, unfollowed); err != nil {
		t.Fatal(err)
	}
	got, err := connectAs(ctx, t, to, "backup", "BACKUP").Backups.Restore(ctx, dir, backup.Options{Done: unfollowed})
	if err != nil || got.Records != 1 {
		t.Errorf("restored %+v, %v", got, err)
	}
	if _, err := connectAs(ctx, t, from, "ada", "ADA").Backups.Write(ctx, dir+"-ada", unfollowed); !errors.Is(err, bus.ErrNotAllowed) {
		t.Errorf("a person: %v", err)
	}
}
