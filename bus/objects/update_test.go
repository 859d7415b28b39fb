package objects_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

var whole = objects.TranscriptName(key, try("fix-login-001", 1))

// TestObjectsUpdate checks that of several that update an object at the same time none
// undoes what another one did.
func TestObjectsUpdate(t *testing.T) {
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	const writers, times = 4, 10
	var writing sync.WaitGroup
	for range writers {
		o := s.Connect(t).Objects
		writing.Go(func() {
			for range times {
				for done := false; !done; {
					err := o.Update(ctx, whole, func(before *objects.Object) (*objects.Object, error) {
						if before == nil {
							before = &objects.Object{}
						}
						return &objects.Object{Content: append(before.Content, 'x'), About: map[string]string{"size": fmt.Sprint(len(before.Content) + 1)}}, nil
					})
					if err != nil && !errors.Is(err, bus.ErrConflict) {
						t.Error(err)
						return
					}
					done = err == nil
				}
			}
		})
	}
	writing.Wait()
	o := s.Connect(t).Objects
	got, err := o.Read(ctx, whole)
	if err != nil || string(got.Content) != strings.Repeat("x", writers*times) || got.About["size"] != fmt.Sprint(writers*times) {
		t.Errorf("got %+v, %v", got, err)
	}
	list, err := o.List(ctx, objects.Name{})
	want := []objects.Info{{Name: whole, Size: writers * times, About: got.About}}
	if diff := cmp.Diff(want, list); diff != "" || err != nil {
		t.Error(diff, err)
	}
	js, err := raw(t, s).JetStream()
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "what was there before is gone, and so is what took its place", func() bool {
		info, err := js.StreamInfo("OBJ_FORGE_TRANSCRIPTS")
		return err == nil && info.State.Msgs == 2
	})
	store, err := js.ObjectStore("FORGE_TRANSCRIPTS") // as the nats command line does
	if err != nil {
		t.Fatal(err)
	}
	if text, err := store.GetString("shop/fix-login/fix-login-001/transcript/implement-1"); err != nil || text != string(got.Content) {
		t.Errorf("other clients read %q, %v", text, err)
	}
	if a, ok := whole.Attempt(); !ok || a != (forge.Attempt{Task: "fix-login-001", Step: forge.StepImplement, Number: 1}) {
		t.Errorf("its name says %+v", a)
	}
	stop := errors.New("stop")
	if err := o.Update(ctx, whole, func(*objects.Object) (*objects.Object, error) { return nil, stop }); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if err := o.Delete(ctx, whole); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Read(ctx, whole); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("what was deleted: %v", err)
	}
}

// TestOldestTranscriptsGo checks that whole transcripts make room for newer ones, and
// that this takes nothing from what workers hand on.
func TestOldestTranscriptsGo(t *testing.T) {
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	o := s.Connect(t).Objects
	js, err := raw(t, s).JetStream()
	if err != nil {
		t.Fatal(err)
	}
	info, err := js.StreamInfo("OBJ_FORGE_TRANSCRIPTS")
	if err != nil {
		t.Fatal(err)
	}
	info.Config.MaxBytes = 1 << 20 // an operator may
	if _, err := js.UpdateStream(&info.Config); err != nil {
		t.Fatal(err)
	}
	putObject(ctx, t, o, session, "mine")
	const n = 20
	name := func(i int) objects.Name { return objects.TranscriptName(key, try("fix-login-001", i+1)) }
	text := func(i int) string { return strings.Repeat(string(rune('a'+i)), 200<<10) } // two parts
	for i := range n {
		putObject(ctx, t, o, name(i), text(i))
	}
	var kept []int
	for i := range n {
		var b strings.Builder
		err := o.Get(ctx, name(i), &b)
		if err == nil && b.String() == text(i) {
			kept = append(kept, i)
		} else if !errors.Is(err, bus.ErrNotFound) {
			t.Errorf("object %d: %v", i, err)
		}
	}
	if diff := cmp.Diff([]int{16, 17, 18, 19}, kept[max(len(kept)-4, 0):]); diff != "" || len(kept) > 5 {
		t.Errorf("kept: %v", kept)
	}
	if got := getObject(ctx, t, o, session); got != "mine" {
		t.Errorf("what workers hand on is %q", got)
	}
	// One whose first part is gone is made again.
	gone := name(n - 1 - len(kept))
	if err := o.Get(ctx, gone, io.Discard); !errors.Is(err, bus.ErrNotFound) {
		t.Fatal(err)
	}
	err = o.Update(ctx, gone, func(before *objects.Object) (*objects.Object, error) {
		if before != nil {
			t.Error("it is there")
		}
		return &objects.Object{Content: []byte("again")}, nil
	})
	if err != nil || getObject(ctx, t, o, gone) != "again" {
		t.Error(err)
	}
}

// TestReadTranscript checks that all claims of an attempt are read, many batches, and
// nothing else.
func TestReadTranscript(t *testing.T) {
	ctx := wait.Context(t)
	b := bustest.Start(t)
	want := ""
	a := try("fix-login-001", 1)
	for i := range 1200 {
		a.Claim = 1 + i/1000
		line := fmt.Sprintf("%d %d\n", i, rand.Uint64())
		want += line
		if err := b.Transcripts.Append(ctx, key, a, fmt.Sprintf("w/%d", i), []byte(line)); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			for _, other := range []forge.Attempt{try("fix-login-001", 2), try("fix-login-002", 1), {Step: forge.StepImplement, Number: 1, Claim: 1}} {
				if err := b.Transcripts.Append(ctx, key, other, fmt.Sprintf("%s/%d", other, i), []byte("other\n")); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	got := ""
	batches, err := b.Transcripts.Read(ctx, key, a)
	for i, batch := range batches {
		if got += string(batch.Lines); batch.ID != fmt.Sprintf("w/%d", i) || batch.At.IsZero() {
			t.Fatalf("batch %d is %q of %s", i, batch.ID, batch.At)
		}
	}
	if got != want || err != nil {
		t.Errorf("%d batches, %v", len(batches), err)
	}
	if batches, err := b.Transcripts.Read(ctx, key, forge.Attempt{Step: forge.StepImplement, Number: 1}); err != nil || len(batches) != 12 {
		t.Errorf("of the whole intent: %d batches, %v", len(batches), err)
	}
	if batches, err := b.Transcripts.Read(ctx, key, try("fix-login-003", 1)); err != nil || len(batches) != 0 {
		t.Errorf("of nobody: %d batches, %v", len(batches), err)
	}
	seq, at, err := b.Transcripts.Oldest(ctx, key.Project)
	if err != nil || seq != batches[0].Seq || !at.Equal(batches[0].At) {
		t.Errorf("it begins at %d, %s, %v", seq, at, err)
	}
}

// TestEveryStepHasATranscript: the name of each step's transcript is one that
// objects may have, and says whose it is.
func TestEveryStepHasATranscript(t *testing.T) {
	for _, step := range forge.Steps() {
		a := forge.Attempt{Task: "fix-login-001", Step: step, Number: 12}
		name := objects.TranscriptName(key, a)
		if got, ok := name.Attempt(); !ok || got != a {
			t.Errorf("%s: %q is of %v, %t", step, name.ID, got, ok)
		}
		if _, err := forge.ParseIntentID(name.ID); err != nil {
			t.Errorf("%s: %v", step, err)
		}
	}
}
