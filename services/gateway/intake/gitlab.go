package intake

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
)

// gitLab holds the fields of GitLab's deliveries about issues and comments.
type gitLab struct {
	// Kind is issue or note; work_item is its newer word for an issue.
	Kind string `json:"object_kind"`
	// User caused the delivery.
	User struct {
		ID    int64  `json:"id"`
		Login string `json:"username"`
	} `json:"user"`
	Project struct {
		ID   int64  `json:"id"`
		Name string `json:"path_with_namespace"`
	} `json:"project"`
	// ProjectID is in some deliveries the only number of the project.
	ProjectID int64 `json:"project_id"`
	// Attributes are those of the issue, or of the comment.
	Attributes struct {
		gitLabIssue

		// Action is update for a comment that was edited. About names the kind
		// of thing that it is on, such as Issue or MergeRequest.
		Action   string `json:"action"`
		Note     string `json:"note"`
		About    string `json:"noteable_type"`
		System   bool   `json:"system"`
		Internal bool   `json:"internal"`
	} `json:"object_attributes"`
	// Issue is there for comments on one.
	Issue *gitLabIssue `json:"issue"`
}

// gitLabIssue is an issue in a delivery. Of its author there is only the number.
type gitLabIssue struct {
	Number       int64  `json:"iid"`
	Title        string `json:"title"`
	Body         string `json:"description"`
	State        string `json:"state"`
	Author       int64  `json:"author_id"`
	Confidential bool   `json:"confidential"`
	Labels       []struct {
		Title string `json:"title"`
	} `json:"labels"`
}

// readGitLab is ReadDelivery for GitLab. What is confidential has a reason of
// its own: no rule is ever asked for it.
func readGitLab(forgeName string, data []byte, unsaid Unsaid) (Trigger, error) {
	var d gitLab
	if err := json.Unmarshal(data, &d); err != nil {
		return Trigger{}, fmt.Errorf("this is no delivery of a webhook: %w", err)
	}
	d.Project.ID = cmp.Or(d.Project.ID, d.ProjectID)
	a := &d.Attributes
	i, err := d.about()
	if err != nil {
		return Trigger{}, err
	}
	asker := (&sender{ID: d.User.ID, Login: d.User.Login}).account(unsaid)
	t := Trigger{
		Forge: forgeName, Repository: d.Project.Name, RepositoryID: d.Project.ID, Number: i.Number, Event: Issue, Title: i.Title, Body: i.Body,
		Author: (&sender{ID: i.Author}).account(Unsaid{}),
	}
	if t.Author.ID == asker.ID {
		t.Author = asker
	}
	for _, l := range i.Labels {
		t.Labels = append(t.Labels, Label{Name: l.Title, By: asker})
	}
	switch {
	case d.Kind != "note":
		return t, nil
	case a.Author != asker.ID:
		return Trigger{}, errNotTheirs
	}
	return t.commanded(Said{Author: asker, Body: a.Note, Edited: a.Action == "update"})
}

// about returns the issue that a delivery is about, or why no rule is asked for it.
func (d *gitLab) about() (*gitLabIssue, error) {
	a, i := &d.Attributes, &d.Attributes.gitLabIssue
	if d.Kind == "note" {
		i = d.Issue
	}
	switch {
	case d.Kind == "merge_request" || d.Kind == "note" && a.About == "MergeRequest":
		return nil, errors.New("this is a merge request; rules are asked for issues")
	case d.Kind != "issue" && d.Kind != "work_item" && d.Kind != "note" || i == nil || i.Number <= 0 || d.Project.ID <= 0:
		return nil, errors.New("the delivery is about no issue: it needs object_kind, project.id, and iid in object_attributes or issue")
	case i.Confidential || a.Internal:
		return nil, errors.New("it is confidential; rules are asked for what all may see who see the project")
	case a.System:
		return nil, errors.New("GitLab itself wrote this comment; no rule is asked for it")
	case i.State == "closed":
		return nil, errors.New("the issue is closed; rules are asked for open ones")
	}
	if err := CheckNested(d.Project.Name); err != nil {
		return nil, fmt.Errorf("project.path_with_namespace %w", err)
	}
	return i, nil
}
