package sim

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/codec"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	forgev1 "github.com/pfl-forge/pfl-forge/proto/forge/v1"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/facts"
)

var rewrite = flag.Bool("rewrite", false, "write the journals of the newest version of the rules, if there are none yet")

// Of each version there are journals of some worlds, chosen so that little is
// missing of what happens in thousands of them.
const (
	chosenFrom = 6000
	// maxJournals bounds the journals of a version, before compression.
	maxJournals = 1_300_000
)

var records = codec.Must[forge.Record](&forgev1.Record{})

// journalsOf returns the file with the journals that a version has decided.
func journalsOf(v rules.Version) string {
	return filepath.Join("testdata", "journals", fmt.Sprintf("v%d.gz", v))
}

// TestJournals folds what every version of the rules has ever decided: each record, by
// the rules of its version, has the effects and leads to the state that it had then.
//
// If it fails, a change of the rules decides otherwise in a state that may be in a
// journal, and a runner would go on from another state than the one that was decided in.
// The change needs a version (internal/rules): where it differs, the rules ask for it.
//
//	go test ./services/runner/sim -run TestJournals -rewrite
//
// writes the journals of a version that is new. Those of others are never written again.
func TestJournals(t *testing.T) {
	for v := rules.First; v <= rules.Newest; v++ {
		path := journalsOf(v)
		data, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) && v == rules.Newest && *rewrite {
			data = choose(t, chosenFrom, func(n uint64) uint64 { return n })
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644))
		}
		if err != nil {
			t.Fatalf("version %d has no journals, against which later rules are tested: %v", v, err)
		}
		refoldAll(t, v, data)
	}
}

// refoldAll folds the journals of a file, all of one version.
func refoldAll(t *testing.T, v rules.Version, data []byte) {
	t.Helper()
	worlds, n, failed := 0, 0, 0
	for journal := range readJournals(t, data) {
		worlds++
		n += len(journal)
		if err := refold(v, journal); err != nil {
			if failed++; failed <= 3 {
				t.Errorf("version %d, world %d: %v", v, worlds, err)
			}
		}
	}
	if failed > 0 {
		t.Errorf("version %d: %d of %d worlds are folded to another state than they were decided in", v, failed, worlds)
	}
	if n < 1000 {
		t.Errorf("version %d has journals of %d records; want 1,000", v, n)
	}
}

// TestJournalsOfPullRequests is TestJournals for what came to version 2 later, by fields
// that no record had before: changes that are merged by pull requests. Programs of
// version 2 from before leave such journals alone, since they cannot read these fields.
func TestJournalsOfPullRequests(t *testing.T) {
	path := filepath.Join("testdata", "journals", "v2-pulls.gz")
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && *rewrite {
		data = choose(t, 300, func(n uint64) uint64 { return 16*n + 3 })
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	refoldAll(t, 2, data)
}

// TestVersionsDiffer has, of each version and the next one, worlds that were decided by one of
// them and that the other would have decided otherwise, or not at all: so the rules still ask
// for the version where they differ. What TestJournals has is chosen for what happens often.
func TestVersionsDiffer(t *testing.T) {
	for v := rules.First; v < rules.Newest; v++ {
		shown := 0
		for _, pair := range [][2]rules.Version{{v, v + 1}, {v + 1, v}} {
			shown += checkDifferences(t, pair[0], pair[1])
		}
		if shown == 0 {
			t.Errorf("nothing shows what version %d changed", v+1)
		}
	}
}

// checkDifferences checks the kept worlds that were decided by one version, and
// not as another one would have, and returns how many there are.
func checkDifferences(t *testing.T, by, not rules.Version) (worlds int) {
	t.Helper()
	path := filepath.Join("testdata", "journals", fmt.Sprintf("v%d-not-v%d.gz", by, not))
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && max(by, not) == rules.Newest && *rewrite {
		if data = differing(t, by, not); len(data) == 0 {
			return 0
		}
		err = os.WriteFile(path, data, 0o644)
	}
	if errors.Is(err, os.ErrNotExist) {
		return 0 // the other way round there may be some
	}
	if err != nil {
		t.Fatal(err)
	}
	for journal := range readJournals(t, data) {
		worlds++
		if err := refold(by, journal); err != nil {
			t.Errorf("version %d, world %d: %v", by, worlds, err)
		}
		for i := range journal {
			not.Stamp(&journal[i])
		}
		if refold(not, journal) == nil {
			t.Errorf("version %d decides in world %d as version %d does", not, worlds, by)
		}
	}
	return worlds
}

// numbers are the parts of a description of an event that differ from world to world.
var numbers = regexp.MustCompile(`[a-z0-9.-]*[0-9][a-z0-9.-]*`)

// differing plays many worlds by a version of the rules, and returns those that
// another one would have decided otherwise, the smallest three for each kind of
// event in which it shows first; nil if there are none.
func differing(t *testing.T, by, not rules.Version) []byte {
	t.Helper()
	const worlds, each = 20_000, 3
	var mu sync.Mutex
	var wg sync.WaitGroup
	found := map[string][][]byte{}
	next := make(chan uint64)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := range next {
				w := playBy(t, seed, by)
				var journal []forge.Record
				for _, key := range w.keys {
					journal = append(journal, slices.Clone(w.journal[key])...)
				}
				for i := range journal {
					not.Stamp(&journal[i])
				}
				if err := refold(not, journal); err != nil {
					what, _, _ := strings.Cut(err.Error(), ":\n")
					_, what, _ = strings.Cut(what, ", ")
					what, _, _ = strings.Cut(numbers.ReplaceAllString(what, "#"), ":")
					mu.Lock()
					found[what] = append(found[what], pack(t, w))
					mu.Unlock()
				}
			}
		})
	}
	for seed := range uint64(worlds) {
		next <- seed
	}
	close(next)
	wg.Wait()
	var all []byte
	for _, what := range slices.Sorted(maps.Keys(found)) {
		list := found[what]
		t.Logf("%d worlds: %s", len(list), what)
		slices.SortFunc(list, func(a, b []byte) int { return cmp.Compare(len(a), len(b)) })
		for _, world := range list[:min(each, len(list))] {
			all = append(all, world...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return compress(t, all)
}

// refold decides on all events of a world once more, each by the rules of its
// record, and returns the first difference.
func refold(v rules.Version, journal []forge.Record) error {
	machines := map[forge.Key]machine.Machine{}
	for i := range journal {
		rec := &journal[i]
		key := rec.Summary.Key
		m := machines[key]
		if m == nil {
			m = machine.New(key)
			machines[key] = m
		}
		if by := rules.Of(rec); by != v {
			return fmt.Errorf("%s has a record of version %d", key, by)
		}
		var eff forge.Effects
		for _, ev := range rec.Events {
			e, ruling := m.Step(v, ev)
			if ruling.Decision != forge.Applied {
				return fmt.Errorf("%s, %s is %s: %s", key, facts.Describe(ev), ruling.Decision, ruling.Reason)
			}
			machine.Merge(&eff, e)
		}
		for _, diff := range []string{
			gocmp.Diff(rec.Effects, eff, cmpopts.EquateEmpty()), gocmp.Diff(rec.Summary, m.Summary(), cmpopts.EquateEmpty()),
		} {
			if diff != "" {
				return fmt.Errorf("%s, %s (-decided then +now):\n%s", key, facts.Describe(rec.Events[0]), diff)
			}
		}
	}
	return nil
}

// readJournals yields the journals of each world, machine by machine.
func readJournals(t *testing.T, data []byte) func(func([]forge.Record) bool) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(z)
	return func(yield func([]forge.Record) bool) {
		var journal []forge.Record
		for {
			size, err := binary.ReadUvarint(in)
			if errors.Is(err, io.EOF) {
				return
			}
			message := make([]byte, size)
			if _, readErr := io.ReadFull(in, message); err != nil || readErr != nil {
				t.Fatal(err, readErr)
			}
			if size == 0 { // ends a world
				if !yield(journal) {
					return
				}
				journal = nil
				continue
			}
			rec, err := records.Unmarshal(message)
			if err != nil {
				t.Fatal(err)
			}
			journal = append(journal, rec)
		}
	}
}
