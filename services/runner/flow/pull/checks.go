package pull

import (
	"cmp"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// Failed returns the checks that failed and have to pass, those of the merge queue
// as one.
func (o *Ours) Failed(p *forge.PullPolicy, seen *forge.PullRequest) []forge.PullCheck {
	failing, _ := checks(p, seen)
	if o.out(seen) == QueueChecks {
		failing = append(failing, forge.PullCheck{
			Name: "merge queue", State: forge.PullCheckFailed, Output: cmp.Or(seen.Queue.Output, seen.Queue.Reason),
		})
	}
	return failing
}

// Late returns the names of the checks that have to pass and have not ended, those
// of the policy first, each once; none where no name is known of what is waited for.
func Late(p *forge.PullPolicy, seen *forge.PullRequest) (names []string) {
	for _, name := range p.Checks {
		if !slices.ContainsFunc(seen.Checks, func(c forge.PullCheck) bool { return c.Name == name && hasEnded(&c) }) {
			names = append(names, name)
		}
	}
	for i := range seen.Checks {
		if c := &seen.Checks[i]; len(p.Checks) == 0 && !hasEnded(c) && !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

// AreMissing reports whether checks are waited for of which no name is known:
// the policy names none, and the forge reports none. It does so until its CI
// has begun, and for ever where a repository has none.
func AreMissing(p *forge.PullPolicy, seen *forge.PullRequest) bool {
	return len(p.Checks) == 0 && len(seen.Checks) == 0
}

// hasEnded reports whether a check has. A state of a newer version has not, as
// far as this one knows.
func hasEnded(c *forge.PullCheck) bool {
	return c.State == forge.PullCheckFailed || c.State == forge.PullCheckPassed
}

// checks returns those that failed of the checks that have to pass, and whether
// one of the others has not ended. Without names in the policy these are all
// that the forge shows, and one at least.
func checks(p *forge.PullPolicy, seen *forge.PullRequest) (failing []forge.PullCheck, pending bool) {
	shown := map[string]bool{}
	for _, c := range seen.Checks {
		if len(p.Checks) > 0 && !slices.Contains(p.Checks, c.Name) {
			continue
		}
		shown[c.Name] = true
		switch c.State {
		case forge.PullCheckFailed:
			failing = append(failing, c)
		case forge.PullCheckPassed:
		case forge.PullCheckPending:
			pending = true
		default: // a state of a newer version has not ended, as far as this one knows
			pending = true
		}
	}
	missing := slices.ContainsFunc(p.Checks, func(name string) bool { return !shown[name] })
	return failing, pending || missing || len(p.Checks) == 0 && len(shown) == 0
}
