package github_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// TestHint: what happens leads to the issue, the pull request or the commit that it is about, and
// to nothing if it is about anything else; names in it are checked before they become a path.
func TestHint(t *testing.T) {
	c := clientOf(t, "https://github.com", newClock())
	const anIssue = `"number": 7, "title": "T", "body": "B", "updated_at": "2026-05-04T03:02:01Z"`
	const commit = "a466e452e239ae3ae94b6b16ce3ca92377690546"
	issue := forges.Hint{Repository: "shop/web", RepositoryID: 3, Number: 7, Text: intake.Hash("T", "B")}
	issue.At = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	pull := forges.Hint{Repository: "shop/web", RepositoryID: 3, Number: 7, Pull: true}
	of := forges.Hint{Repository: "shop/web", RepositoryID: 3, Commit: commit}
	for body, want := range map[string]forges.Hint{
		`"action": "labeled", "issue": {` + anIssue + `}`:                       issue,
		`"action": "created", "issue": {` + anIssue + `}, "comment": {"id": 1}`: issue,
		`"action": "created", "issue": {"number": 7, "pull_request": {}}`:       pull,
		`"action": "submitted", "pull_request": {"number": 7}, "review": {}`:    pull,
		`"action": "synchronize", "number": 7, "pull_request": {"number": 7}`:   pull,
		`"sha": "` + commit + `", "context": "ci", "state": "success"`:          of,
		`"action": "completed", "check_run": {"head_sha": "` + commit + `"}`:    of,
		`"action": "completed", "check_suite": {"head_sha": "` + commit + `"}`:  of,
		`"sha": "../../issues", "state": "success"`:                             {},
		`"issue": {"number": -7}`:                                               {},
		`"zen": "x"`:                                                            {},
	} {
		if got, err := c.Hint("x", []byte(`{`+body+`, "repository": {"id": 3, "full_name": "shop/web"}}`)); got != want || err != nil {
			t.Errorf("%s leads to %+v, %v", body, got, err)
		}
	}
	good := `{"issue": {"number": 7}, "repository": {"id": 3, "full_name": "shop/web"}}`
	for change, fails := range map[[2]string]bool{{`"id": 3`, `"id": 0`}: false, {"shop/web", "../web"}: true, {"{", "["}: true, {"7", `"7"`}: true} {
		if got, err := c.Hint("issues", []byte(strings.Replace(good, change[0], change[1], 1))); (err != nil) != fails || got != (forges.Hint{}) {
			t.Errorf("%v: %+v, %v", change, got, err)
		}
	}
}

// FuzzHint: whatever a delivery holds, it leads to a repository that can be asked for, or nowhere.
func FuzzHint(f *testing.F) {
	f.Add([]byte(`{"issue": {"number": 7, "title": "T"}, "repository": {"id": 3, "full_name": "shop/web"}}`))
	f.Add([]byte(`{"check_run": {"head_sha": "a466e452e239ae3ae94b6b16ce3ca92377690546"}, "repository": {"id": 3, "full_name": "shop/web"}}`))
	c := clientOf(f, "https://github.com", newClock())
	f.Fuzz(func(t *testing.T, body []byte) {
		h, err := c.Hint("issues", body)
		nowhere := h.Number <= 0 && h.Commit == "" || h.Number < 0 || h.RepositoryID <= 0
		if err == nil && h.Repository != "" && (intake.CheckRepository(h.Repository) != nil || nowhere) {
			t.Errorf("%q leads to %+v", body, h)
		}
	})
}
