package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// What an approval is of.
const (
	OfPlan    = "plan"
	OfChanges = "changes"
)

// Approval is a person's approval, as it is told to those who look at a commit
// later.
type Approval struct {
	// What is OfPlan or OfChanges.
	What string
	// Hash names the plan or the changes, as the person did.
	Hash string
	// By is the person, and Event the id of the event with which they did.
	By, Event string
	// At is when it was decided on.
	At time.Time
}

// Approve notes an approval in place of an earlier one of the same thing.
func (g *Gate) Approve(a Approval) {
	var list []Approval
	for _, known := range g.Approvals {
		if known.What != a.What {
			list = append(list, known)
		}
	}
	list = append(list, a)
	g.Approver, g.Approvals = a.By, list
}

// claimedTask, claimedPlan and claimedApproval are the claims as package proof
// reads them, which the rules do not import.
type claimedTask struct {
	Project forge.ProjectID `json:"project"`
	Intent  forge.IntentID  `json:"intent"`
	Task    forge.TaskID    `json:"task"`
}

// claimedPlan becomes a statement of the kind plan/v1.
type claimedPlan struct {
	Of          claimedTask `json:"of"`
	Run         int         `json:"run"`
	Plan        string      `json:"plan"`
	Requirement string      `json:"requirement"`
	Risk        string      `json:"risk,omitempty"`
	Needs       []string    `json:"needs,omitempty"`
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
// later, and the approvals that it has: of the plan, and of the changes if
// changed says that they needed one. A runner signs it.
func (g *Gate) Claims(in *forge.Intent, run int, task forge.TaskID, changed bool) []string {
	text := sha256.Sum256([]byte(in.Title + "\x00" + in.Body))
	of := claimedTask{in.Project, in.ID, task}
	p := claimedPlan{Of: of, Run: run, Plan: g.Hash, Requirement: hex.EncodeToString(text[:]), Risk: string(in.Risk)}
	var approvals []claimedApproval
	for _, a := range g.Approvals {
		if a.What == OfPlan && g.Approved || a.What == OfChanges && changed {
			approvals = append(approvals, claimedApproval{of, a.What, a.Hash, a.By, a.Event, a.At.UTC().Format(time.RFC3339Nano)})
		}
	}
	// The intent would not work on an unapproved plan that needs approval, so what has
	// one needed it.
	if g.Approved {
		p.Needs = append(p.Needs, OfPlan)
	}
	if changed {
		p.Needs = append(p.Needs, OfChanges)
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
