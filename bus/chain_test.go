package bus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// stored is a message as an attacker who may write to the stream reads and writes it.
type stored struct {
	subject string
	data    []byte
}

// attacker may do anything to the streams of journals.
type attacker struct {
	t      *testing.T
	server *bustest.Server
	js     jetstream.JetStream
}

// stream returns the stream of a subject.
func (a *attacker) stream(subject string) jetstream.Stream {
	a.t.Helper()
	name := "FORGE_JOURNAL"
	if strings.HasPrefix(subject, "forge.project.") {
		name = "FORGE_PROJECTS"
	}
	s, err := a.js.Stream(a.t.Context(), name)
	if err != nil {
		a.t.Fatal(err)
	}
	return s
}

// read returns the messages of a journal.
func (a *attacker) read(subject string) []stored {
	a.t.Helper()
	var list []stored
	for seq := uint64(1); ; {
		m, err := a.stream(subject).GetMsg(a.t.Context(), seq, jetstream.WithGetMsgSubject(subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return list
		}
		if err != nil {
			a.t.Fatal(err)
		}
		list = append(list, stored{subject, m.Data})
		seq = m.Sequence + 1
	}
}

// rewrite puts other messages in the place of a journal.
func (a *attacker) rewrite(subject string, list []stored) {
	a.t.Helper()
	if err := a.stream(subject).Purge(a.t.Context(), jetstream.WithPurgeSubject(subject)); err != nil {
		a.t.Fatal(err)
	}
	for _, m := range list {
		if _, err := a.js.PublishMsg(a.t.Context(), &nats.Msg{Subject: subject, Data: m.data}); err != nil {
			a.t.Fatal(err)
		}
	}
}

// chained fills the journals of two intents and of their project, which name one another, and
// returns the attacker.
func chained(t *testing.T, s *bustest.Server, b *bus.Bus) *attacker {
	t.Helper()
	heads := map[forge.Key]chain.Head{}
	add := func(k forge.Key, n int, from forge.Key) {
		rec := record(k, n)
		rec.Events[0].ID = fmt.Sprintf("%s-%d", k, n)
		if from != (forge.Key{}) {
			head := heads[from]
			ref, err := chain.NewRef(from, &head)
			if err != nil {
				t.Fatal(err)
			}
			rec.Events[0].Anchor = ref.String()
		}
		head, err := b.Journal.Append(t.Context(), k, heads[k], rec)
		if err != nil {
			t.Fatal(err)
		}
		heads[k] = head
	}
	project, none := key.ProjectKey(), forge.Key{}
	for n := range 3 {
		add(key, n, none)
		add(other, n, none)
		add(project, 2*n, key)
		add(project, 2*n+1, other)
		add(key, 10+n, project)
	}
	return &attacker{t, s, jetStream(t, raw(t, s))}
}

// other is a second intent of the project.
var other = forge.Key{Project: key.Project, Intent: "other"}

const (
	keyJournal     = "forge.journal.shop.fix-login"
	otherJournal   = "forge.journal.shop.other"
	projectJournal = "forge.project.shop"
)

// audit reads all journals.
func audit(t *testing.T, b *bus.Bus, scope forge.Key, before *chain.Checkpoint) *chain.Audit {
	t.Helper()
	a := chain.NewAudit(func(string) bool { return true })
	if before != nil {
		a.Compare(before)
	}
	err := b.Journal.Each(wait.Context(t), scope, func(e *journal.Entry) error {
		a.Add(&e.Link)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestManipulatedJournals: whatever somebody does who may write to the streams is found, at
// the place where it was done. What breaks the chain of a machine keeps it from going on.
func TestManipulatedJournals(t *testing.T) {
	t.Parallel()
	drop := func(list []stored, i int) []stored { return append(list[:i:i], list[i+1:]...) }
	for name, test := range map[string]struct {
		do func(*attacker)
		// broken is the journal that cannot go on; empty if its own chain holds.
		broken string
		// want is a part of each finding, with its journal before it.
		want []string
	}{
		"nothing": {do: func(*attacker) {}},
		"one altered": {
			do: func(a *attacker) {
				list := a.read(keyJournal)
				list[2].data = []byte(strings.Replace(string(list[2].data), "after 1", "after 9", 1))
				a.rewrite(keyJournal, list)
			},
			broken: keyJournal,
			want:   []string{keyJournal + ": it was not written behind message", keyJournal + ": with another content"},
		},
		"the last one altered": {
			do: func(a *attacker) {
				list := a.read(keyJournal)
				a.rewrite(keyJournal, append(list[:5:5], stored{keyJournal, []byte(strings.Replace(string(list[5].data), "after 12", "after 13", 1))}))
			},
			// No other message knows it yet: TestCheckpoint.
		},
		"one dropped": {
			do:     func(a *attacker) { a.rewrite(keyJournal, drop(a.read(keyJournal), 3)) },
			broken: keyJournal,
			want:   []string{keyJournal + ": it was not written behind message"},
		},
		"the first dropped": {
			do:     func(a *attacker) { a.rewrite(keyJournal, drop(a.read(keyJournal), 0)) },
			broken: keyJournal,
			want:   []string{keyJournal + ": the journal does not begin with it", keyJournal + ": with another content"},
		},
		"the end dropped": {
			do: func(a *attacker) {
				js := a.stream(keyJournal)
				for range 2 {
					last, err := js.GetLastMsgForSubject(a.t.Context(), keyJournal)
					if err == nil {
						err = js.DeleteMsg(a.t.Context(), last.Sequence)
					}
					if err != nil {
						a.t.Fatal(err)
					}
				}
			},
			want: []string{keyJournal + ": its end was removed"},
		},
		"two exchanged": {
			do: func(a *attacker) {
				list := a.read(keyJournal)
				list[1], list[2] = list[2], list[1]
				a.rewrite(keyJournal, list)
			},
			broken: keyJournal,
			want:   []string{keyJournal + ": not written behind", keyJournal + ": not written behind", keyJournal + ": not written behind"},
		},
		"one repeated": {
			do:     func(a *attacker) { a.rewrite(keyJournal, append(a.read(keyJournal), a.read(keyJournal)[5])) },
			broken: keyJournal,
			want:   []string{keyJournal + ": not written behind"},
		},
		"one added without a hash": {
			do: func(a *attacker) {
				list := a.read(keyJournal)
				a.rewrite(keyJournal, append(list, stored{keyJournal, unchained(a.t)}))
			},
			broken: keyJournal,
			want:   []string{keyJournal + ": it carries no hash"},
		},
		"the first one repeated at the end": {
			do:     func(a *attacker) { a.rewrite(keyJournal, append(a.read(keyJournal), a.read(keyJournal)[0])) },
			broken: keyJournal,
			want:   []string{keyJournal + ": it was written as the first of its journal"},
		},
		"one of another machine": {
			do:     func(a *attacker) { a.rewrite(keyJournal, append(a.read(keyJournal), a.read(otherJournal)[2])) },
			broken: keyJournal,
			want:   []string{keyJournal + ": not written behind"},
		},
		"all of another machine": {
			do:     func(a *attacker) { a.rewrite(keyJournal, a.read(otherJournal)) },
			broken: keyJournal,
			want: []string{
				keyJournal + ": the journal does not begin with it", keyJournal + ": not written behind", keyJournal + ": not written behind",
				keyJournal + ": with another content",
			},
		},
		"one of another project's machine as a journal": {
			do: func(a *attacker) {
				a.rewrite("forge.journal.bank.fix-login", a.read(keyJournal)[:1])
			},
			want: []string{"forge.journal.bank.fix-login: the journal does not begin with it"},
		},
		"a whole intent removed": {
			do:   func(a *attacker) { a.rewrite(keyJournal, nil) },
			want: []string{keyJournal + ": the whole journal is gone"},
		},
		"a whole project's machine removed": {
			do:   func(a *attacker) { a.rewrite(projectJournal, nil) },
			want: []string{projectJournal + ": the whole journal is gone"},
		},
		"written anew with right hashes": {
			do: func(a *attacker) {
				b := a.server.Connect(a.t)
				if err := a.stream(keyJournal).Purge(a.t.Context(), jetstream.WithPurgeSubject(keyJournal)); err != nil {
					a.t.Fatal(err)
				}
				fill(a.t, b, 6, func(int) forge.Key { return key })
			},
			want: []string{keyJournal + ": with another content"},
		},
		"garbage": {
			do: func(a *attacker) {
				a.rewrite(keyJournal, append(a.read(keyJournal), stored{keyJournal, []byte("\xff\xff")}))
			},
			want: []string{keyJournal + ": it is no record"},
		},
		"garbage in the middle": {
			do: func(a *attacker) {
				list := a.read(keyJournal)
				a.rewrite(keyJournal, append(append(list[:3:3], stored{keyJournal, []byte("\xff\xff")}), list[3:]...))
			},
			broken: keyJournal,
			want:   []string{keyJournal + ": it is no record", keyJournal + ": not written behind"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := bustest.StartServer(t)
			b := s.Connect(t)
			a := chained(t, s, b)
			test.do(a)
			var got []string
			for _, f := range audit(t, b, forge.Key{}, nil).Findings() {
				got = append(got, f.Journal+": "+f.Detail)
			}
			if len(got) != len(test.want) {
				t.Fatalf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			for _, want := range test.want {
				subject, part, _ := strings.Cut(want, ": ")
				if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, subject+": ") && strings.Contains(s, part) }) {
					t.Errorf("found\n%s\nwant %q", strings.Join(got, "\n"), want)
				}
			}
			checkGoesOn(t, b, test.broken)
		})
	}
}

// unchained returns a record as one who knows the format, and not the chain, would write it.
func unchained(t *testing.T) []byte {
	t.Helper()
	rec := record(key, 50)
	data, err := wire.Records.Marshal(&rec)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// checkGoesOn checks that nothing is appended to a journal that is broken, that
// it is told of, and that others go on.
func checkGoesOn(t *testing.T, b *bus.Bus, broken string) {
	t.Helper()
	ctx := wait.Context(t)
	_, head, err := b.Journal.Load(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if (head.Broken != nil) != (broken == keyJournal) {
		t.Fatalf("the break is %v, want one: %v", head.Broken, broken)
	}
	_, err = b.Journal.Append(ctx, key, head, record(key, 100))
	if (err != nil) != (head.Broken != nil) {
		t.Errorf("appending to it: %v", err)
	}
	_, head, err = b.Journal.Load(ctx, other)
	if err == nil {
		_, err = b.Journal.Append(ctx, other, head, record(other, 100))
	}
	if err != nil {
		t.Errorf("another intent does not go on: %v", err)
	}
	if broken == "" {
		return
	}
	dead, err := b.Dead(ctx)
	if err != nil || len(dead) == 0 || !strings.Contains(dead[len(dead)-1].Reason, "chain") || dead[len(dead)-1].Subject != broken {
		t.Errorf("dead letters: %+v, %v", dead, err)
	}
}

// TestCheckpoint: a checkpoint shows what the journals themselves cannot: that
// the end of everything was cut off, and that everything was written anew.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*attacker){
		"the last one altered": func(a *attacker) {
			list := a.read(keyJournal)
			list[5].data = []byte(strings.Replace(string(list[5].data), "after 12", "after 13", 1))
			a.rewrite(keyJournal, list)
		},
		"everything removed": func(a *attacker) {
			for _, subject := range []string{keyJournal, otherJournal, projectJournal} {
				a.rewrite(subject, nil)
			}
		},
		"everything written anew": func(a *attacker) {
			for _, subject := range []string{keyJournal, otherJournal, projectJournal} {
				a.rewrite(subject, nil)
			}
			fill(a.t, a.server.Connect(a.t), 12, func(i int) forge.Key { return []forge.Key{key, other, key.ProjectKey()}[i%3] })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := bustest.StartServer(t)
			b := s.Connect(t)
			a := chained(t, s, b)
			text, err := chain.NewCheckpoint(audit(t, b, forge.Key{}, nil), began).Encode()
			if err != nil {
				t.Fatal(err)
			}
			before, err := chain.ParseCheckpoint(text)
			if err != nil {
				t.Fatal(err)
			}
			if found := audit(t, b, forge.Key{}, before).Findings(); len(found) != 0 {
				t.Fatalf("nothing was done, and it found %+v", found)
			}
			do(a)
			if found := audit(t, b, forge.Key{}, nil).Findings(); len(found) != 0 {
				t.Errorf("the journals alone show it: %+v", found)
			}
			if found := audit(t, b, forge.Key{}, before).Findings(); len(found) == 0 || !found[0].Breaks() {
				t.Error("the checkpoint does not show it")
			}
		})
	}
}

// BenchmarkAudit measures how long it takes to verify a journal of 10,000 records.
func BenchmarkAudit(b *testing.B) {
	bs := bustest.Start(b)
	fill(b, bs, 10_000, func(int) forge.Key { return key })
	for b.Loop() {
		a := chain.NewAudit(func(string) bool { return true })
		err := bs.Journal.Each(context.Background(), forge.Key{}, func(e *journal.Entry) error {
			a.Add(&e.Link)
			return nil
		})
		if _, n := a.Count(); err != nil || n != 10_000 || len(a.Findings()) > 0 {
			b.Fatal(n, err, a.Findings())
		}
	}
}
