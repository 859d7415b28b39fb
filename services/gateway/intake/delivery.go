package intake

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// Unsaid describes the account that asks by the facts that no delivery has: the
// gateway asks the forge for them.
type Unsaid struct {
	// Permission is that of the account in the repository; empty if it is not
	// known, and then no rule lets it in that asks for one.
	Permission Permission
	// Kind tells a person from a program. Empty: a bot where the delivery says
	// so, otherwise a member who may triage or more, or an outsider.
	Kind Kind
	// Teams are those of the account.
	Teams []string
}

// delivery holds the fields of a webhook's delivery that Gitea, Forgejo and GitHub have in common.
type delivery struct {
	// Action is edited for a comment that was changed, which commands nothing.
	Action string `json:"action"`
	// Issue is there for comments, too. GitHub takes a pull request for an
	// issue, with a field of its own.
	Issue *struct {
		Number int64          `json:"number"`
		Title  string         `json:"title"`
		Body   string         `json:"body"`
		State  string         `json:"state"`
		User   sender         `json:"user"`
		Labels []labelled     `json:"labels"`
		Pull   map[string]any `json:"pull_request"`
	} `json:"issue"`
	// Comment is there for comments alone.
	Comment *struct {
		Body string `json:"body"`
		User sender `json:"user"`
	} `json:"comment"`
	Repository struct {
		ID       int64  `json:"id"`
		FullName string `json:"full_name"`
	} `json:"repository"`
	// Sender caused the delivery.
	Sender sender `json:"sender"`
	// Kind is GitLab's, whose deliveries have nothing else in common with these.
	Kind string `json:"object_kind"`
}

// labelled is a label of an issue in a delivery, which does not say who put it on.
type labelled struct {
	Name string `json:"name"`
}

// sender is an account in a delivery. GitHub says with the type Bot that it is
// a program's; Gitea does not say.
type sender struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	Type  string `json:"type"`
}

// ReadDelivery reads the trigger in a delivery about an issue, or about a comment that
// has a command, as Gitea, Forgejo, GitHub and GitLab send them. It is for explanations
// alone: the gateway takes a delivery for a hint, and every fact from the forge. Who sent
// the delivery is taken for who put the labels on. Errors say why no rule would be asked.
func ReadDelivery(forgeName string, data []byte, unsaid Unsaid) (Trigger, error) {
	if err := CheckForge(forgeName); err != nil {
		return Trigger{}, err
	}
	var d delivery
	if err := json.Unmarshal(data, &d); err != nil {
		return Trigger{}, fmt.Errorf("this is no delivery of a webhook: %w", err)
	}
	switch {
	case d.Kind != "":
		return readGitLab(forgeName, data, unsaid)
	case d.Issue == nil || d.Issue.Number <= 0 || d.Repository.ID <= 0:
		return Trigger{}, errors.New("the delivery is about no issue: it needs issue.number and repository.id")
	case d.Issue.Pull != nil:
		return Trigger{}, errors.New("this is a pull request; rules are asked for issues")
	case d.Issue.State == "closed":
		return Trigger{}, errors.New("the issue is closed; rules are asked for open ones")
	}
	if err := CheckRepository(d.Repository.FullName); err != nil {
		return Trigger{}, fmt.Errorf("repository.full_name %w", err)
	}
	asker := d.Sender.account(unsaid)
	t := Trigger{
		Forge: forgeName, Repository: d.Repository.FullName, RepositoryID: d.Repository.ID, Number: d.Issue.Number,
		Event: Issue, Title: d.Issue.Title, Body: d.Issue.Body, Author: d.Issue.User.account(Unsaid{}),
	}
	if t.Author.ID == asker.ID {
		t.Author = asker
	}
	for _, l := range d.Issue.Labels {
		t.Labels = append(t.Labels, Label{Name: l.Name, By: asker})
	}
	if d.Comment == nil {
		return t, nil
	}
	if d.Comment.User.ID != asker.ID {
		return Trigger{}, errNotTheirs
	}
	return t.commanded(Said{Author: asker, Body: d.Comment.Body, Edited: d.Action == "edited"})
}

// errNotTheirs says that nothing is known of the account that wrote a comment.
var errNotTheirs = errors.New("the comment is not of the account that the delivery comes from")

// commanded returns the trigger with the command of a comment.
func (t Trigger) commanded(said Said) (Trigger, error) {
	// No account has this number, so that the comment is not taken for the gateway's own.
	const nobody = math.MaxInt64
	list := Commands(said, nobody)
	switch {
	case len(list) == 0:
		return Trigger{}, errors.New("the comment has no command: it stands in a paragraph of its own, and is not edited")
	case list[0].Wrong != "":
		return Trigger{}, errors.New(list[0].Wrong)
	case list[0].Verb != Run:
		return Trigger{}, fmt.Errorf("rules are asked for the command run alone; %s needs the right to write and a person who is known", list[0].Verb)
	}
	t.Event, t.Commander, t.Command = Comment, said.Author, Run
	return t, nil
}

// account returns an account of a delivery as the forge would describe it.
func (s *sender) account(unsaid Unsaid) Account {
	a := Account{ID: s.ID, Login: s.Login, Kind: unsaid.Kind, Permission: unsaid.Permission, Teams: unsaid.Teams}
	switch {
	case a.Kind != "":
	case s.Type == "Bot":
		a.Kind = Bot
	case a.Permission.Includes(Triage):
		a.Kind = Member
	default:
		a.Kind = Outsider
	}
	return a
}
