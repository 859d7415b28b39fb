package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// Gate holds the facts that the approval of a plan depends on.
type Gate struct {
	// Declared is the risk as the publisher said it, or a person set it later.
	Declared forge.Risk
	// Judged is the risk as the analysis said it. The higher one counts.
	Judged forge.Risk
	// Vouched says that a person approved the parent.
	Vouched bool
	// Cleared names the text that a person let be analyzed; empty before that.
	Cleared string
	// Hash names the plan, so that an approval is of exactly that one.
	Hash string
	// Approved has the approvals of the plan; nil until there are enough of them.
	Approved *approval.Granted
	// Collected are the approvals of what the intent waits for, be it its
	// analysis, the plan or changes.
	Collected approval.Collection
}

// Name gives the plan its hash. Approvals of another one are void from then on.
func (g *Gate) Name(hash string) {
	if hash != g.Hash {
		g.Approved = nil
	}
	g.Hash = hash
}

// Judge takes the risk as an analysis judged it, and returns the effective one.
func (g *Gate) Judge(risk forge.Risk) forge.Risk {
	g.Judged = risk
	if g.Judged.Rank() == 0 {
		g.Judged = forge.RiskMed // not judged is not harmless
	}
	return forge.MaxRisk(g.Declared, g.Judged)
}

// NeedsApproval returns why a person has to approve the plan; empty if that is not
// needed. reworded is a criterion of a goal that was put in other words.
func (g *Gate) NeedsApproval(in *forge.Intent, trusted []string, reworded string) string {
	origin := in.Origin.System
	switch {
	case in.Risk.Rank() > forge.RiskLow.Rank():
		return riskWords(in.Risk)
	case reworded != "":
		return fmt.Sprintf("its criteria were reworded, such as %q", rule.FirstLine(reworded))
	case in.Source == forge.SourceSystem && !g.Vouched && !slices.Contains(trusted, origin):
		return fmt.Sprintf("it comes from %q, which needs approval (policy.trusted_origins)", origin)
	case in.Source == forge.SourceSystemReflection && !g.Vouched:
		return "it is a reflection on what another system asked for"
	}
	return ""
}

// riskWords returns a risk as a person reads it: "medium risk".
func riskWords(r forge.Risk) string {
	if r == forge.RiskMed {
		return "medium risk"
	}
	return string(r) + " risk"
}

// Hash names a plan.
func Hash(in *forge.Intent, tasks []*task.Task, children Children) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q\n", in.Title, in.Body, in.Risk)
	for _, t := range tasks {
		fmt.Fprintf(h, "%q %q %q %q %q %q %q\n", t.ID, t.Title, t.Plan, t.RelevantFiles, t.Steps, t.DependsOn, t.Item)
		if len(t.Criteria) > 0 {
			fmt.Fprintf(h, "%q\n", t.Criteria)
		}
		for _, c := range t.Checks { // that a command decides is approved, not only the words for it
			fmt.Fprintf(h, "check %d %q %q %d %q %s\n", c.Criterion, c.Name, c.Command, c.ExitCode, c.Output, c.Timeout)
		}
		if len(t.Requirements) > 0 {
			fmt.Fprintf(h, "requirements %q\n", t.Requirements)
		}
		if t.Write != nil {
			fmt.Fprintf(h, "%q\n", *t.Write)
		}
	}
	for _, c := range children {
		fmt.Fprintf(h, "%q %q %q %q %q\n", c.Intent.ID, c.Intent.Title, c.Intent.Body, c.Intent.Risk, c.Intent.DependsOn)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}
