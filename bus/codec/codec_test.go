package codec_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/codec"
	forgev1 "github.com/pfl-forge/pfl-forge/proto/forge/v1"
)

// roundTrip fills a T at random, and checks that it comes back the same from
// both formats.
func roundTrip[T any](m proto.Message) func(*testing.T, uint64) {
	c := codec.Must[T](m)
	return func(t *testing.T, seed uint64) {
		t.Helper()
		var want T
		fill(rand.New(rand.NewPCG(seed, 1)), reflect.ValueOf(&want).Elem())
		data, err := c.Marshal(&want)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got, err := c.Unmarshal(data)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("seed %d: (-sent +received)\n%s", seed, d)
		}
		again, err := c.Marshal(&got)
		if err != nil || !bytes.Equal(data, again) {
			t.Fatalf("seed %d: the bytes are not deterministic (%v)", seed, err)
		}
		msg := m.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(data, msg); err != nil {
			t.Fatal(err)
		}
		theirs, err := proto.MarshalOptions{Deterministic: true}.Marshal(msg)
		if err != nil || !bytes.Equal(data, theirs) {
			t.Fatalf("seed %d: the generated code writes other bytes (%v):\n got %x\nwant %x", seed, err, data, theirs)
		}
		js, err := protojson.Marshal(msg)
		if err != nil {
			t.Fatal(err)
		}
		if got, err = c.ParseJSON(js); err != nil || !cmp.Equal(want, got) {
			t.Fatalf("seed %d: from JSON (%v):\n%s", seed, err, cmp.Diff(want, got))
		}
	}
}

var roundTrips = []struct {
	name string
	run  func(*testing.T, uint64)
}{
	{"Event", roundTrip[forge.Event](&forgev1.Event{})},
	{"Command", roundTrip[forge.Command](&forgev1.Command{})},
	{"Result", roundTrip[forge.Result](&forgev1.Result{})},
	{"Record", roundTrip[forge.Record](&forgev1.Record{})},
	{"Summary", roundTrip[forge.Summary](&forgev1.Summary{})},
	{"Ruling", roundTrip[forge.Ruling](&forgev1.Ruling{})},
	{"Progress", roundTrip[forge.Progress](&forgev1.Progress{})},
}

func TestRoundTrip(t *testing.T) {
	for _, rt := range roundTrips {
		t.Run(rt.name, func(t *testing.T) {
			for seed := range uint64(100) {
				rt.run(t, seed)
			}
		})
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		for _, rt := range roundTrips {
			rt.run(t, seed)
		}
	})
}

// FuzzUnmarshal checks that bytes of anybody give a value or one of the two
// errors, and that a value can be sent again.
func FuzzUnmarshal(f *testing.F) {
	c := codec.Must[forge.Record](&forgev1.Record{})
	rec := record()
	data, err := c.Marshal(&rec)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte(`{"summary":{"key":{"project":"p"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, read := range []func([]byte) (forge.Record, error){c.Unmarshal, c.ParseJSON} {
			rec, err := read(data)
			var garbage *codec.GarbageError
			var unknown *codec.UnknownError
			switch {
			case err == nil:
				sent, err := c.Marshal(&rec)
				if err != nil {
					t.Fatalf("cannot send what was received: %v", err)
				}
				if err := proto.Unmarshal(sent, &forgev1.Record{}); err != nil {
					t.Fatalf("the generated code cannot read it: %v", err)
				}
				if again, err := c.Unmarshal(sent); err != nil || !cmp.Equal(rec, again, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()) {
					t.Fatalf("it changed on the way (%v):\n%s", err, cmp.Diff(rec, again))
				}
			case !errors.As(err, &garbage) && !errors.As(err, &unknown):
				t.Fatalf("an error of no known type: %v", err)
			}
		}
	})
}

func TestGoldenEvent(t *testing.T) {
	c := codec.Must[forge.Event](&forgev1.Event{})
	ev := forge.Event{
		ID: "e1", To: forge.Key{Project: "shop", Intent: "fix-login"},
		At:    time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		Actor: "ada",
		Message: &forge.Answer{
			Index: 1, Question: "Which?", Answer: "both",
		},
	}
	data, err := c.Marshal(&ev)
	if err != nil {
		t.Fatal(err)
	}
	const want = "0a0265311211" + // id, to
		"0a0473686f70" + "12096669782d6c6f67696e" +
		"1a0808a5ebdcca061006" + // at
		"2203616461" + // actor
		"4a10" + "0801" + "1206" + "57686963683f" + "1a04626f7468" // answer
	if got := fmt.Sprintf("%x", data); got != want {
		t.Errorf("the wire format has changed:\n got %s\nwant %s", got, want)
	}
}

func TestLooksLikeJSON(t *testing.T) {
	c := codec.Must[forge.Record](&forgev1.Record{})
	rec := record()
	binary, err := c.Marshal(&rec)
	if err != nil {
		t.Fatal(err)
	}
	for data, want := range map[string]bool{"{}": true, "\n{": true, "": false, "[]": false, string(binary): false} {
		if got := codec.LooksLikeJSON([]byte(data)); got != want {
			t.Errorf("%.20q looks like JSON: %v", data, got)
		}
	}
}

func record() forge.Record {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	key := forge.Key{Project: "shop", Intent: "fix-login"}
	at := forge.Attempt{Task: "fix-login-001", Step: forge.StepImplement, Number: 1, Claim: 1}
	intent := forge.Intent{
		ID: key.Intent, Project: key.Project, Settings: forge.Settings{
			Title: "Fix the login",
			Body:  "It fails when the name has a space.",
			Type:  "fix",
			Risk:  forge.RiskLow,
		}, Source: forge.SourceHuman, Status: forge.StatusExecuting, CreatedAt: now,
	}
	return forge.Record{
		Events: []forge.Event{{ID: "e1", To: key, At: now, Message: &forge.Result{
			To: key, Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: 1}, StartedAt: now,
			Duration: time.Second, Agent: "claude", Usage: forge.Usage{InputTokens: 1200, Calls: 1},
			Output: &forge.Analysis{Tasks: []forge.TaskPlan{{Name: "fix", Title: "Fix it", RelevantFiles: []string{"login.go"}}}},
		}}},
		Effects: forge.Effects{Commands: []forge.Command{{
			To: key, Attempt: at, Intent: intent,
			Task:  forge.Task{ID: at.Task, IntentID: key.Intent, Title: "Fix it", RelevantFiles: []string{"login.go"}, Status: forge.TaskImplementing},
			Input: &forge.ImplementInput{},
		}}},
		Summary: forge.Summary{
			Key: key, Title: intent.Title, Status: forge.StatusExecuting, RunSummary: forge.RunSummary{
				Run:   1,
				Tasks: []forge.TaskSummary{{ID: at.Task, Title: "Fix it", Status: forge.TaskImplementing, Step: at.Step, Attempt: 1}},
				Open:  []forge.Attempt{at},
			}, CreatedAt: now, UpdatedAt: now,
		},
	}
}

func BenchmarkRecord(b *testing.B) {
	c := codec.Must[forge.Record](&forgev1.Record{})
	rec := record()
	for b.Loop() {
		data, err := c.Marshal(&rec)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.Unmarshal(data); err != nil {
			b.Fatal(err)
		}
	}
}
