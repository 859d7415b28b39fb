package facts

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// trees keeps, from the journal of a project, which trees passed or failed in
// trials, and when. Times are numbers of records.
type trees struct {
	now int
	// begun says when each trial was asked for first.
	begun map[forge.Attempt]int
	// runs are those that have a result, by their trees.
	runs map[string][]run
}

// run is a trial that is over.
type run struct {
	passed       bool
	began, ended int
}

// check returns an error if a merge is told that the base of its change passed
// between two failures of it, and no trial of the base began after a failure of
// that very tree was known and was over before another one began.
func (s *trees) check(rec *forge.Record) error {
	if s.begun == nil {
		s.begun, s.runs = map[forge.Attempt]int{}, map[string][]run{}
	}
	s.now++
	for i := range rec.Events {
		if r := forge.As[*forge.Result](rec.Events[i].Message); r != nil {
			s.learn(r)
		}
	}
	for i := range rec.Effects.Commands {
		c := &rec.Effects.Commands[i]
		in := c.Merge()
		if _, known := s.begun[c.Attempt]; in.Trial && !known {
			s.begun[c.Attempt] = s.now
		}
		if f := in.Tried; f != nil && f.Verify != nil && verdict.PassedBetween(f.Verify.Trials) != "" && !s.passedBetween(f) {
			return fmt.Errorf("%s is told that its base passed between two failures, and it did not", c.Attempt)
		}
	}
	return nil
}

// learn records how a trial ended. Where the commands ran, they did so on the last tree.
func (s *trees) learn(r *forge.Result) {
	in := forge.As[*forge.MergeResult](r.Output)
	began, known := s.begun[r.Attempt]
	if !known || in == nil || in.Candidate == nil || in.Candidate.Verify == nil {
		return
	}
	tree := in.Candidate.Tree
	s.runs[tree] = append(s.runs[tree], run{passed: verdict.Failing(in.Candidate.Verify) == "", began: began, ended: s.now})
}

// passedBetween reports whether the base of a change passed between two failures of it.
func (s *trees) passedBetween(f *forge.Rebase) bool {
	return slices.ContainsFunc(s.runs[f.BaseTree], func(base run) bool {
		before := slices.ContainsFunc(s.runs[f.Tree], func(r run) bool { return !r.passed && r.ended <= base.began })
		after := slices.ContainsFunc(s.runs[f.Tree], func(r run) bool { return !r.passed && r.began >= base.ended })
		return base.passed && before && after
	})
}
