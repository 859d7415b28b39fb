package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
)

// claimedTask, claimedPlan and claimedApproval are the claims as package proof
// reads them, which the rules do not import.
type claimedTask struct {
	Project forge.ProjectID `json:"project"`
	Intent  forge.IntentID  `json:"intent"`
	Task    forge.TaskID    `json:"task"`
}

// claimedPlan becomes a statement of the kind plan/v1.
type claimedPlan struct {
	Of          claimedTask       `json:"of"`
	Run         int               `json:"run"`
	Plan        string            `json:"plan"`
	Requirement string            `json:"requirement"`
	Risk        string            `json:"risk,omitempty"`
	Requesters  []claimedIdentity `json:"requesters,omitempty"`
	Needs       []claimedNeed     `json:"needs,omitempty"`
	Reviews     int               `json:"reviews,omitempty"`
	Policy      string            `json:"policy,omitempty"`
}

// Change is a change that follows a plan.
type Change struct {
	// Run is that of the intent, and Task the one that made the change.
	Run  int
	Task forge.TaskID
	// Approved is by whom; nil if it did not need an approval of its own.
	Approved *approval.Granted
	// Reviews is how many reviews the verdict on it took.
	Reviews int
	// Policy is the commit of the base branch whose file says how many it takes; empty
	// of a goal, which is judged.
	Policy string
}

// claimedIdentity is a person whose words are in the intent.
type claimedIdentity struct {
	Name   string `json:"name"`
	Proven bool   `json:"proven,omitempty"`
}

// claimedNeed says of what people had to approve how many had to.
type claimedNeed struct {
	What         string `json:"what"`
	Count        int    `json:"count"`
	NotRequester bool   `json:"not_requester,omitempty"`
	Policy       string `json:"policy,omitempty"`
}

// claimedApproval becomes a statement of the kind approval/v1.
type claimedApproval struct {
	Of    claimedTask `json:"of"`
	What  string      `json:"what"`
	Hash  string      `json:"hash"`
	By    string      `json:"by"`
	Event string      `json:"event,omitempty"`
	At    string      `json:"at,omitempty"`
}

// Claims describes the plan of a task's change for those who look at the commit
// later, and the approvals that it has: of the plan, and of the changes if they needed
// one. A runner signs it.
func (g *Gate) Claims(in *forge.Intent, c *Change) []string {
	text := sha256.Sum256([]byte(in.Title + "\x00" + in.Body))
	of := claimedTask{in.Project, in.ID, c.Task}
	p := claimedPlan{Of: of, Run: c.Run, Plan: g.Hash, Requirement: hex.EncodeToString(text[:]), Risk: string(in.Risk)}
	if c.Reviews > 1 {
		// Only there: who verifies may have a version that knows neither, and
		// takes no unknown field.
		p.Reviews, p.Policy = c.Reviews, c.Policy
	}
	for _, r := range in.Requesters {
		p.Requesters = append(p.Requesters, claimedIdentity(r))
	}
	var approvals []claimedApproval
	need := func(what string, g *approval.Granted) {
		p.Needs = append(p.Needs, claimedNeed{what, max(g.Rules.Count, 1), g.Rules.NotRequester, g.Rules.Commit})
		for _, a := range g.Approvals {
			approvals = append(approvals, claimedApproval{of, what, a.Hash, a.By, a.Event, a.At.UTC().Format(time.RFC3339Nano)})
		}
	}
	// The intent would not work on an unapproved plan that needs approval, so what has
	// one needed it.
	if g.Approved != nil {
		need(approval.OfPlan, g.Approved)
	}
	if c.Approved != nil {
		need(approval.OfChanges, c.Approved)
	}
	claims := []string{claim("plan", p)}
	for _, a := range approvals {
		claims = append(claims, claim("approval", a))
	}
	return claims
}

// claim returns a claim as JSON, below its kind.
func claim(kind string, of any) string {
	text, _ := json.Marshal(map[string]any{kind: of}) //nolint:errchkjson // strings and numbers always can be
	return string(text)
}
