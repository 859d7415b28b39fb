package intake

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
)

// Permission says what an account may do in a repository. Each one includes those before it.
type Permission string

// The permissions, in ascending order.
const (
	None   Permission = "none"
	Read   Permission = "read"
	Triage Permission = "triage"
	Write  Permission = "write"
	Admin  Permission = "admin"
)

var permissions = []Permission{None, Read, Triage, Write, Admin}

// Includes reports whether p is at least q. What is not known includes nothing.
func (p Permission) Includes(q Permission) bool {
	i := slices.Index(permissions, p)
	return i >= 0 && i >= slices.Index(permissions, q)
}

// Kind tells people, strangers and programs apart.
type Kind string

// The kinds of accounts.
const (
	// Member is a person with more than the right to read, or of the
	// organisation that owns the repository.
	Member Kind = "member"
	// Outsider is any other person.
	Outsider Kind = "outsider"
	// Bot is an account that the forge says is a program's.
	Bot Kind = "bot"
)

// Account is a person or a program on the forge, as the forge described them when it was asked.
type Account struct {
	// ID is the forge's number for the account. Names are given to others after
	// a rename, numbers are not.
	ID int64
	// Login is the name.
	Login string
	// Kind is unknown, and matches no rule that asks for one, if it is empty.
	Kind Kind
	// Permission says what they may do in the repository of the trigger.
	Permission Permission
	// Teams are those that they belong to, of the teams that rules name, in the form of When.Team.
	Teams []string
	// Unread are those of which the forge did not tell: our account may not
	// read who is in them, or they are not there.
	Unread []string
}

// isPerson reports whether the forge told who the account is, and that it is a person's.
func (a *Account) isPerson() bool {
	return a.ID > 0 && (a.Kind == Member || a.Kind == Outsider)
}

// Event says what the forge was found to hold.
type Event string

// The events.
const (
	// Issue is an open issue, with whatever labels it has.
	Issue Event = "issue"
	// Comment is a comment with a command.
	Comment Event = "comment"
)

// Label is a label of an issue.
type Label struct {
	// Name is the label.
	Name string
	// By put it on. Whoever may do that is asked for their permission, not the author of the text.
	By Account
	// At is when they did, by the clock of the forge. If it is unset, every
	// edit of the text counts as a later one.
	At time.Time
}

// Edit is a change of the title or the body of an issue that was open already.
type Edit struct {
	// By made it; unset if that is not known.
	By Account
	// At is when it was made, by the clock of the forge; of one that deliveries
	// alone tell, the earliest time at which it can have been.
	At time.Time
}

// Trigger is all that a decision depends on.
type Trigger struct {
	// Forge is the name of the forge in the operator's configuration, an id as a project's.
	Forge string
	// Repository is owner/name, or group/subgroup/name, as the forge spells it now.
	Repository string
	// RepositoryID is the forge's number for it, which a rename does not change.
	RepositoryID int64
	// Number is the issue's in its repository.
	Number int64
	// Event says which kind of trigger it is.
	Event Event
	// Title and Body are the text that is to be worked on.
	Title, Body string
	// Labels are those of the issue.
	Labels []Label
	// Author wrote the text.
	Author Account
	// Commander wrote the comment with the command; unset if there is none.
	Commander Account
	// Command is the verb of the command; empty if there is none.
	Command Verb
	// Commanded is when the comment was written.
	Commanded time.Time
	// Edits are all that are known of the text, in any order.
	Edits []Edit
}

// EventID returns the origin's event id of an issue's n-th trigger, n counted
// from 1. It must never change: a repeated trigger would become a second intent.
func EventID(forgeName string, repository, issue int64, n int) (string, error) {
	if err := CheckForge(forgeName); err != nil {
		return "", err
	}
	if repository <= 0 || issue <= 0 || n <= 0 {
		return "", fmt.Errorf("event id: repository %d, issue %d and trigger %d have to be positive", repository, issue, n)
	}
	id := fmt.Sprintf("%s/%d/issue/%d", forgeName, repository, issue)
	if n > 1 {
		id += fmt.Sprintf("#%d", n)
	}
	return id, nil
}

// CheckForge returns an error unless name can be the name of a forge: it
// becomes a part of ids, paths and subjects.
func CheckForge(name string) error {
	if _, err := forge.ParseProjectID(name); err != nil {
		return fmt.Errorf("the forge's name %.70q has to be of small letters, digits and hyphens", name)
	}
	return nil
}

// CheckRepository returns an error unless name is owner/name, in characters
// that need no escape in a URL.
func CheckRepository(name string) error {
	owner, repo, ok := strings.Cut(name, "/")
	if !ok || !isName(owner) || !isName(repo) {
		return errors.New("has to be owner/name, of letters, digits, hyphens, underscores and dots")
	}
	return nil
}

// maxParts is how many parts the name of a project of GitLab has at most: its groups are 20 deep.
const maxParts = 21

// CheckNested returns an error unless name is that of a project of GitLab:
// owner/name, or groups with others in them and the name.
func CheckNested(name string) error {
	parts := strings.Split(name, "/")
	if len(parts) < 2 || len(parts) > maxParts || slices.ContainsFunc(parts, func(p string) bool { return !isName(p) }) {
		return errors.New("has to be owner/name or group/subgroup/name, of letters, digits, hyphens, underscores and dots")
	}
	return nil
}

// CheckTeam returns an error unless name can be that of a team, or of a group
// of GitLab, which may be in others.
func CheckTeam(name string) error {
	parts := strings.Split(name, "/")
	if len(parts) >= maxParts || slices.ContainsFunc(parts, func(p string) bool { return !isName(p) }) {
		return errors.New("has to be the name of a team as it stands in its address, or group/subgroup of GitLab")
	}
	return nil
}

// isName reports whether s is one part of a repository's name, which no path or
// URL reads as anything else.
func isName(s string) bool {
	const most = 100
	return s != "" && len(s) <= most && strings.Trim(s, ".") != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	})
}
