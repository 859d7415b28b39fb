// Package versions has the runners of a simulated world know different versions
// of the rules: they are upgraded and rolled back at any time, and what they
// take for the version that all of them know may be wrong.
//
// The simulator asks for the version with which each runner decides, and gives
// every record to Check: a runner decides by the active version or by that of
// the record before, and leaves a journal alone that it does not understand.
package versions

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

// errNewer refuses a journal with a record that only newer rules understand.
var errNewer = errors.New("a newer version decided on this")

// Refused reports whether an error is that of a runner which leaves a machine to newer ones.
func Refused(err error) bool { return errors.Is(err, errNewer) }

// Versions says what each runner of a world knows. It has a chance of its own, as the shelf
// of snapshots has. A nil one is of a world in which all runners know the newest rules.
type Versions struct {
	rng     *rand.Rand
	runners map[int]*known
	// only is the one version that all go by, if it is not 0.
	only rules.Version
}

// known is one runner's view.
type known struct {
	// most is the newest version that it knows.
	most rules.Version
	// active is the version that all runners know, as far as it was told.
	active rules.Version
}

// New returns the versions of a world: one in four of every kind has runners
// that know different ones.
func New(seed uint64) *Versions {
	if seed/4%4 != 1 {
		return nil
	}
	return &Versions{rng: rand.New(rand.NewPCG(seed, 86)), runners: map[int]*known{}}
}

// Only returns the versions of a world in which all decisions are taken by one.
func Only(by rules.Version) *Versions {
	return &Versions{rng: rand.New(rand.NewPCG(0, 0)), runners: map[int]*known{}, only: by}
}

// Begin returns the active version as runner n sees it, which begins with any
// program while there are faults, and with the newest one after that.
func (v *Versions) Begin(n int, faults bool) func() rules.Version {
	if v == nil {
		return func() rules.Version { return rules.Newest }
	}
	k := &known{most: rules.Newest, active: max(v.only, rules.First)}
	if faults && v.only == 0 {
		k.most = v.any(rules.Newest)
	}
	v.runners[n] = k
	return func() rules.Version {
		if v.only == 0 && v.rng.IntN(8) == 0 { // runners came or went, or one was not seen
			k.active = v.any(k.most)
		}
		return k.active
	}
}

// any returns a version up to another one.
func (v *Versions) any(most rules.Version) rules.Version {
	return rules.First + rules.Version(v.rng.IntN(int(most)))
}

// Read returns an error if runner n does not understand a journal, as the bus does.
func (v *Versions) Read(n int, records []forge.Record) error {
	for i := range records {
		if v != nil && rules.Of(&records[i]) > v.runners[n].most {
			return errNewer
		}
	}
	return nil
}

// Check returns an error unless runner n decided by the version that it takes for
// the active one, or by that of the record before, which is never gone back behind.
func (v *Versions) Check(n int, before []forge.Record, rec *forge.Record) error {
	if v == nil {
		return nil
	}
	k := v.runners[n]
	want := k.active
	if len(before) > 0 {
		want = max(want, rules.Of(&before[len(before)-1]))
	}
	if got := rules.Of(rec); got != want || got > k.most {
		return fmt.Errorf("runner %d, which knows the rules up to version %d, decided by version %d, and %d was to decide", n, k.most, got, want)
	}
	return nil
}
