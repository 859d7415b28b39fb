package outside

import (
	"math/rand/v2"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// In some worlds people do not only push to our branches, but want what is there:
// they say that a commit becomes the change. They name the one that is there, one
// that was there before, or one that never was; say it twice; and put a branch
// back to whatever it was at, also to a commit whose place was taken.

// adopters are the people of such a world. They take nothing from the chances of
// the others.
type adopters struct {
	rng *rand.Rand
	// was has the commits that each branch was at, by its name.
	was map[string][]string
	// tried counts the deeds about a head while nothing went wrong, and back has
	// the branches that were put back then.
	tried map[string]int
	back  map[string]bool
	// says are the words of people on their way.
	says []forge.Event
}

// newAdopters returns the people of a world; nil in most.
func newAdopters(seed uint64) *adopters {
	if !slices.Contains([]uint64{83, 99, 115}, seed%128) { // the last has a merge queue
		return nil
	}
	return &adopters{rng: rand.New(rand.NewPCG(seed, 134)), was: map[string][]string{}, tried: map[string]int{}, back: map[string]bool{}}
}

// Adopts reports whether commits of people can become changes in the world.
func (f *Forge) Adopts() bool { return f != nil && f.adopters != nil }

// Digits returns how many digits commits have: as many as a person has to give where
// they name them.
func (f *Forge) Digits() int {
	if f.Adopts() {
		return 11 // and a letter before them
	}
	return 0
}

// Head returns the commit that a branch is at; empty if there is no such branch.
func (f *Forge) Head(name string) string {
	if b := f.branches[name]; b != nil {
		return b.head
	}
	return ""
}

// at notes that a branch is at a commit.
func (a *adopters) at(name, head string) {
	if a != nil && !slices.Contains(a.was[name], head) {
		a.was[name] = append(a.was[name], head)
	}
}

// Meddle lets a person push to a branch of ours, put it back to what it was at, or
// adopt a commit, now and then. amend makes a commit of theirs on top of one.
func (f *Forge) Meddle(amend func(head string) string) {
	a := f.adopters
	if a == nil || a.rng.IntN(3) > 0 {
		return
	}
	p := f.pulls[a.rng.IntN(len(f.pulls))]
	b := f.branches[p.Branch]
	before := a.was[p.Branch][a.rng.IntN(len(a.was[p.Branch]))]
	switch n := a.rng.IntN(8); {
	case n == 0 && p.State != forge.PullMerged:
		b.head = amend(b.head)
		a.at(p.Branch, b.head)
		f.Stopped++
	case n == 1 && p.State != forge.PullMerged:
		f.putBack(p, before)
	case n < 6:
		a.say(p, b.head)
	case n == 6:
		a.say(p, before)
	default:
		a.say(p, "never-was-there")
	}
}

// putBack has a person put a branch back to a commit, and close its pull request:
// a look at the commit alone may be a late one.
func (f *Forge) putBack(p *pull, commit string) {
	f.branches[p.Branch].head = commit
	p.State, p.By = forge.PullClosed, "ada"
	f.Stopped++
}

// say has a person adopt a commit, and now and then another one as well.
func (a *adopters) say(p *pull, commit string) {
	for range 1 + a.rng.IntN(3)/2 {
		a.says = append(a.says, forge.Event{To: p.to, Message: &forge.Retry{Adopt: commit}})
	}
}

// stubborn has a person go on with what they want while nothing else goes wrong,
// and returns false if there is nothing left that they do: they adopt what a branch
// is at, or have it looked at and adopt it then, and put some branches back to what
// they were at once more.
func (f *Forge) stubborn(p *pull) bool {
	a, b := f.adopters, f.branches[p.Branch]
	if a == nil || p.State == forge.PullMerged {
		return false
	}
	if b.head == b.ours {
		if a.back[p.Branch] || len(a.was[p.Branch]) < 3 {
			return false
		}
		a.back[p.Branch] = true
		f.putBack(p, a.was[p.Branch][a.rng.IntN(len(a.was[p.Branch]))])
		return true
	}
	tried := b.head + " instead of " + b.ours
	a.tried[tried]++
	switch a.tried[tried] {
	case 1, 3:
		a.say(p, b.head)
	case 2:
		a.say(p, "") // a look finds the branch there
	default:
		return false
	}
	return true
}

// Says returns the words of people since it was asked last.
func (f *Forge) Says() (list []forge.Event) {
	if f.Adopts() {
		list, f.adopters.says = f.adopters.says, nil
	}
	return list
}
