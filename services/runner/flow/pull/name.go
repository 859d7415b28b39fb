package pull

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// LeastCommit is how many digits of a commit name it when a person speaks of it.
const LeastCommit = 12

// Short returns as many digits of a commit as a person has to give.
func Short(commit string) string { return commit[:min(len(commit), LeastCommit)] }

// Names reports whether what a person gave names a commit.
func Names(given, commit string) bool {
	return len(given) >= LeastCommit && strings.HasPrefix(commit, given)
}

// Nameable reports whether a person can be told to give a commit to a command,
// as a gateway or a worker says that it is at a branch: it is of letters and
// digits, so that no shell and no command reads anything else in it.
func Nameable(commit string) bool {
	return len(commit) >= LeastCommit && commit[0] != '-' && strings.Trim(commit, "0123456789abcdefghijklmnopqrstuvwxyz-") == ""
}

// People returns the names by which the author of an adopted commit may be
// known as a person here: the name and the address of it, and what stands
// before the @ of that, without the number that a forge may put there.
func People(a *forge.Adoption) (names []string) {
	if a == nil {
		return nil
	}
	name, rest, _ := strings.Cut(a.Author, "<")
	address := strings.TrimSuffix(rest, ">")
	local, _, _ := strings.Cut(address, "@")
	if number, after, ok := strings.Cut(local, "+"); ok && strings.Trim(number, "0123456789") == "" {
		local = after
	}
	for _, s := range []string{name, address, local} {
		if s = rule.FirstLine(s); s != "" && !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, s) }) {
			names = append(names, s)
		}
	}
	return names
}

// Barred returns the people whose approval at the forge does not count where the policy
// bars requesters (bars): the people who adopted commit a, its authors by name, and those
// who were barred by the adoption before, on top of which a stands. before may be nil.
func Barred(bars bool, by []string, a, before *forge.Adoption) (names []string) {
	if !bars {
		return nil
	}
	names = slices.Concat(by, People(a))
	if before != nil {
		for _, name := range before.Barred {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Authors returns People of an adoption, and those of the ones before it that
// it bars, without some requesters.
func Authors(a *forge.Adoption, but []forge.Identity) []string {
	if a == nil {
		return nil
	}
	names := People(a)
	for _, name := range a.Barred {
		is := func(n string) bool { return strings.EqualFold(n, name) }
		if !slices.ContainsFunc(names, is) && !slices.ContainsFunc(but, func(p forge.Identity) bool { return is(p.Name) }) {
			names = append(names, name)
		}
	}
	return names
}

// NotOffered returns why a commit that a person names cannot become the change
// of a task of an intent: seen says which branches were seen where.
func NotOffered(intent forge.IntentID, given string, seen []string) error {
	switch {
	case len(given) < LeastCommit:
		return &forge.FieldError{Field: "adopt", Reason: fmt.Sprintf("is no commit: give %d of its digits at least", LeastCommit)}
	case len(seen) == 0:
		return fmt.Errorf("no change of the intent waits because of commits of another one. To have a branch looked at: pfl-forge retry %s", intent)
	}
	return fmt.Errorf("commit %s is none of those that can be adopted: %s. To have it looked at once more: pfl-forge retry %s",
		rule.FirstLine(given), strings.Join(seen, "; "), intent)
}
