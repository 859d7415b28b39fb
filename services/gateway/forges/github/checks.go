package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

type (
	statusJSON struct {
		State   string    `json:"state"`
		Context string    `json:"context"`
		Text    string    `json:"description"`
		URL     string    `json:"target_url"`
		Creator *userJSON `json:"creator"`
		Created time.Time `json:"created_at"`
	}
	// runsJSON are check runs, which only Apps can write. GitHub's own Actions are one.
	runsJSON struct {
		Runs []runJSON `json:"check_runs"`
	}
	runJSON struct {
		Name string `json:"name"`
		// Status is completed, or one of several that say that it is not. Conclusion is null
		// until then.
		Status     string `json:"status"`
		Conclusion string `json:"conclusion"`
		URL        string `json:"html_url"`
		Output     struct {
			Title   string `json:"title"`
			Summary string `json:"summary"`
			Text    string `json:"text"`
		} `json:"output"`
		App *struct {
			Slug string `json:"slug"`
		} `json:"app"`
	}
)

// Statuses returns the last status of each name, by name: those that were written as
// statuses, and check runs. Of two with one name the worse counts, and the run where both
// say the same.
func (c *Client) Statuses(ctx context.Context, repository string, commit git.OID) ([]forges.Status, error) {
	by := map[string]forges.Status{}
	err := c.statuses(ctx, repository, commit, func(j *statusJSON) {
		if _, newer := by[j.Context]; !newer { // the newest first
			by[j.Context] = forges.Status{Name: j.Context, Outcome: outcome(j.State), Text: j.Text, URL: j.URL, Author: c.account(j.Creator)}
		}
	})
	if err != nil {
		return nil, err
	}
	path, err := rest.Path(repository, "commits", commit, "check-runs")
	if err != nil {
		return nil, err
	}
	rank := map[forges.Outcome]int{forges.Failed: 0, forges.Pending: 1, forges.Passed: 2}
	err = rest.Shrink(page, func(size int) error { // to have taken some of them twice changes nothing
		return rest.List(ctx, c.Client, fmt.Sprintf("%s?filter=latest&per_page=%d", path, size), size, func(list runsJSON) (int, bool) {
			for i := range list.Runs {
				s := list.Runs[i].status()
				if other, both := by[s.Name]; !both || rank[s.Outcome] <= rank[other.Outcome] {
					by[s.Name] = s
				}
			}
			return len(list.Runs), false
		})
	})
	var out []forges.Status
	for _, s := range by {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b forges.Status) int { return cmp.Compare(a.Name, b.Name) })
	return out, err
}

// statuses calls each with the statuses of a commit, the newest first.
func (c *Client) statuses(ctx context.Context, repository string, commit git.OID, each func(*statusJSON)) error {
	if _, err := git.ParseOID(string(commit)); err != nil {
		return err
	}
	path, err := rest.Path(repository, "commits", commit, "statuses")
	if err != nil {
		return err
	}
	return rest.List(ctx, c.Client, fmt.Sprintf("%s?per_page=%d", path, page), page, func(list []statusJSON) (int, bool) {
		for i := range list {
			each(&list[i])
		}
		return len(list), false
	})
}

// outcome returns the meaning of a status. A state that we do not know has not passed.
func outcome(state string) forges.Outcome {
	switch state {
	case "success":
		return forges.Passed
	case "pending":
		return forges.Pending
	default:
		return forges.Failed
	}
}

// status returns a check run as a status. One that was skipped, and one that decides
// nothing, have passed, for GitHub as well. One that was cancelled, is too old, or waits for a
// person's click has found nothing wrong: another change would not help, and another run may.
func (j *runJSON) status() forges.Status {
	s := forges.Status{
		Name: j.Name, Outcome: forges.Pending, Text: j.Output.Title, URL: j.URL, Author: intake.Account{Kind: intake.Bot},
		Log: strings.TrimSpace(j.Output.Summary + "\n\n" + j.Output.Text),
	}
	if j.App != nil { // its account's number is not told
		s.Author.Login = j.App.Slug + "[bot]"
	}
	if j.Status == "completed" {
		switch j.Conclusion {
		case "success", "neutral", "skipped":
			s.Outcome = forges.Passed
		case "cancelled", "stale", "action_required":
			s.Outcome = forges.Pending
		default:
			s.Outcome = forges.Failed
		}
		s.Text = cmp.Or(s.Text, j.Conclusion)
	}
	return s
}

// maxStatus bounds the line of a status, in characters.
const maxStatus = 140

// SetStatus writes a status.
func (c *Client) SetStatus(ctx context.Context, repository string, commit git.OID, s *forges.Status) error {
	if _, err := git.ParseOID(string(commit)); err != nil {
		return err
	}
	path, err := rest.Path(repository, "statuses", commit)
	if err != nil {
		return err
	}
	state := map[forges.Outcome]string{forges.Passed: "success", forges.Pending: "pending", forges.Failed: "failure"}[s.Outcome]
	if state == "" {
		return fmt.Errorf("status %.100q: its outcome is %.50q", s.Name, s.Outcome)
	}
	text := []rune(s.Text)
	in := map[string]string{"context": s.Name, "state": state, "description": string(text[:min(len(text), maxStatus)])}
	if s.URL != "" {
		in["target_url"] = s.URL
	}
	return c.Call(ctx, http.MethodPost, path, in, nil)
}

type (
	// classicJSON is the protection of one branch, which is shown to those who may read the
	// administration.
	classicJSON struct {
		Statuses *struct {
			Strict   bool     `json:"strict"`
			Contexts []string `json:"contexts"`
		} `json:"required_status_checks"`
		Reviews *struct {
			DismissStale bool  `json:"dismiss_stale_reviews"`
			Count        int64 `json:"required_approving_review_count"`
		} `json:"required_pull_request_reviews"`
		Admins struct {
			Enabled bool `json:"enabled"`
		} `json:"enforce_admins"`
		Resolved struct {
			Enabled bool `json:"enabled"`
		} `json:"required_conversation_resolution"`
	}
	// ruleJSON is one of a ruleset of the repository or the organisation; several may say the
	// same.
	ruleJSON struct {
		Type       string `json:"type"`
		Parameters struct {
			DismissStale bool  `json:"dismiss_stale_reviews_on_push"`
			Resolved     bool  `json:"required_review_thread_resolution"`
			Count        int64 `json:"required_approving_review_count"`
			Strict       bool  `json:"strict_required_status_checks_policy"`
			Statuses     []struct {
				Context string `json:"context"`
			} `json:"required_status_checks"`
		} `json:"parameters"`
	}
)

// Protection returns all that GitHub demands of what comes to be on a branch: by the
// protection of the branch, and by rulesets. Who may go round the rules of a ruleset is not
// told, so that they hold for administrators only where the protection says so.
func (c *Client) Protection(ctx context.Context, repository string, branch git.Branch) (forges.Protection, error) {
	if err := rest.Branches(branch); err != nil {
		return forges.Protection{}, err
	}
	classic, err := rest.Path(repository, "branches", branch, "protection")
	if err != nil {
		return forges.Protection{}, err
	}
	var p forges.Protection
	var j classicJSON
	switch err := c.Call(ctx, http.MethodGet, classic, nil, &j); {
	case errors.Is(err, forges.ErrNotFound): // there is none for this branch
	case err != nil:
		return p, err
	default:
		p.Protected, p.AdminsToo, p.Resolved = true, j.Admins.Enabled, j.Resolved.Enabled
		if j.Statuses != nil {
			p.Statuses, p.UpToDate = literal(j.Statuses.Contexts), j.Statuses.Strict
		}
		if j.Reviews != nil {
			p.Approvals, p.DismissStale, p.Rejections = j.Reviews.Count, j.Reviews.DismissStale, true
		}
	}
	rules, err := rest.Path(repository, "rules", "branches")
	if err != nil {
		return p, err
	}
	err = rest.List(ctx, c.Client, fmt.Sprintf("%s/%s?per_page=%d", rules, url.PathEscape(string(branch)), page), page, func(list []ruleJSON) (int, bool) {
		for i := range list {
			list[i].add(&p)
		}
		return len(list), false
	})
	slices.Sort(p.Statuses)
	p.Statuses = slices.Compact(p.Statuses)
	return p, err
}

// add puts the demands of a rule to those that are there: the stricter of both counts.
func (j *ruleJSON) add(p *forges.Protection) {
	p.Protected = true
	switch r := &j.Parameters; j.Type {
	case "pull_request":
		p.Approvals, p.Rejections = max(p.Approvals, r.Count), true
		p.DismissStale, p.Resolved = p.DismissStale || r.DismissStale, p.Resolved || r.Resolved
	case "required_status_checks":
		p.UpToDate = p.UpToDate || r.Strict
		for _, s := range r.Statuses {
			p.Statuses = append(p.Statuses, literal([]string{s.Context})...)
		}
	}
}

// literal returns names as patterns. GitHub's are names alone, and one with a star would
// stand for others as well: each such character stands for any one here, which is the name
// itself and less than a star.
func literal(names []string) []string {
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, strings.ReplaceAll(n, "*", "?"))
	}
	return out
}
