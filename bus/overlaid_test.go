package bus_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// refusedWith has the server answer a request of a sender with a text of the sender's
// own in JSON, and store the answer on a subject where the sender may not publish.
func refusedWith(t *testing.T, nc *nats.Conn, own, id, to string) {
	t.Helper()
	m := nats.NewMsg(own)
	m.Data = []byte("{}")
	m.Header.Set(nats.MsgIdHdr, id)
	if _, err := nc.RequestMsg(m, wait.Patience); err != nil {
		t.Fatal(err)
	}
	m = nats.NewMsg(own)
	m.Data = []byte("{}")
	m.Header.Set(nats.ExpectedLastMsgIdHdr, "another")
	refused, err := nc.RequestMsg(m, wait.Patience)
	if err != nil || !strings.Contains(string(refused.Data), "wrong last msg ID: ") {
		t.Fatalf("the server says %s, %v", refused.Data, err)
	}
	m.Reply = to
	if err := nc.PublishMsg(m); err != nil {
		t.Fatal(err)
	}
	if err := nc.FlushWithContext(wait.Context(t)); err != nil {
		t.Fatal(err)
	}
}

// groupIn returns an id with which the server's refusal in JSON is a well-formed message of
// protobuf: its first brace begins a group, which the id ends. The rest of it is one more field.
func groupIn() string {
	const head = `{"error":{"code":400,"err_code":10070,"description":"wrong last msg ID: `
	const tail = `"},"stream":"FORGE_INTENTS","seq":0}`
	return strings.Repeat("x", 3+'e'-len(head)) + "|2" + string(rune(len(tail)))
}

// messages returns how many messages a bucket has.
func (r *readable) messages(t *testing.T, b streams.Bucket) (n uint64) {
	t.Helper()
	admin, _ := as(t, r.server, "admin")
	js, err := jetstream.New(admin)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(wait.Context(t), b.Stream())
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().State.Msgs
}

// TestAnswersOverJournals: what the server answers a person or a system of one project,
// stored in the journals of another, stops nothing there, whatever it can be read as.
func TestAnswersOverJournals(t *testing.T) {
	t.Parallel()
	for who, own := range map[string]string{"ada": "forge.intent.shop.by.ada.cancel", "scanner": "forge.intent.shop.from.scanner.submit"} {
		t.Run(who, func(t *testing.T) {
			ctx := wait.Context(t)
			r := newReadable(t)
			nc, _ := as(t, r.server, who)
			for subject, k := range map[string]forge.Key{
				"forge.project.bank": {Project: "bank"}, "forge.journal.bank.fix-login": {Project: "bank", Intent: "fix-login"},
			} {
				records, head, err := r.runner.Journal.Load(ctx, k)
				if err != nil {
					t.Fatal(err)
				}
				refusedWith(t, nc, own, groupIn(), subject)
				wait.Until(t, "the answer is stored", func() bool {
					last, err := r.runner.Journal.Last(ctx, k)
					return err == nil && last.Seq > head.Seq
				})
				after, head, err := r.runner.Journal.Load(ctx, k)
				if err != nil || len(after) != len(records) {
					t.Fatalf("%s: %d records of %d, %v", subject, len(after), len(records), err)
				}
				rec := forge.Record{
					Events:  []forge.Event{{ID: "next", To: k, Message: &forge.Reflect{}}},
					Summary: forge.Summary{Key: k, Title: "t", Status: forge.StatusProposed},
				}
				if _, err := r.runner.Journal.Append(ctx, k, head, rec); err != nil {
					t.Errorf("%s: it does not go on: %v", subject, err)
				}
			}
		})
	}
}

// TestAnswersOverObjects: what the server answers a person of one project,
// stored over a transcript or a change of another, hides neither.
func TestAnswersOverObjects(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	r := newReadable(t)
	of := forge.Key{Project: "bank", Intent: "fix-login"}
	for name, bucket := range map[objects.Name]streams.Bucket{
		objects.TranscriptName(of, try("fix-login-001", 7)):                                                   streams.BucketTranscripts,
		{Project: "bank", Intent: "fix-login", Task: "fix-login-001", Kind: objects.Patch, ID: "implement-7"}: streams.BucketObjects,
	} {
		if err := r.worker.Objects.Put(ctx, name, strings.NewReader("what was done")); err != nil {
			t.Fatal(err)
		}
		path := "bank/fix-login/fix-login-001/" + string(name.Kind) + "/implement-7"
		before, err := r.runner.Objects.List(ctx, objects.Name{Project: "bank", Kind: name.Kind})
		if err != nil {
			t.Fatal(err)
		}
		stored := r.messages(t, bucket)
		for _, id := range []string{"plain", `","name":"` + path} {
			refusedWith(t, r.raw, "forge.intent.shop.by.ada.cancel", id, bucket.Meta(path))
		}
		wait.Until(t, "the answers are stored", func() bool { return r.messages(t, bucket) >= stored+2 })
		for about, reader := range map[string]*objects.Store{"a runner": r.runner.Objects, "a worker": r.worker.Objects} {
			if o, err := reader.Read(ctx, name); err != nil || o == nil || string(o.Content) != "what was done" {
				t.Errorf("%s reads of %s %+v, %v", about, name.Kind, o, err)
			}
		}
		after, err := r.runner.Objects.List(ctx, objects.Name{Project: "bank", Kind: name.Kind})
		if err != nil || len(after) != len(before) || after[len(after)-1].Size != before[len(before)-1].Size {
			t.Errorf("listed are %+v, not %+v, %v", after, before, err)
		}
		if err := r.worker.Objects.Put(ctx, name, strings.NewReader("done again")); err != nil {
			t.Error(err)
		}
		if o, err := r.runner.Objects.Read(ctx, name); err != nil || string(o.Content) != "done again" {
			t.Errorf("after it was put again, %s is %+v, %v", name.Kind, o, err)
		}
	}
}
