package goal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// checked returns a claim for each criterion that a command decides, by its run on exactly
// the tree that is judged. No agent's word is in these claims: the worker that verifies
// reports the runs, and what has none is not met.
func checked(t *task.Task) []forge.Claim {
	if t.Candidate == nil {
		return verdict.OfChecks(t.Criteria, t.Checks, nil, "")
	}
	return verdict.OfChecks(t.Criteria, t.Checks, t.Candidate.Verify, t.Candidate.Tree)
}

// unchecked goes on with the next iteration, because of claims of checks some are not met:
// no judge is asked.
func (g Strategy) unchecked(x *task.Turn, t *task.Task, claims []forge.Claim) {
	feedback, others := notMet(claims), slices.Clone(claims)
	// The others have a claim, too: one of those that are left out would look
	// as if a judge had done that.
	texts, numbers := verdict.Texts(t.Criteria, t.Checks)
	for i, text := range texts {
		others = append(others, forge.Claim{Number: numbers[i], Text: text, Note: "nobody was asked, because a command was not met"})
	}
	j := forge.Judgment{Head: JudgedHead(t), Reason: "commands decided it"}
	j.Claims, _, _ = rule.Verdict("Criterion", t.Criteria, others, x.Policy.MinConfidence)
	// The whole of it is the feedback of the next iteration; lists and history have its first line.
	j.NextAction = rule.FirstLine(feedback)
	boundJudgment(&j)
	g.newest().Judgment = &j
	t.Happened(x, task.Input{On: task.Rejected, Feedback: feedback, Detail: fmt.Sprintf(
		"%d of %d criteria are met. %s", met(&j), len(t.Criteria), j.NextAction)})
}

// maxOutput bounds the outputs of the commands that failed, all together, in bytes.
const maxOutput = 16 << 10

// notMet says, for the next iteration, which commands are not met and what they printed.
func notMet(claims []forge.Claim) string {
	var list []string
	// The outputs share the room in the order of the criteria. Of each the end
	// is kept: it has the result.
	room := maxOutput
	for i := range claims {
		c := &claims[i]
		if c.Met {
			continue
		}
		text := fmt.Sprintf("Criterion %d is not met (%s): %s", c.Number, c.Text, c.Note)
		if c.Run != nil {
			output := c.Run.Output
			if n := len(output) - room; n > 0 {
				output = strings.ToValidUTF8(output[n:], "")
			}
			room -= len(output)
			text += fmt.Sprintf("\n%q printed:\n%s", c.Run.Command, output)
		}
		list = append(list, text)
	}
	return strings.Join(list, "\n\n")
}

// renumbered returns a judge's claims with the numbers that the criteria have in the goal:
// the judge is asked for those alone that no command decides. It has no word on the
// others.
func renumbered(t *task.Task, claims []forge.Claim) []forge.Claim {
	_, numbers := verdict.Texts(t.Criteria, t.Checks)
	out := slices.Clone(claims)
	for i := range out {
		c := &out[i]
		c.Run = nil // no judge has run anything
		switch {
		case c.Number >= 1 && c.Number <= len(numbers):
			c.Number = numbers[c.Number-1]
		case c.Number > 0:
			c.Number += len(t.Criteria) - len(numbers) // of nothing that was asked for
		}
	}
	return out
}
