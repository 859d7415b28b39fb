package gitlab_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
)

// TestNotesOfRemovals: a merge request that GitLab has taken out is told as
// that, although GitLab writes its note in the name of whoever put it in; one
// that a person took out is told with the person.
func TestNotesOfRemovals(t *testing.T) {
	note := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var out any = map[string]any{"id": 1, "iid": 7, "path_with_namespace": "acme/web", "state": "opened"}
		if strings.HasSuffix(r.URL.Path, "/notes") {
			out = []any{map[string]any{"id": 5, "system": true, "body": note, "author": map[string]any{"id": 9, "username": "forge"}}}
		}
		if err := json.NewEncoder(w).Encode(out); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	c := clientOf(t, server.URL)
	for body, want := range map[string]*forges.Removal{
		"removed this merge request from the merge train because pipeline did not succeed":                   {Cause: forges.CauseChecks},
		"removed this merge request from the merge train because the merge request cannot be merged":         {Cause: forges.CauseOther},
		"aborted the automatic merge because there is a conflict":                                            {Cause: forges.CauseConflict},
		"aborted automatic add to merge train because the merge request cannot be merged.":                   {Cause: forges.CauseOther},
		"removed this merge request from the merge train":                                                    {Cause: forges.CauseOther, By: "forge"},
		"canceled the automatic merge":                                                                       {Cause: forges.CauseOther, By: "forge"},
		"cancelled automatic add to merge train":                                                             {Cause: forges.CauseOther, By: "forge"},
		"aborted automatic add to merge train because source branch was updated":                             nil,
		"enabled automatic add to merge train when checks pass":                                              nil,
		"enabled an automatic merge when all merge checks for 7c6d1f37a4e8b1a2c3d4e5f60718293a4b5c6d7e pass": nil,
	} {
		note = body
		q, err := c.Queue(wait.Context(t), "acme/web", 7, "main")
		if err != nil || (q.Out == nil) != (want == nil) || want != nil && (q.Out.Cause != want.Cause || q.Out.By != want.By) {
			t.Errorf("%s: %+v, %v", body, q.Out, err)
		}
	}
}

// TestUnchangedAnswers: what is asked for again is asked by its ETag, and read
// as it was where GitLab says that it is.
func TestUnchangedAnswers(t *testing.T) {
	title, sent, same := "T", 0, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := map[string]any{"id": 1, "iid": 7, "project_id": 1, "path_with_namespace": "acme/web", "state": "opened", "title": title}
		tag := `W/"` + title + `"`
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			same++
			w.WriteHeader(http.StatusNotModified)
			return
		}
		sent++
		if err := json.NewEncoder(w).Encode(out); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	c := clientOf(t, server.URL)
	for n, want := range []string{"T", "T", "U", "U"} {
		title = want
		i, err := c.Issue(wait.Context(t), "acme/web", 7)
		if err != nil || i.Title != want {
			t.Errorf("look %d: %q, %v", n, i.Title, err)
		}
	}
	if sent != 4 || same != 5 { // the project, whose number is asked for first, and the issue
		t.Errorf("%d answers were sent, and %d were as before", sent, same)
	}
}
