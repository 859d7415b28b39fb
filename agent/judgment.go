package agent

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Judgment is the answer of a judge call: which criteria of a goal are met.
type Judgment struct {
	Evaluations []Evaluation `json:"evaluations"` // every criterion, each once
	Reason      string       `json:"overall_reason"`
	Complete    bool         `json:"is_complete"`
	NextAction  string       `json:"suggested_next_action,omitempty"`
}

// Evaluation is the verdict on one criterion. Criterion is its number, from 1, or its
// text.
type Evaluation struct {
	Criterion  string  `json:"criterion"`
	Evidence   string  `json:"evidence"`
	Met        bool    `json:"is_met"`
	Confidence float64 `json:"confidence"` // 0 to 1
}

// ParseJudgment returns the answer of a judge call, or a *Failure. The evaluations are
// in the order and words of criteria, each exactly once. Complete is true only if every
// criterion is met. The caller fills in which commit was judged.
func ParseJudgment(answer []byte, criteria []string) (forge.Judgment, error) {
	a, out, err := decodeJudgment(answer)
	if err != nil {
		return out, err
	}
	out.Evaluations = make([]forge.Evaluation, len(criteria))
	given := make([]bool, len(criteria))
	for i, e := range a.Evaluations {
		n := criterionOf(e.Criterion, criteria, given)
		switch {
		case n < 0:
			return out, invalid("evaluations[%d].criterion is %q; must be the number of a criterion, 1 to %d", i, short(e.Criterion), len(criteria))
		case given[n]:
			return out, invalid("evaluations[%d] is about criterion %d, which has been evaluated before it; evaluate each once", i, n+1)
		}
		given[n] = true
		out.Evaluations[n] = forge.Evaluation{Criterion: criteria[n], Met: e.Met, Evidence: clip(e.Evidence, maxStatement), Confidence: e.Confidence}
	}
	if n := slices.Index(given, false); n >= 0 {
		return out, invalid("evaluations lacks criterion %d: %s", n+1, short(criteria[n]))
	}
	return out, reconcile(&out)
}

// decodeJudgment checks the parts of an answer that do not depend on the criteria.
func decodeJudgment(answer []byte) (Judgment, forge.Judgment, error) {
	var a Judgment
	if err := decode(answer, &a); err != nil {
		return a, forge.Judgment{}, err
	}
	out := forge.Judgment{Complete: a.Complete, Reason: clip(a.Reason, maxStatement), NextAction: clip(a.NextAction, maxStatement)}
	if out.Reason == "" {
		return a, out, invalid("overall_reason is empty")
	}
	for i, e := range a.Evaluations {
		switch {
		case strings.TrimSpace(e.Evidence) == "":
			return a, out, invalid("evaluations[%d].evidence is empty; say where it can be seen, or what is missing", i)
		case e.Confidence < 0 || e.Confidence > 1:
			return a, out, invalid("evaluations[%d].confidence is %v; must be 0 to 1", i, e.Confidence)
		}
	}
	return a, out, nil
}

// reconcile makes the overall verdict agree with the evaluations: an unmet criterion
// makes it incomplete. It refuses the opposite, where the agent may have forgotten a
// reason.
func reconcile(j *forge.Judgment) error {
	var unmet []string
	for i, e := range j.Evaluations {
		if !e.Met {
			unmet = append(unmet, fmt.Sprintf("criterion %d: %s", i+1, e.Evidence))
		}
	}
	switch {
	case len(unmet) == 0 && !j.Complete:
		return invalid("is_complete is false, but every criterion is met; if one is not, say which, otherwise it is complete")
	case len(unmet) == 0:
		j.NextAction = ""
	default:
		j.Complete = false
		j.NextAction = cmp.Or(j.NextAction, clip("Meet "+strings.Join(unmet, "\n"), maxStatement))
	}
	return nil
}

// How agents name a criterion by its number: alone, or before its text.
var (
	bareNumber = regexp.MustCompile(`^(?i:criterion )?#?([0-9]{1,4})\.?$`)
	numbered   = regexp.MustCompile(`^(?i:criterion )?#?([0-9]{1,4})[.):] `)
)

// criterionOf returns the index of the criterion that name stands for; -1 if there is
// none. Of criteria with the same text it is the first that is not given yet.
func criterionOf(name string, criteria []string, given []bool) int {
	name = term.Line(name)
	index := func(re *regexp.Regexp) int {
		if m := re.FindStringSubmatch(name); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil && n >= 1 && n <= len(criteria) {
				return n - 1
			}
		}
		return -1
	}
	if n := index(bareNumber); n >= 0 {
		return n
	}
	found := -1
	for i, c := range criteria {
		if term.Line(c) == name && (found < 0 || given[found]) {
			found = i
		}
	}
	if found >= 0 {
		return found
	}
	return index(numbered)
}
