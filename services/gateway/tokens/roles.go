package tokens

import (
	"fmt"
	"slices"
	"strings"
)

// Role names a set of verbs that the holder of a token has in a project.
type Role string

// The roles: a closed set. Each lets its holder look, too.
const (
	// Viewer looks at intents and follows them.
	Viewer Role = "viewer"
	// Requester asks for changes, answers questions, and edits what has not begun.
	Requester Role = "requester"
	// Approver approves plans and changes, asks for changes of them, and rejects them.
	Approver Role = "approver"
	// Operator retries, cancels, pauses and resumes, and audits.
	Operator Role = "operator"
	// Auditor looks, and audits: it is meant for those who only check.
	Auditor Role = "auditor"
)

// Roles returns every role.
func Roles() []Role { return []Role{Viewer, Requester, Approver, Operator, Auditor} }

// Verb is something that is asked for by HTTP. Those of wishes are part of an
// address, and of a subject of the bus, so they are not renamed.
type Verb string

// The verbs: a closed set. Those of wishes are the verbs of the bus.
const (
	List       Verb = "list"
	Show       Verb = "show"
	Diff       Verb = "diff"
	Transcript Verb = "transcript"
	Costs      Verb = "costs"
	Queue      Verb = "queue"
	Health     Verb = "health"
	Timeline   Verb = "timeline"
	Audit      Verb = "audit"
	Settings   Verb = "settings"
	Overview   Verb = "overview"
	Whole      Verb = "whole"
	Follow     Verb = "follow"
	Submit     Verb = "submit"
	Edit       Verb = "edit"
	Answer     Verb = "answer"
	Approve    Verb = "approve"
	Change     Verb = "request_changes"
	Reject     Verb = "reject"
	Retry      Verb = "retry"
	Cancel     Verb = "cancel"
	Pause      Verb = "pause"
	Resume     Verb = "resume"
)

// looks are the verbs of every role.
var looks = []Verb{List, Show, Diff, Transcript, Timeline, Costs, Settings, Queue, Health, Overview, Whole, Follow}

// grants has the other verbs of each role. Who else may approve, and how many have to, the
// rules decide by the project's policy.
var grants = map[Role][]Verb{
	Viewer:    nil,
	Requester: {Submit, Edit, Answer},
	Approver:  {Answer, Approve, Change, Reject},
	Operator:  {Answer, Retry, Cancel, Pause, Resume, Audit},
	Auditor:   {Audit},
}

// forSystems are the verbs that systems have: what a person decides, none of them does.
var forSystems = []Verb{List, Show, Diff, Transcript, Timeline, Costs, Settings, Queue, Health, Overview, Whole, Follow, Submit}

// May reports whether a role includes a verb.
func (r Role) May(v Verb) bool {
	own, known := grants[r]
	return known && (slices.Contains(looks, v) || slices.Contains(own, v))
}

// ForSystems reports whether systems have a verb.
func ForSystems(v Verb) bool { return slices.Contains(forSystems, v) }

// With returns the roles that include a verb, in the order of Roles.
func With(v Verb) []Role {
	return slices.DeleteFunc(Roles(), func(r Role) bool { return !r.May(v) })
}

// Barred returns why the holder may not do something in a project, with the roles
// that would let them: they ask the operator of the gateway for one. who is how the
// holder is called there. It is the same whether or not there is such a project.
func (t *Token) Barred(who string, v Verb) string {
	text := fmt.Sprintf("%s may not %s in this project", who, v)
	if t.System != "" && !ForSystems(v) {
		return text + ": no system may"
	}
	var names []string
	for _, r := range With(v) {
		names = append(names, string(r))
	}
	switch len(names) {
	case len(Roles()):
		return who + " has no role in this project"
	case 1:
		return text + ": that takes the role " + names[0]
	}
	return text + ": that takes one of the roles " + strings.Join(names, ", ")
}
