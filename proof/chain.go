package proof

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Report says what shows how a commit came to be, and what is missing.
type Report struct {
	// SignedBy is the principal whose key signed the commit; empty if that is wrong.
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

// Check says whether a commit, given as its object, was made as it should: signed by
// an implementer, verified on exactly its parent, reviewed and approved there or as
// the same patch elsewhere, and planned. bundle has the statements; patch returns
// the patch id of the commit, and is asked only when a statement is of another
// parent.
func Check(object []byte, bundle string, by Signers, patch func(Change) (string, error)) Report {
	var r Report
	c, err := ParseCommit(object)
	if err != nil {
		r.problem("%v", err)
		return r
	}
	if len(c.Parents) != 1 {
		if len(c.Parents) == 0 {
			r.problem("it is a first commit, without a parent; pfl-forge merges none")
		} else {
			r.problem("it has %d parents; a change of pfl-forge has one", len(c.Parents))
		}
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
	r.reviews()
	plans := find[*Plan](r)
	if !count(r, len(plans), "which plan it follows", NamespacePlan) {
		return
	}
	r.approvals(plans[0])
}

// reviews looks whether the reviewer, and the second one if there is one,
// approved. Where just the first did, a person's approval of the changes decides.
func (r *Report) reviews() {
	all := find[*Review](r)
	second := slices.DeleteFunc(slices.Clone(all), func(v *Review) bool { return !v.Second })
	first := slices.DeleteFunc(all, func(v *Review) bool { return v.Second })
	one := count(r, len(first), "that it was reviewed", NamespaceReview)
	if one && first[0].Verdict != VerdictApproved {
		r.problem("the review did not approve it: its verdict is %q", clip(first[0].Verdict))
	}
	if plans := find[*Plan](r); len(plans) == 1 && plans[0].Reviews > 1 && len(second) == 0 {
		r.problem("two reviewers had to approve it, and there is no proof that the second one reviewed it")
	}
	if len(second) == 0 || !count(r, len(second), "that the second reviewer reviewed it", NamespaceReview) {
		return
	}
	// The rules ask a person where the reviewers disagree. That approval is of
	// the changes, as one of protected paths is, and is held to the same needs.
	decided := slices.ContainsFunc(find[*Approval](r), func(a *Approval) bool { return a.What == OfChanges })
	if second[0].Verdict != VerdictApproved && !decided {
		r.problem("the second reviewer did not approve it: the verdict is %q, and no person approved the changes", clip(second[0].Verdict))
	}
	// One key signs for all reviewers of a service, so only what they say of
	// themselves tells them apart.
	if one && first[0].Agent == second[0].Agent && first[0].Model == second[0].Model {
		r.problem("both reviews are by %s; the second has to be by another one", clip(strings.TrimSpace(first[0].Agent+" "+first[0].Model)))
	}
}

// approvals looks whether as many different people approved as the plan's rules ask
// for, and only such as may. An approval of the plan has to name exactly this plan.
// One of changes is bound to them by the patch id that its statement is about.
func (r *Report) approvals(p *Plan) {
	asked := func(by string) bool {
		return slices.ContainsFunc(p.Requesters, func(q Requester) bool { return same(q.Name, by) })
	}
	for _, need := range p.Needs {
		// Signatures are the runner's, for all of them: only the names tell people
		// apart.
		var by []string
		for _, a := range find[*Approval](r) {
			switch {
			case a.What != need.What, a.What == OfPlan && a.Hash != p.Plan:
			case need.NotRequester && asked(a.By):
				r.problem("%s approved the %s and asked for it; another person had to", clip(a.By), clip(need.What))
			case !slices.ContainsFunc(by, func(name string) bool { return same(name, a.By) }):
				by = append(by, a.By)
			}
		}
		if n := max(need.Count, 1); len(by) == 0 && n == 1 {
			r.problem("a person had to approve the %s, and there is no proof that one did", clip(need.What))
		} else if len(by) < n {
			r.problem("%d people had to approve the %s, and there are proofs of %d", n, clip(need.What), len(by))
		}
	}
	// Nothing frees a plan of more than low risk: an approval of its parent does not.
	if (p.Risk == string(forge.RiskMed) || p.Risk == string(forge.RiskHigh)) && !slices.ContainsFunc(p.Needs, func(n Need) bool { return n.What == OfPlan }) {
		r.problem("its risk is %s, and its plan says that nobody had to approve it", p.Risk)
	}
}

// same reports whether two names are of one person, however they are spelled, as the
// rules of the flow compare them.
func same(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) }

// Floor is the least that a project's configuration asks of approvals. This package
// reads no configuration; whoever has the repository does.
type Floor struct {
	// Count is how many people have to approve.
	Count int
	// NotRequester says that it is not those who asked.
	NotRequester bool
	// Approvers may approve; empty: everyone may.
	Approvers []string
}

// Needs returns which approvals the plan of the change says that it needs; none
// without a plan.
func (r *Report) Needs() []Need {
	if plans := find[*Plan](r); len(plans) == 1 {
		return plans[0].Needs
	}
	return nil
}

// Hold adds a problem where a need of the plan, or what was given for it, is below
// the floor of the configuration that the need names.
func (r *Report) Hold(n Need, floor Floor) {
	if max(n.Count, 1) < floor.Count {
		r.problem("its plan asks for %d approvals of the %s, and policy.approvals.count at %s is %d", max(n.Count, 1), clip(n.What), clip(n.Policy), floor.Count)
	}
	if floor.NotRequester && !n.NotRequester {
		r.problem("its plan lets those approve the %s who asked for it, and policy.approvals.not_requester at %s does not", clip(n.What), clip(n.Policy))
	}
	for _, a := range find[*Approval](r) {
		if a.What == n.What && len(floor.Approvers) > 0 && !slices.Contains(floor.Approvers, a.By) {
			r.problem("%s approved the %s, and is not among policy.approvers at %s", clip(a.By), clip(n.What), clip(n.Policy))
		}
	}
}

// Reviewed returns the risk of the change and the commit by whose configuration
// its plan was reviewed, or else approved, for those who look up whether it
// takes two reviewers. single reports that one reviewed it whose verdict was an
// opinion: not a judge of criteria, and not a recipe's check.
func (r *Report) Reviewed() (risk, policy string, single bool) {
	reviews, plans := find[*Review](r), find[*Plan](r)
	if len(reviews) != 1 || len(plans) != 1 {
		return "", "", false
	}
	v := reviews[0]
	policy = plans[0].Policy
	for _, n := range plans[0].Needs {
		// Where one review was enough the plan names no commit but that of its approval.
		if policy == "" && n.What == OfPlan {
			policy = n.Policy
		}
	}
	return plans[0].Risk, policy, v.Step == string(forge.StepReview) && v.Agent != "" && v.Agent != "recipe"
}

// Doubt adds a problem that was found where the repository had to be read.
func (r *Report) Doubt(format string, args ...any) { r.problem(format, args...) }

// count notes that there is not exactly one statement of a kind, and reports whether
// there is.
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
