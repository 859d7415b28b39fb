package sim

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/versions"
)

// choose plays many worlds by the newest rules, and returns the journals of
// those in which most happens for their size.
func choose(t *testing.T, worldsOf uint64, seedOf func(n uint64) uint64) []byte {
	t.Helper()
	type played struct {
		data []byte
		seen map[string]bool
	}
	var worlds []*played
	for n := range worldsOf {
		w := playBy(t, seedOf(n), rules.Newest)
		p := &played{data: pack(t, w), seen: map[string]bool{}}
		for _, key := range w.keys {
			happens(p.seen, w.journal[key])
		}
		worlds = append(worlds, p)
	}
	var all []byte
	seen := map[string]bool{}
	gain := func(p *played) float64 {
		n := 0
		for s := range p.seen {
			if !seen[s] {
				n++
			}
		}
		return float64(n) / float64(len(p.data)+2000)
	}
	for len(all) < maxJournals {
		best := slices.MaxFunc(worlds, func(a, b *played) int { return cmp.Compare(gain(a), gain(b)) })
		if gain(best) == 0 {
			break
		}
		for s := range best.seen {
			seen[s] = true
		}
		all = append(all, best.data...)
	}
	t.Logf("%d kinds of moments", len(seen))
	return compress(t, all)
}

// playBy returns a world that was played to its end by a version of the rules alone.
func playBy(t *testing.T, seed uint64, by rules.Version) *world {
	t.Helper()
	w := newWorld(seed)
	w.versions = versions.Only(by)
	for n := range w.runners {
		w.runners[n] = w.newDriver(n)
	}
	w.populate()
	if err := w.play(); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	return w
}

// pack returns the journals of a world as a file has them.
func pack(t *testing.T, w *world) (packed []byte) {
	t.Helper()
	for _, key := range w.keys {
		for i := range w.journal[key] {
			data, err := records.Marshal(&w.journal[key][i])
			if err != nil {
				t.Fatal(err)
			}
			packed = append(binary.AppendUvarint(packed, uint64(len(data))), data...)
		}
	}
	return append(packed, 0)
}

// compress returns worlds as a file has them.
func compress(t *testing.T, worlds []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, err = z.Write(worlds)
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes, %d before compression", buf.Len(), len(worlds))
	return buf.Bytes()
}

// happens notes the kinds of moments of a journal: what came after what, and what that led to.
func happens(seen map[string]bool, journal []forge.Record) {
	before, status := "", ""
	for i := range journal {
		rec := &journal[i]
		this := ""
		for j := range rec.Events {
			this += kind(&rec.Events[j])
		}
		seen[status+" "+before+" > "+this] = true
		for j := range rec.Effects.Commands {
			c := &rec.Effects.Commands[j]
			seen[fmt.Sprintf("%s: %s %T %v", this, c.Attempt.Step, c.Input, c.Replica != "")] = true
		}
		for j := range rec.Effects.Outbox {
			seen[fmt.Sprintf("%s: %s", this, kind(&rec.Effects.Outbox[j]))] = true
		}
		for j := range rec.Effects.Timers {
			seen[fmt.Sprintf("%s: timer %.3s", this, rec.Effects.Timers[j].Key)] = true
		}
		s := &rec.Summary
		before, status = this, fmt.Sprint(s.Status, s.Waiting)
		seen[fmt.Sprintf("%s: %s %d", this, status, len(s.Tasks))] = true
	}
}

// kind names an event by what the rules may distinguish.
func kind(ev *forge.Event) string {
	switch m := ev.Message.(type) {
	case *forge.Result:
		return fmt.Sprintf("%s %T %.12s;", m.Attempt.Step, m.Output, outcome(m.Output))
	case *forge.TimerFired:
		return fmt.Sprintf("timer %.3s;", m.Key)
	case *forge.MergeEnded:
		if m.Result != nil {
			return fmt.Sprintf("merged %s;", m.Result.Outcome)
		}
	case *forge.Submit:
		return fmt.Sprintf("submit %v;", m.Comments != nil)
	case *forge.ObstacleReported:
		return fmt.Sprintf("refused %.5s %s %v;", m.Agent, m.Failure.Reason, m.Passed != "")
	default:
	}
	return fmt.Sprintf("%T;", ev.Message)
}

// outcome names a report by what the rules may distinguish.
func outcome(out forge.Output) string {
	switch m := out.(type) {
	case *forge.Failure:
		return string(m.Reason)
	case *forge.Review:
		return fmt.Sprint(m.Verdict, m.Second)
	case *forge.Rebase:
		return fmt.Sprint(len(m.Conflicts) > 0, m.Verify != nil && m.Verify.Passed)
	case *forge.MergeResult:
		return string(m.Outcome)
	default:
		return ""
	}
}
