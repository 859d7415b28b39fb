package reviewer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/evidence"
	"github.com/pfl-forge/pfl-forge/jobs/sessions"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// claimCheck is one call whose answer has claims: it looks their evidence up in the tree
// that is judged, and asks once more where it does not hold.
type claimCheck struct {
	judged *evidence.Judged
	// noun names one entry of asked: requirement or criterion.
	noun  string
	asked []string
	least float64
	// system takes the place of the call's system prompt; empty: nothing does.
	system string
	// prompts returns the prompts for a call in the command's session, by how it begins.
	// Nil: the call has no session that is kept.
	prompts func(sessions.Start) (system, text string, err error)
	// first is the answer that was asked for once more; nil before.
	first []byte
}

// name gives each claim the text that its number stands for.
func (h *claimCheck) name(claims []forge.Claim) {
	for i := range claims {
		claims[i].Text = ""
		if n := claims[i].Number; n >= 1 && n <= len(h.asked) {
			claims[i].Text = h.asked[n-1]
		}
	}
}

// resolve returns the claims with what code found of their evidence.
func (h *claimCheck) resolve(ctx context.Context, claims []forge.Claim) ([]forge.Claim, error) {
	h.name(claims)
	return h.judged.Resolve(ctx, claims)
}

// check refuses the first answer if it leaves something out, or cites what is not there. The
// second one is taken as it is: then the rules decide. A lie gains nothing by that, and an honest
// mistake costs one more turn instead of another implementation.
func (h *claimCheck) check(ctx context.Context, answer []byte, claims []forge.Claim) error {
	if h.first != nil {
		return nil
	}
	resolved, err := h.resolve(ctx, claims)
	if err != nil {
		return err
	}
	weighed, wrong := verdict.Weigh(h.asked, resolved, h.least)
	for i := range wrong {
		wrong[i] = h.noun + " " + wrong[i]
	}
	for i := range weighed {
		c := &weighed[i]
		if c.Unproven != "" && len(c.Evidence) == 0 {
			wrong = append(wrong, fmt.Sprintf("%s %d: %s", h.noun, c.Number, c.Unproven))
		}
		for n := range c.Evidence {
			if e := &c.Evidence[n]; c.Met && !e.Resolved {
				wrong = append(wrong, fmt.Sprintf("%s %d, evidence[%d] (%s): %s", h.noun, c.Number, n, term.Short(e.String(), maxShown), e.Reason))
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	h.first = answer
	return agent.Fail(forge.FailInvalidOutput, "code looked up what the answer cites, and it does not hold. Correct your mistakes; "+
		"what you cannot show is not met:\n%s", strings.Join(wrong[:min(len(wrong), maxWrong)], "\n"))
}

// Bounds of a complaint about an answer.
const (
	maxWrong = 30  // complaints
	maxShown = 120 // characters of a reference
)

// run makes the call, and returns its answer. Where the answer was asked for once more and the
// second is malformed, the first one counts.
func (h *claimCheck) run(ctx context.Context, j *jobs.Job, call agent.Call) ([]byte, error) {
	call.System = cmp.Or(h.system, call.System)
	run := j.Run
	if h.prompts != nil {
		run = func(ctx context.Context, call agent.Call) (agent.Outcome, error) {
			return j.CallInSession(ctx, call, sessions.Call{Prompts: func(o sessions.Start) (system, text string, err error) {
				system, text, err = h.prompts(o)
				return cmp.Or(h.system, system), text, err
			}})
		}
	}
	out, err := run(ctx, call)
	var f *agent.Failure
	if h.first != nil && errors.As(err, &f) && f.Reason == forge.FailInvalidOutput {
		return h.first, nil
	}
	return out.Answer, err
}

// shown reports whether an answer counts as an approval, by the same comparison
// that the rules make: what is signed is never more than what they accept.
func (h *claimCheck) shown(claims []forge.Claim) bool {
	weighed, against := verdict.Weigh(h.asked, claims, h.least)
	said, found := verdict.Shortfalls(weighed)
	return len(said)+len(found)+len(against) == 0
}
