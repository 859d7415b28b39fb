package bare

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Pull has all that a forge makes the message of a merge of.
type Pull struct {
	// Repository is owner/name, and Title the pull request's.
	Repository, Title string
	Number            int64
	// Base is the branch into which Branch goes, and Head the commit.
	Base, Branch, Head string
}

// Asked are the words that a merge asks for, by the names of Gitea, GitHub and
// GitLab; empty where it does not.
type Asked struct {
	GiteaTitle string `json:"merge_title_field"`
	GiteaBody  string `json:"merge_message_field"`
	HubTitle   string `json:"commit_title"`
	HubBody    string `json:"commit_message"`
	LabMerge   string `json:"merge_commit_message"`
	LabSquash  string `json:"squash_commit_message"`
}

// message returns the message of a title and a body.
func message(title, body string) string {
	return strings.TrimSpace(strings.TrimSpace(title) + "\n\n" + strings.TrimSpace(body))
}

// Gitea returns the message of the commit that Gitea makes when it is asked by its API:
// of its own it writes a title, and drops the rest that a person sees on the page.
func (p *Pull) Gitea(do string, in *Asked) string {
	own := fmt.Sprintf("Merge pull request '%s' (#%d) from %s into %s", p.Title, p.Number, p.Branch, p.Base)
	if do == "squash" {
		own = fmt.Sprintf("%s (#%d)", p.Title, p.Number)
	}
	return message(cmp.Or(in.GiteaTitle, own), in.GiteaBody)
}

// GitHub returns that of GitHub by the settings of a new repository: a squash
// of one commit has the message of that.
func (p *Pull) GitHub(r Repo, do string, in *Asked) string {
	owner, _, _ := strings.Cut(p.Repository, "/")
	title, body := fmt.Sprintf("Merge pull request #%d from %s/%s", p.Number, owner, p.Branch), p.Title
	if do == "squash" {
		title, body, _ = strings.Cut(r.Message(p.Head), "\n")
		title += fmt.Sprintf(" (#%d)", p.Number)
	}
	return message(cmp.Or(in.HubTitle, title), cmp.Or(in.HubBody, body))
}

// GitLab returns that of GitLab by the templates of a new project.
func (p *Pull) GitLab(do string, in *Asked) string {
	if do == "squash" {
		return cmp.Or(in.LabSquash, p.Title)
	}
	own := fmt.Sprintf("Merge branch '%s' into '%s'\n\n%s\n\nSee merge request %s!%d", p.Branch, p.Base, p.Title, p.Repository, p.Number)
	return cmp.Or(in.LabMerge, own)
}

// Merge brings a head onto a base branch, and returns the commit that the base has then.
// The ways are those of Gitea: fast-forward-only, merge, squash and rebase, which keeps the
// message of the head; and anew, GitHub's rebase, which makes another commit although
// nothing moved. The change has one commit. Ways that it does not know do as a squash does.
func (r Repo) Merge(do, base, head, message string) (string, error) {
	tip := r.Head(base)
	result := head
	if do != "fast-forward-only" && do != "rebase" || !r.Contains(head, tip) {
		tree, err := r.Run("", "merge-tree", "--write-tree", tip, head)
		if err != nil || do == "fast-forward-only" {
			return "", errConflict
		}
		tree, _, _ = strings.Cut(tree, "\n")
		args := []string{"commit-tree", "-p", tip}
		switch do {
		case "merge":
			args = append(args, "-p", head)
		case "rebase", "anew":
			message = r.Message(head)
		}
		if result, err = r.as("web", message, append(args, tree)...); err != nil {
			return "", err
		}
	}
	if _, err := r.Run("", "update-ref", "refs/heads/"+base, result, tip); err != nil {
		return "", fmt.Errorf("the base: %w", err)
	}
	return result, nil
}

// Message returns the message of a commit; empty if there is none.
func (r Repo) Message(commit string) string {
	out, err := r.Run("", "log", "-1", "--format=%B", "--end-of-options", commit)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// ShowCommit answers with a commit as GitHub and GitLab do.
func (r Repo) ShowCommit(sha string) (status int, out any) {
	message := r.Message(sha)
	if message == "" {
		return http.StatusNotFound, nil
	}
	return http.StatusOK, map[string]any{"message": message}
}

// ShowWrapped answers with a commit as Gitea does.
func (r Repo) ShowWrapped(sha string) (status int, out any) {
	status, commit := r.ShowCommit(sha)
	if status != http.StatusOK {
		return status, nil
	}
	return status, map[string]any{"sha": sha, "commit": commit}
}

// Compare counts the commits that the second of two has and the first has not, as Gitea does.
func (r Repo) Compare(span string) (status int, out any) {
	first, second, ok := strings.Cut(span, "...")
	count, err := r.Run("", "rev-list", "--count", first+".."+second, "--")
	if !ok || err != nil {
		return http.StatusNotFound, nil
	}
	n, _ := strconv.Atoi(count)
	return http.StatusOK, map[string]any{"total_commits": n}
}

// MergeBase answers with the last commit that all of some have, as GitLab does.
func (r Repo) MergeBase(refs []string) (status int, out any) {
	id, err := r.Run("", append([]string{"merge-base", "--"}, refs...)...)
	if err != nil {
		return http.StatusBadRequest, map[string]any{"message": "400 Bad request - Could not find ref"}
	}
	return http.StatusOK, map[string]any{"id": id}
}
