package proof

import (
	"fmt"
	"slices"
)

// Report says what shows how a commit came to be, and what is missing.
type Report struct {
	// SignedBy is the principal whose key signed the commit; empty if that is
	// wrong.
	SignedBy string
	// Task is the one that the statements are of.
	Task Task
	// Statements are those that a trusted key made about this very change.
	Statements []Shown
	// Problems say why the commit is not to be believed; none if it is.
	Problems []string
}

// Shown is a statement that counts.
type Shown struct {
	Predicate Predicate
	// By is the principal whose key signed it.
	By string
	// Moved says that it was made of the same patch on another parent.
	Moved bool
}

// find returns the statements of a type.
func find[P Predicate](r *Report) []P {
	var list []P
	for _, s := range r.Statements {
		if p, ok := s.Predicate.(P); ok {
			list = append(list, p)
		}
	}
	return list
}

// OK reports whether nothing is missing.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// problem notes why the commit is not to be believed.
func (r *Report) problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// Check says whether a commit, given as its object, was made as it should: signed
// by an implementer, verified on exactly its parent, reviewed and approved there
// or as the same patch elsewhere, and planned. bundle has the statements; patch
// returns the patch id of the commit, and is asked only when a statement is of
// another parent.
func Check(object []byte, bundle string, by Signers, patch func(Change) (string, error)) Report {
	var r Report
	c, err := ParseCommit(object)
	if err != nil {
		r.problem("%v", err)
		return r
	}
	if len(c.Parents) != 1 {
		r.problem("it has %d parents; a change of pfl-forge has one", len(c.Parents))
		return r
	}
	signer, err := c.Signed(by)
	if err != nil {
		r.problem("the commit %v", err)
	}
	r.SignedBy = signer.Principal
	list, err := Unbundle(bundle)
	if err != nil {
		r.problem("%v", err)
		return r
	}
	if len(list) == 0 {
		r.problem("there are no proofs of it")
		return r
	}
	// Every envelope has to be right, not only those that are needed: one that is not
	// is a sign of tampering, and is reported.
	about := Change{Tree: c.Tree, Parent: c.Parents[0]}
	for i := range list {
		if err := r.take(&list[i], about, &c, by, patch); err != nil {
			r.problem("proof %d: %v", i+1, err)
		}
	}
	r.complete()
	return r
}

// take adds a statement, if a trusted key made it about this change.
func (r *Report) take(s *Sealed, about Change, c *Commit, by Signers, patch func(Change) (string, error)) error {
	of, p, err := s.Statement()
	if err != nil {
		return err
	}
	signer, err := s.Signed(by, p.namespace(), c.At)
	if err != nil {
		return fmt.Errorf("%s: %w", p.kind(), err)
	}
	shown := Shown{Predicate: p, By: signer.Principal}
	if of.Tree != about.Tree || of.Parent != about.Parent {
		if _, is := p.(*Verify); is {
			return fmt.Errorf("%s: it is about tree %s on %s, and this commit is %s on %s",
				p.kind(), clip(of.Tree), clip(of.Parent), about.Tree, about.Parent)
		}
		// The rules merge a reviewed change on a branch that moved, if it is the same
		// patch there. So its review and its plan hold, and just the verify is anew.
		id, err := patch(about)
		if err != nil {
			return fmt.Errorf("%s: %w", p.kind(), err)
		}
		if of.Patch == "" || of.Patch != id {
			return fmt.Errorf("%s: it is about another change: tree %s on %s", p.kind(), clip(of.Tree), clip(of.Parent))
		}
		shown.Moved = true
	}
	r.Statements = append(r.Statements, shown)
	return nil
}

// complete looks whether everything is there, and fits together.
func (r *Report) complete() {
	// Statements of different tasks may be about the same change, made twice. They do
	// not add up: the plan of one says nothing of the approvals of the other.
	for _, s := range r.Statements {
		if r.Task == (Task{}) {
			r.Task = s.Predicate.of()
		}
		if s.Predicate.of() != r.Task {
			r.problem("%s: it is of task %s, others are of %s", s.Predicate.kind(), clip(s.Predicate.of().Task), clip(r.Task.Task))
		}
	}
	if v := find[*Verify](r); count(r, len(v), "that it was verified", NamespaceVerify) {
		if slices.ContainsFunc(v[0].Commands, func(c Command) bool { return c.Exit != 0 }) {
			r.problem("a verify command failed")
		}
	}
	if v := find[*Review](r); count(r, len(v), "that it was reviewed", NamespaceReview) && v[0].Verdict != VerdictApproved {
		r.problem("the review did not approve it: its verdict is %q", clip(v[0].Verdict))
	}
	plans := find[*Plan](r)
	if !count(r, len(plans), "which plan it follows", NamespacePlan) {
		return
	}
	// An approval of the plan has to name exactly this plan. One of changes is bound to
	// them by the patch id that its statement is about.
	for _, what := range plans[0].Needs {
		if !slices.ContainsFunc(find[*Approval](r), func(a *Approval) bool { return a.What == what && (what != OfPlan || a.Hash == plans[0].Plan) }) {
			r.problem("a person had to approve the %s, and there is no proof that one did", clip(what))
		}
	}
}

// count notes that there is not exactly one statement of a kind, and reports
// whether there is.
func count(r *Report, n int, what, namespace string) bool {
	switch n {
	case 1:
		return true
	case 0:
		r.problem("there is no proof %s (a statement by a key for %s)", what, namespace)
	default:
		r.problem("there are %d proofs %s; want one", n, what)
	}
	return false
}

// NeedApproval adds a problem unless a person approved the change, whatever its plan
// asks for.
func (r *Report) NeedApproval() {
	if len(find[*Approval](r)) == 0 {
		r.problem("no person approved it, and here each change needs that")
	}
}
