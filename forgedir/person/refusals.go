package person

import "github.com/pfl-forge/pfl-forge/forgedir/disk"

// Refusals remembers the versions of files whose events were refused, by their paths.
// They are not asked for again until the file or its intent changes.
type Refusals map[string]refusal

// refusal has the version, the view that it was compared to, and the answer.
type refusal struct {
	content  disk.Digest
	seq      uint64
	problems []Problem
}

// Add remembers the version that an input was read from, and returns its problems.
func (r Refusals) Add(in *Input, p Problem) []Problem {
	r[in.Source.Rel] = refusal{in.Source.Content, in.Source.Seq, []Problem{p}}
	return r[in.Source.Rel].problems
}

// Of returns the problems of exactly the version that an input was read from, compared
// to exactly the same view; nil if that version was not refused.
func (r Refusals) Of(in *Input) []Problem {
	known := r[in.Source.Rel]
	if known.content != in.Source.Content || known.seq != in.Source.Seq {
		return nil
	}
	return known.problems
}

// Forget drops the version of a file that was refused, if there is one.
func (r Refusals) Forget(rel string) { delete(r, rel) }
