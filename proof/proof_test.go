package proof_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/proof"
)

const (
	tree   = "99e026ae605648b517d841d955334bfde0c6e62b"
	parent = "ef5ab59c0a52c1460a8334e3e4d1eae475452cd0"
	patch  = "b4ac5090d5ad9b22bbe90fba940b0b93c71ada3616ca703bfb165e55263b926e"
	other  = "62fa346eeb9d8b8e213247bbcee47e856678e9bc"
)

var (
	change = proof.Change{Tree: tree, Parent: parent, Patch: patch}
	of     = proof.Task{Project: "shop", Intent: "fix", Task: "fix-001"}
	made   = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
)

// party has a key of each role, and the file that trusts them.
type party struct {
	t       *testing.T
	keys    map[string]*proof.Key
	signers proof.Signers
}

func newParty(t *testing.T, seed string) *party {
	t.Helper()
	p := &party{t: t, keys: map[string]*proof.Key{}}
	for _, role := range proof.Roles() {
		k, err := proof.Derive([]byte(strings.Repeat(seed, 32)), role)
		if err != nil {
			t.Fatal(err)
		}
		p.keys[role], p.signers = k, append(p.signers, k.Signer())
	}
	return p
}

// state returns a statement by the key of a role.
func (p *party) state(role string, about proof.Change, what proof.Predicate) forge.Envelope {
	p.t.Helper()
	e, err := p.keys[role].State(about, what)
	if err != nil {
		p.t.Fatal(err)
	}
	return e
}

func verified() *proof.Verify {
	return &proof.Verify{Of: of, Definition: proof.Definition([]string{"make"}), Commands: proof.Passed([]string{"make"}), Replica: "i1"}
}

func reviewed(verdict string) *proof.Review {
	return &proof.Review{Of: of, Step: "review", Verdict: verdict, Agent: "claude", Replica: "v1"}
}

// second is the verdict of the second reviewer.
func second(verdict string) *proof.Review {
	return &proof.Review{Of: of, Step: "review", Second: true, Verdict: verdict, Agent: "codex", Replica: "v1"}
}

// twice is a plan whose changes two reviewers have to approve.
func twice(needs ...string) *proof.Plan {
	p := planned(needs...)
	p.Reviews, p.Policy = 2, parent
	return p
}

func planned(needs ...string) *proof.Plan {
	p := &proof.Plan{Of: of, Run: 1, Plan: "0123456789ab", Requirement: patch}
	for _, what := range needs {
		p.Needs = append(p.Needs, proof.Need{What: what, Count: 1, Policy: parent})
	}
	return p
}

// shared is a plan that n people have to approve, and not those who asked.
func shared(n int, requesters ...proof.Requester) *proof.Plan {
	p := planned(proof.OfPlan)
	p.Needs[0].Count, p.Needs[0].NotRequester, p.Requesters = n, true, requesters
	return p
}

func approved(what, hash string) *proof.Approval { return approvedBy("ada", what, hash) }

func approvedBy(by, what, hash string) *proof.Approval {
	return &proof.Approval{Of: of, What: what, Hash: hash, By: by, Event: "e1", At: "2026-05-04T03:02:01Z"}
}

// whole are all statements that a change needs.
func (p *party) whole() []forge.Envelope {
	return []forge.Envelope{
		p.state("implementer", change, verified()), p.state("reviewer", change, reviewed(proof.VerdictApproved)), p.state("runner", change, planned()),
	}
}

// object returns a commit object on the parent, with the date made.
func object(tree, parent, message string) []byte {
	by := fmt.Sprintf("pfl-forge <pfl-forge@localhost> %d +0000", made.Unix())
	return fmt.Appendf(nil, "tree %s\nparent %s\nauthor %s\ncommitter %s\n\n%s", tree, parent, by, by, message)
}

// signed returns a commit object with a signature.
func signed(t *testing.T, k *proof.Key, object []byte) []byte {
	t.Helper()
	sig, err := k.SignCommit(object)
	if err != nil {
		t.Fatal(err)
	}
	head, message, _ := strings.Cut(string(object), "\n\n")
	return []byte(head + "\ngpgsig " + strings.ReplaceAll(strings.TrimSuffix(sig, "\n"), "\n", "\n ") + "\n\n" + message)
}

// commit is the commit that whole is about, signed by the implementer.
func (p *party) commit() []byte {
	return signed(p.t, p.keys["implementer"], object(tree, parent, "Fix it\n"))
}

func samePatch(proof.Change) (string, error) { return patch, nil }

// TestChain has a row for each attack: what is changed of a commit with all of
// its proofs, and what is said then.
func TestChain(t *testing.T) {
	p, thief := newParty(t, "a"), newParty(t, "b")
	elsewhere := proof.Change{Tree: other, Parent: parent, Patch: strings.Repeat("0", 64)}
	rebased := proof.Change{Tree: tree, Parent: other, Patch: patch}
	verify, review, plan := p.whole()[0], p.whole()[1], p.whole()[2]
	revoked := slices.DeleteFunc(slices.Clone(p.signers), func(s proof.Signer) bool { return s.Principal == "reviewer" })
	replaced := slices.Clone(p.signers)
	replaced[0].Until = made.Add(-time.Second)
	still := slices.Clone(p.signers)
	still[0].Until = made.Add(time.Second)
	moreParents := strings.Replace(string(object(tree, parent, "x")), "author ", "parent "+other+"\nauthor ", 1)
	for name, c := range map[string]struct {
		object  []byte           // p.commit
		bundle  []forge.Envelope // p.whole
		text    string           // the bundle
		signers proof.Signers    // p.signers
		want    []string         // nothing
	}{
		"whole":                     {},
		"replaced key, before that": {signers: still},
		"reviewed on another parent, same patch": {bundle: []forge.Envelope{
			verify, p.state("reviewer", rebased, reviewed(proof.VerdictApproved)), p.state("runner", rebased, planned()),
		}},
		"approved as needed": {bundle: []forge.Envelope{
			verify, review, p.state("runner", change, planned(proof.OfPlan, proof.OfChanges)),
			p.state("runner", change, approved(proof.OfPlan, "0123456789ab")), p.state("runner", change, approved(proof.OfChanges, "ba9876543210")),
		}},

		"two of two": {bundle: []forge.Envelope{
			verify, review, p.state("runner", change, shared(2, proof.Requester{Name: "zoe", Proven: true})),
			p.state("runner", change, approvedBy("ada", proof.OfPlan, "0123456789ab")), p.state("runner", change, approvedBy("bob", proof.OfPlan, "0123456789ab")),
		}},
		"one of two": {bundle: []forge.Envelope{
			verify, review, p.state("runner", change, shared(2)), p.state("runner", change, approvedBy("ada", proof.OfPlan, "0123456789ab")),
		}, want: []string{"2 people had to approve the plan, and there are proofs of 1"}},
		"one person twice": {bundle: []forge.Envelope{
			verify, review, p.state("runner", change, shared(2)),
			p.state("runner", change, approvedBy("ada", proof.OfPlan, "0123456789ab")), p.state("runner", change, approvedBy("Ada ", proof.OfPlan, "0123456789ab")),
		}, want: []string{"2 people had to approve the plan, and there are proofs of 1"}},
		"one of them of another plan": {bundle: []forge.Envelope{
			verify, review, p.state("runner", change, shared(2)),
			p.state("runner", change, approvedBy("ada", proof.OfPlan, "0123456789ab")), p.state("runner", change, approvedBy("bob", proof.OfPlan, "ba9876543210")),
		}, want: []string{"2 people had to approve the plan, and there are proofs of 1"}},
		"approved by the requester": {bundle: []forge.Envelope{
			verify, review, p.state("runner", change, shared(1, proof.Requester{Name: "ADA"})), p.state("runner", change, approved(proof.OfPlan, "0123456789ab")),
		}, want: []string{"ada approved the plan and asked for it", "there is no proof that one did"}},
		"risk without an approval": {bundle: []forge.Envelope{
			verify, review, p.state("runner", change, &proof.Plan{Of: of, Run: 1, Plan: "0123456789ab", Requirement: patch, Risk: "high"}),
		}, want: []string{"its risk is high, and its plan says that nobody had to approve it"}},
		"unsigned":       {object: object(tree, parent, "Fix it\n"), want: []string{"is not signed"}},
		"no proofs":      {text: "\n", want: []string{"cannot be read"}},
		"nothing at all": {text: "-", want: []string{"there are no proofs"}},
		"signed by a stranger": {
			object: signed(t, thief.keys["implementer"], object(tree, parent, "x")),
			want:   []string{"not among the trusted keys"},
		},
		"signed by the reviewer": {object: signed(t, p.keys["reviewer"], object(tree, parent, "x")), want: []string{"may not sign git"}},
		"amended after signing":  {object: []byte(strings.Replace(string(p.commit()), "Fix it", "Do it", 1)), want: []string{"wrong signature"}},
		"another tree in the commit": {
			object: signed(t, p.keys["implementer"], object(other, parent, "x")),
			want:   []string{"verify/v1: it is about tree " + tree},
		},
		"same tree, another parent": {object: signed(t, p.keys["implementer"], object(tree, other, "x")), want: []string{"verify/v1: it is about"}},
		"two parents":               {object: signed(t, p.keys["implementer"], []byte(moreParents)), want: []string{"2 parents"}},
		"two signatures":            {object: signed(t, p.keys["implementer"], p.commit()), want: []string{`header "gpgsig" twice`}},
		"a header that hides":       {object: []byte(strings.Replace(string(p.commit()), "\n\n", "\nmergetag x\n\n", 1)), want: []string{"mergetag"}},
		"NUL":                       {object: append(p.commit(), 0), want: []string{"cannot be read"}},

		"not verified":   {bundle: []forge.Envelope{review, plan}, want: []string{"no proof that it was verified"}},
		"not reviewed":   {bundle: []forge.Envelope{verify, plan}, want: []string{"no proof that it was reviewed"}},
		"not planned":    {bundle: []forge.Envelope{verify, review}, want: []string{"no proof which plan"}},
		"twice reviewed": {bundle: []forge.Envelope{verify, review, review, plan}, want: []string{"2 proofs that it was reviewed"}},
		"reviewed by two": {bundle: []forge.Envelope{
			verify, review, p.state("reviewer", change, second(proof.VerdictApproved)), p.state("runner", change, twice()),
		}},
		"the second was not asked": {
			bundle: []forge.Envelope{verify, review, p.state("runner", change, twice())},
			want:   []string{"two reviewers had to approve it, and there is no proof that the second one reviewed it"},
		},
		"the first again": {
			bundle: []forge.Envelope{verify, review, review, p.state("runner", change, twice())},
			want:   []string{"2 proofs that it was reviewed", "no proof that the second one reviewed it"},
		},
		"only the second": {
			bundle: []forge.Envelope{verify, p.state("reviewer", change, second(proof.VerdictApproved)), p.state("runner", change, twice())},
			want:   []string{"no proof that it was reviewed"},
		},
		"the second is the first": {
			bundle: []forge.Envelope{verify, review, p.state("reviewer", change, &proof.Review{
				Of: of, Step: "review", Second: true, Verdict: proof.VerdictApproved, Agent: "claude", Replica: "v1",
			}), p.state("runner", change, twice())},
			want: []string{"both reviews are by claude"},
		},
		"the second of another change": {
			bundle: []forge.Envelope{verify, review, p.state("reviewer", elsewhere, second(proof.VerdictApproved)), p.state("runner", change, twice())},
			want:   []string{"review/v1: it is about another change", "no proof that the second one reviewed it"},
		},
		"the second rejected": {
			bundle: []forge.Envelope{verify, review, p.state("reviewer", change, second(proof.VerdictRejected)), p.state("runner", change, twice())},
			want:   []string{"the second reviewer did not approve it"},
		},
		"the second rejected, a person decided": {bundle: []forge.Envelope{
			verify, review, p.state("reviewer", change, second(proof.VerdictRejected)), p.state("runner", change, twice(proof.OfChanges)),
			p.state("runner", change, approved(proof.OfChanges, "ba9876543210")),
		}},
		"the second rejected, a person approved the plan": {
			bundle: []forge.Envelope{
				verify, review, p.state("reviewer", change, second(proof.VerdictRejected)), p.state("runner", change, twice(proof.OfPlan)),
				p.state("runner", change, approved(proof.OfPlan, "0123456789ab")),
			},
			want: []string{"the second reviewer did not approve it"},
		},
		"the first rejected, the second did not": {
			bundle: []forge.Envelope{
				verify, p.state("reviewer", change, reviewed(proof.VerdictRejected)), p.state("reviewer", change, second(proof.VerdictApproved)),
				p.state("runner", change, twice(proof.OfChanges)), p.state("runner", change, approved(proof.OfChanges, "ba9876543210")),
			},
			want: []string{`the review did not approve it: its verdict is "rejected"`},
		},
		"rejected": {
			bundle: []forge.Envelope{verify, p.state("reviewer", change, reviewed(proof.VerdictRejected)), plan},
			want:   []string{`verdict is "rejected"`},
		},
		"some verdict": {
			bundle: []forge.Envelope{verify, p.state("reviewer", change, reviewed("Approved")), plan},
			want:   []string{`verdict is "Approved"`},
		},
		"verify failed": {
			bundle: []forge.Envelope{
				p.state("implementer", change, &proof.Verify{Of: of, Commands: []proof.Command{{Command: "make", Exit: 1}}}), review, plan,
			},
			want: []string{"a verify command failed"},
		},
		"not approved": {
			bundle: []forge.Envelope{verify, review, p.state("runner", change, planned(proof.OfPlan))},
			want:   []string{"had to approve the plan"},
		},
		"approved another plan": {
			bundle: []forge.Envelope{
				verify, review, p.state("runner", change, planned(proof.OfPlan)), p.state("runner", change, approved(proof.OfPlan, "ba9876543210")),
			},
			want: []string{"had to approve the plan"},
		},

		"a stolen implementer's key reviews": {
			bundle: []forge.Envelope{verify, p.state("implementer", change, reviewed(proof.VerdictApproved)), plan},
			want:   []string{"key of implementer may not sign review@pfl-forge", "no proof that it was reviewed"},
		},
		"a stolen implementer's key plans": {
			bundle: []forge.Envelope{verify, review, p.state("implementer", change, planned())},
			want:   []string{"may not sign plan@pfl-forge"},
		},
		"a reviewer approves for a person": {
			bundle: []forge.Envelope{
				verify, review, p.state("runner", change, planned(proof.OfPlan)), p.state("reviewer", change, approved(proof.OfPlan, "0123456789ab")),
			},
			want: []string{"may not sign approval@pfl-forge"},
		},
		"a review of a stranger": {bundle: []forge.Envelope{verify, thief.whole()[1], plan}, want: []string{"not among the trusted keys"}},
		"a review of another change": {
			bundle: []forge.Envelope{verify, p.state("reviewer", elsewhere, reviewed(proof.VerdictApproved)), plan},
			want:   []string{"review/v1: it is about another change"},
		},
		"a review that names no patch": {
			bundle: []forge.Envelope{verify, p.state("reviewer", proof.Change{Tree: other, Parent: other}, reviewed(proof.VerdictApproved)), plan},
			want:   []string{"review/v1: it is about another change"},
		},
		"a plan of another change": {
			bundle: []forge.Envelope{verify, review, p.state("runner", elsewhere, planned())},
			want:   []string{"plan/v1: it is about another change"},
		},
		"a verify of the patch elsewhere": {
			bundle: []forge.Envelope{p.state("implementer", rebased, verified()), review, plan},
			want:   []string{"verify/v1: it is about"},
		},
		"a review of another task": {
			bundle: []forge.Envelope{
				verify, p.state("reviewer", change, &proof.Review{
					Of:      proof.Task{Project: "shop", Intent: "fix", Task: "fix-002"},
					Verdict: proof.VerdictApproved,
				}), plan,
			},
			want: []string{"it is of task fix-002"},
		},
		"the reviewer's key was taken back":  {signers: revoked, want: []string{"not among the trusted keys", "no proof that it was reviewed"}},
		"the implementer's key was replaced": {signers: replaced, want: []string{"was replaced on", "no proof that it was verified"}},
		"the signature of another envelope":  {bundle: []forge.Envelope{verify, spliced(t, review, plan), plan}, want: []string{"signature"}},
		"the payload was edited": {
			bundle: []forge.Envelope{verify, edited(t, p.state("reviewer", change, reviewed(proof.VerdictRejected)), "rejected", "approved"), plan},
			want:   []string{"the content is not what was signed"},
		},
		"garbage":   {text: strings.Repeat("x\n", 100), want: []string{"line 1 of the proofs"}},
		"too many":  {text: strings.Repeat(string(verify)+"\n", 17), want: []string{"more than 16 proofs"}},
		"too large": {text: strings.Repeat("x", proof.MaxBundle+1), want: []string{"more than"}},
		"a statement that nobody knows": {
			bundle: append(p.whole(), sealed(t, p.keys["runner"], proof.PayloadStatement,
				`{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"tree","digest":{"gitTree":"a"}},`+
					`{"name":"parent","digest":{"gitCommit":"b"}}],"predicateType":"x","predicate":{}}`)),
			want: []string{`type "x" are not known`},
		},
		"no statement": {
			bundle: append(p.whole(), sealed(t, p.keys["runner"], "text/plain", "hello")),
			want:   []string{"and no statement"},
		},
		"a field that nobody knows": {
			bundle: append(p.whole(), sealed(t, p.keys["runner"], proof.PayloadStatement, `{"_type":"https://in-toto.io/Statement/v1","extra":1}`)),
			want:   []string{"not in the one form"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.object == nil {
				c.object = p.commit()
			}
			if c.bundle == nil {
				c.bundle = p.whole()
			}
			if c.text == "" {
				c.text = proof.Bundle(c.bundle...)
			}
			if c.text == "-" {
				c.text = ""
			}
			if c.signers == nil {
				c.signers = p.signers
			}
			r := proof.Check(c.object, c.text, c.signers, samePatch)
			all := strings.Join(r.Problems, "\n")
			if r.OK() != (len(c.want) == 0) {
				t.Errorf("got %q, want %q", r.Problems, c.want)
			}
			for _, want := range c.want {
				if !strings.Contains(all, want) {
					t.Errorf("got %q, want %q", r.Problems, want)
				}
			}
		})
	}
}
