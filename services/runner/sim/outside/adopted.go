package outside

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// Workers never overwrite a commit that a person pushed, unless a person adopts it.
// Each adoption allows one push: the change that was made of the adopted commit
// replaces it. The adopted commit is always the one that the person named.

// adoptions are those of one task, as its intent and the project decided on them.
type adoptions struct {
	// commits has the commit of each, by its number, and newest is the greatest.
	commits map[int]string
	newest  int
	// over says which one a merge is to take the place of, until its result is
	// known, and replaced which were.
	over     map[forge.Attempt]int
	replaced map[int]bool
}

// adopted returns the adoptions of a task.
func (a *Audit) adopted(t forge.TaskID) *adoptions {
	if a.adoptions[t] == nil {
		a.adoptions[t] = &adoptions{commits: map[int]string{}, over: map[forge.Attempt]int{}, replaced: map[int]bool{}}
	}
	return a.adoptions[t]
}

// Said returns an error if a record of an intent has a commit become a change that
// no person named, or that has the number of another adoption.
func (f *Forge) Said(rec *forge.Record) error {
	if !f.Adopts() {
		return nil
	}
	id := rec.Summary.Key.Intent
	for i := range rec.Events {
		if m := forge.As[*forge.Retry](rec.Events[i].Message); m != nil && m.Adopt != "" {
			f.named[id] = append(f.named[id], m.Adopt)
			f.Words++
		}
	}
	for i := range rec.Effects.Commands {
		c := &rec.Effects.Commands[i]
		in := c.Rebase().Adopted
		if in == nil || in.Author != "" {
			continue
		}
		a, word := f.adopted(c.Attempt.Task), slices.Index(f.named[id], in.Commit)
		switch commit, known := a.commits[in.Number]; {
		case known && commit != in.Commit:
			return fmt.Errorf("%s adopts %s with the number of %s", c.Attempt, in.Commit, commit)
		case known: // the same is tried again
			continue
		case word < 0: // what waited for a budget, say, is adopted by a later record
			return fmt.Errorf("%s adopts %s, and people named %v", c.Attempt, in.Commit, f.named[id])
		case in.Number <= a.newest:
			return fmt.Errorf("%s adopts %s as number %d, after %d", c.Attempt, in.Commit, in.Number, a.newest)
		}
		f.named[id] = slices.Delete(f.named[id], word, word+1)
		a.commits[in.Number], a.newest = in.Commit, in.Number
	}
	return nil
}

// overwrites returns an error if a merge is to take the place of a commit that no
// person adopted, or a second time, or not of the one that they did.
func (a *Audit) overwrites(c *forge.Command) error {
	in := c.Merge()
	if in.Landed != nil || in.Trial || in.Change == nil || in.Change.Facts == nil {
		return nil
	}
	of, took, want := a.adopted(c.Attempt.Task), in.Change.Facts.Adopted, ""
	if took != nil {
		if of.commits[took.Number] != took.Commit {
			return fmt.Errorf("%s is of commit %s, which no person adopted", c.Attempt, took.Commit)
		}
		if !of.replaced[took.Number] {
			want, of.over[c.Attempt] = took.Commit, took.Number
		}
	}
	if in.Over != want {
		return fmt.Errorf("%s may take the place of %q on its branch; want %q", c.Attempt, in.Over, want)
	}
	return nil
}

// took takes that the change of a merge is on its branch.
func (a *Audit) took(at forge.Attempt) {
	of := a.adopted(at.Task)
	number, adopts := of.over[at]
	if !adopts {
		return
	}
	a.Replaced++
	for n, done := range of.replaced {
		if done && of.commits[n] == of.commits[number] && n != number {
			a.Again++
		}
	}
	of.replaced[number] = true
	clear(a.of(at.Task).open) // the change that was made for these remarks is not the one that is there
}
