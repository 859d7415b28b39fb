package objects_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

var key = forge.Key{Project: "shop", Intent: "fix-login"}

func try(task forge.TaskID, n int) forge.Attempt {
	return forge.Attempt{Task: task, Step: forge.StepImplement, Number: n, Claim: 1}
}

// raw is a connection that can send what a Bus never would.
func raw(t testing.TB, s *bustest.Server) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

var session = objects.Name{Project: "shop", Intent: "fix-login", Task: "fix-login-001", Kind: objects.Session, ID: "s-1"}

func getObject(ctx context.Context, t *testing.T, o *objects.Store, name objects.Name) string {
	t.Helper()
	var b bytes.Buffer
	if err := o.Get(ctx, name, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func putObject(ctx context.Context, t *testing.T, o *objects.Store, name objects.Name, text string) {
	t.Helper()
	if err := o.Put(ctx, name, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
}

func TestObjects(t *testing.T) {
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	o := s.Connect(t).Objects
	if err := o.Get(ctx, session, io.Discard); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("what is not there: %v", err)
	}
	if err := o.Delete(ctx, session); err != nil {
		t.Errorf("delete what is not there: %v", err)
	}
	if list, err := o.List(ctx, objects.Name{}); err != nil || len(list) != 0 {
		t.Errorf("an empty store lists %v, %v", list, err)
	}
	large := make([]byte, 300<<10)
	for i := range large {
		large[i] = byte(rand.Uint32())
	}
	analysis := objects.Name{Project: "shop", Intent: "fix-login", Kind: objects.Session}
	other := objects.Name{Project: "blog", Intent: "fix-login", Kind: objects.Session}
	putObject(ctx, t, o, session, "first")
	putObject(ctx, t, o, session, string(large))
	putObject(ctx, t, o, analysis, "")
	putObject(ctx, t, o, other, "x")

	s.Restart(t) // they are on disk
	wait.Until(t, "the object is served again", func() bool { return o.Get(ctx, session, io.Discard) == nil })
	if got := getObject(ctx, t, o, session); got != string(large) {
		t.Error("the object is another one")
	}
	if got := getObject(ctx, t, o, analysis); got != "" {
		t.Errorf("an empty object is %q", got)
	}
	js, err := raw(t, s).JetStream()
	if err != nil {
		t.Fatal(err)
	}
	store, err := js.ObjectStore("FORGE") // as the nats command line does
	if err != nil {
		t.Fatal(err)
	}
	if got, err := store.GetBytes("shop/fix-login/fix-login-001/session/s-1"); err != nil || !bytes.Equal(got, large) {
		t.Errorf("other clients read %d bytes, %v", len(got), err)
	}
	list := func(like objects.Name) []objects.Info {
		t.Helper()
		list, err := o.List(ctx, like)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	all := []objects.Info{{Name: other, Size: 1}, {Name: analysis}, {Name: session, Size: int64(len(large))}}
	if diff := cmp.Diff(all, list(objects.Name{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(all[1:], list(objects.Name{Project: "shop"})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(all[2:], list(objects.Name{Project: "shop", Task: "fix-login-001"})); diff != "" {
		t.Error(diff)
	}
	if err := o.Delete(ctx, session); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all[:2], list(objects.Name{})); diff != "" {
		t.Error(diff)
	}
	if err := o.Get(ctx, session, io.Discard); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("what was deleted: %v", err)
	}
}

type failing struct{ io.Reader }

func (f failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestObjectsRefused checks that a Put that fails leaves what was there.
func TestObjectsRefused(t *testing.T) {
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	o := s.Connect(t).Objects
	putObject(ctx, t, o, session, "old")
	o.Limit(1 << 20)
	if err := o.Put(ctx, session, io.LimitReader(zeros{}, 1<<20+1)); !errors.Is(err, objects.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	half := io.MultiReader(strings.NewReader("half"), failing{})
	if err := o.Put(ctx, session, half); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a reader that fails: %v", err)
	}
	js, err := raw(t, s).JetStream()
	if err != nil {
		t.Fatal(err)
	}
	info, err := js.StreamInfo("OBJ_FORGE")
	if err != nil {
		t.Fatal(err)
	}
	info.Config.MaxBytes = 200 << 10 // an operator may
	if _, err := js.UpdateStream(&info.Config); err != nil {
		t.Fatal(err)
	}
	if err := o.Put(ctx, session, io.LimitReader(zeros{}, 300<<10)); !errors.Is(err, objects.ErrFull) {
		t.Errorf("full: %v", err)
	}
	if got := getObject(ctx, t, o, session); got != "old" {
		t.Errorf("got %q", got)
	}
	s.Connect(t) // makes sure of the streams
	if info, err = js.StreamInfo("OBJ_FORGE"); err != nil || info.Config.MaxBytes != 200<<10 {
		t.Errorf("the operator's limit became %d, %v", info.Config.MaxBytes, err)
	}
}

// TestLittleRoom checks that the streams are made on a server that has less room than
// they would like.
func TestLittleRoom(t *testing.T) {
	ctx := wait.Context(t)
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 424 << 20, NoLog: true, NoSigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(wait.Patience) {
		t.Fatal("the server is not ready")
	}
	b, err := bus.Connect(ctx, bus.Config{URL: s.ClientURL()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for range 2 { // the second time they are there
		if err := b.Ensure(ctx); err != nil {
			t.Fatal(err)
		}
	}
	putObject(ctx, t, b.Objects, session, "x")
	if err := b.Transcripts.Append(ctx, key, try("fix-login-001", 1), "1", []byte("x")); err != nil {
		t.Error(err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestObjectNames(t *testing.T) {
	ctx := wait.Context(t)
	o := bustest.Start(t).Objects
	for what, name := range map[string]objects.Name{
		"empty":                    {},
		"no intent":                {Project: "shop", Kind: objects.Session},
		"no kind":                  {Project: "shop", Intent: "a"},
		"project":                  {Project: "sh/op", Intent: "a", Kind: objects.Session},
		"intent":                   {Project: "shop", Intent: "*", Kind: objects.Session},
		"task":                     {Project: "shop", Intent: "a", Task: "../a-001", Kind: objects.Session},
		"id":                       {Project: "shop", Intent: "a", Kind: objects.Session, ID: "a.b"},
		"an intent's snapshot":     {Project: "shop", Intent: "a", Kind: objects.Snapshot},
		"nobody's snapshot":        {Kind: objects.Snapshot, ID: "a"},
		"a project's open intents": {Project: "shop", Kind: objects.Open},
		"open intents of a task":   {Task: "a-001", Kind: objects.Open, ID: "a"},
		"other kind":               {Project: "shop", Intent: "a", Kind: "virus"},
		"no attempt":               {Project: "shop", Intent: "a", Kind: objects.Transcript},
		"no number":                {Project: "shop", Intent: "a", Kind: objects.Transcript, ID: "review"},
		"no step":                  {Project: "shop", Intent: "a", Kind: objects.Transcript, ID: "-1"},
		"number":                   {Project: "shop", Intent: "a", Kind: objects.Transcript, ID: "review-01"},
	} {
		if err := o.Put(ctx, name, strings.NewReader("x")); err == nil {
			t.Errorf("%s: put", what)
		}
		if err := o.Get(ctx, name, io.Discard); err == nil {
			t.Errorf("%s: got", what)
		}
		if err := o.Delete(ctx, name); err == nil {
			t.Errorf("%s: deleted", what)
		}
	}
}

// TestObjectsPermissions checks what the operators' guide says: workers write,
// people read.
func TestObjectsPermissions(t *testing.T) {
	ctx := wait.Context(t)
	read := []string{
		"$JS.API.STREAM.INFO.OBJ_FORGE", "$JS.API.STREAM.MSG.GET.OBJ_FORGE", "$JS.API.DIRECT.GET.OBJ_FORGE",
	}
	read = append(read, "$JS.API.STREAM.MSG.GET.FORGE_TRANSCRIPTS", "$JS.API.STREAM.INFO.OBJ_FORGE_TRANSCRIPTS",
		"$JS.API.STREAM.MSG.GET.OBJ_FORGE_TRANSCRIPTS", "$JS.API.DIRECT.GET.OBJ_FORGE_TRANSCRIPTS")
	write := append([]string{
		"$O.FORGE.>", "$JS.API.STREAM.PURGE.OBJ_FORGE", "forge.transcript.>", "$JS.API.DIRECT.GET.FORGE_TRANSCRIPTS",
		"$O.FORGE_TRANSCRIPTS.>", "$JS.API.STREAM.PURGE.OBJ_FORGE_TRANSCRIPTS",
	}, read...)
	user := func(name string, publish []string) *server.User {
		return &server.User{Username: name, Password: "x", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}}
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
		Users: []*server.User{
			{Username: "runner", Password: "x"},
			user("worker", write), user("person", read),
			user("half", append([]string{"$O.FORGE_TRANSCRIPTS.C.>"}, read...)),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(wait.Patience) {
		t.Fatal("the server is not ready")
	}
	as := func(name string) *bus.Bus {
		t.Helper()
		b, err := bus.Connect(ctx, bus.Config{URL: "nats://" + name + ":x@" + s.Addr().String(), Logger: nil})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}
	if err := as("runner").Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	workers, people := as("worker"), as("person")
	worker, person := workers.Objects, people.Objects
	a := try("fix-login-001", 1)
	if err := workers.Transcripts.Append(ctx, key, a, "w/0", []byte("1\n")); err != nil {
		t.Fatal(err)
	}
	if batches, err := workers.Transcripts.Read(ctx, key, a); err != nil || len(batches) != 1 {
		t.Errorf("a worker reads %v of a transcript, %v", batches, err)
	}
	if seq, _, err := people.Transcripts.Oldest(ctx, key.Project); err != nil || seq != 1 {
		t.Errorf("for a person, transcripts begin at %d, %v", seq, err)
	}
	transcript := objects.TranscriptName(key, a)
	for _, text := range []string{"whole", "whole, and more"} {
		err := worker.Update(ctx, transcript, func(*objects.Object) (*objects.Object, error) { return &objects.Object{Content: []byte(text)}, nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, err := person.Read(ctx, transcript); err != nil || string(got.Content) != "whole, and more" {
		t.Errorf("a person reads %v, %v", got, err)
	}
	if list, err := person.List(ctx, objects.Name{Kind: objects.Transcript}); err != nil || len(list) != 1 {
		t.Errorf("a person lists %v, %v", list, err)
	}
	putObject(ctx, t, worker, session, "mine")
	putObject(ctx, t, worker, session, "mine, changed")
	if got := getObject(ctx, t, person, session); got != "mine, changed" {
		t.Errorf("a person reads %q", got)
	}
	if list, err := person.List(ctx, session); err != nil || len(list) != 1 {
		t.Errorf("a person lists %v, %v", list, err)
	}
	short := wait.Briefly(t, 300*time.Millisecond)
	if err := person.Put(short, session, strings.NewReader("theirs")); err == nil {
		t.Error("a person writes")
	}
	if got := getObject(ctx, t, worker, session); got != "mine, changed" {
		t.Errorf("a worker reads %q", got)
	}
	// What nobody answers ends with its time, also when a part is stored: work waits for it.
	half := as("half").Objects
	wait.Until(t, "half a right is refused in time", func() bool {
		began := time.Now()
		err = half.Update(wait.Briefly(t, 300*time.Millisecond), transcript, func(*objects.Object) (*objects.Object, error) {
			return &objects.Object{Content: []byte("half")}, nil
		})
		if err == nil {
			t.Fatal("half a right is enough")
		}
		return time.Since(began) < 2*time.Second
	})
	if got, err := person.Read(ctx, transcript); err != nil || string(got.Content) != "whole, and more" {
		t.Errorf("a person reads %v, %v", got, err)
	}
	if err := worker.Delete(ctx, session); err != nil {
		t.Error(err)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
