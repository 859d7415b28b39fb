package document

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Account is an account of an agent that refuses calls, as programs read it.
type Account struct {
	// Agent is the back end whose account it is.
	Agent string `json:"agent" yaml:"agent"`
	// Reason is auth, or quota, and Message the account's own words.
	Reason  forge.FailureReason `json:"reason"  yaml:"reason"`
	Message string              `json:"message" yaml:"message"`
	// Since is when the first call was refused.
	Since time.Time `json:"since" yaml:"since"`
	// Until is when calls go on by themselves; left out if a person has to resume them.
	Until *time.Time `json:"until,omitempty" yaml:"until,omitempty"`
}

// Accounts returns the accounts of a project that refuse calls now.
func Accounts(projects []forge.Summary) (list []Account) {
	for i := range projects {
		if projects[i].Project == nil {
			continue
		}
		for _, c := range projects[i].Project.Closed {
			a := Account{Agent: c.Agent, Reason: c.Reason, Message: c.Message, Since: c.Since}
			if !c.Until.IsZero() {
				a.Until = &c.Until
			}
			if a.Until == nil || a.Until.After(time.Now()) {
				list = append(list, a)
			}
		}
	}
	return list
}

// Line says in a line since when, until when and why an account is not called, and what to do.
func (a *Account) Line() string {
	if a.Agent == forge.GitOrigin {
		return term.Line("the " + a.Agent + " has been out of reach since " + a.Since.Local().Format(time.DateTime) + ": " + a.Message +
			"; everything continues when it answers")
	}
	if a.Agent == forge.AnyReplica {
		return term.Line(forge.NoReplica + "has been able to do a step since " + a.Since.Local().Format(time.DateTime) + ": " + a.Message +
			"; it continues by itself when one can")
	}
	if a.Agent == forge.GitBase {
		return term.Line("the base branch has been red since " + a.Since.Local().Format(time.DateTime) + ", at " + a.Message +
			"; everything that would be verified continues when it passes; check now: pfl-forge resume --all")
	}
	if a.Agent == forge.GitPush {
		return term.Line("the " + forge.GitOrigin + " has refused pushes since " + a.Since.Local().Format(time.DateTime) + ": " + a.Message +
			"; pushes are retried from time to time; retry now: pfl-forge resume --all")
	}
	text := "calls of " + a.Agent + " are stopped"
	next := "; fix that, then: pfl-forge resume --all"
	if a.Until != nil {
		text += " until " + a.Until.Local().Format(time.DateTime)
		next = ", then it continues; try now: pfl-forge resume --all"
	}
	return term.Line(text + " (since " + a.Since.Local().Format(time.DateTime) + "): " + string(a.Reason) + ": " + a.Message + next)
}
