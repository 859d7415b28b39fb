package intake_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// A delivery of GitLab about an issue, and one about a comment on it.
const (
	labIssue = `{"object_kind": "issue", "event_type": "issue", "user": {"id": 7, "username": "ada"}, ` +
		`"project": {"id": 3, "path_with_namespace": "shop/front/web"}, ` +
		`"object_attributes": {"iid": 12, "title": "Fix", "description": "It crashes.", "state": "opened", "author_id": 8, "confidential": false, ` +
		`"labels": [{"id": 1, "title": "forge"}], "action": "update"}}`
	labNote = `{"object_kind": "note", "event_type": "note", "user": {"id": 7, "username": "ada"}, ` +
		`"project": {"id": 3, "path_with_namespace": "shop/front/web"}, ` +
		`"object_attributes": {"id": 5, "note": "/forge run", "noteable_type": "Issue", "author_id": 7, "system": false, "internal": false, "action": "create"}, ` +
		`"issue": {"iid": 12, "title": "Fix", "description": "It crashes.", "state": "opened", "author_id": 8, "labels": []}}`
)

// TestReadDeliveryOfGitLab: what GitLab sends about an issue in a group of a
// group, and about a comment on it, is read as what other forges send.
func TestReadDeliveryOfGitLab(t *testing.T) {
	got, err := intake.ReadDelivery("lab", []byte(labIssue), intake.Unsaid{Permission: intake.Write})
	if err != nil || got.Event != intake.Issue || got.Title != "Fix" || got.Repository != "shop/front/web" || got.RepositoryID != 3 || got.Number != 12 ||
		len(got.Labels) != 1 || got.Labels[0].Name != "forge" || got.Labels[0].By.Login != "ada" || got.Labels[0].By.Kind != intake.Member || got.Author.ID != 8 {
		t.Errorf("the issue is read as %+v, %v", got, err)
	}
	got, err = intake.ReadDelivery("lab", []byte(labNote), intake.Unsaid{})
	if err != nil || got.Event != intake.Comment || got.Command != intake.Run || got.Commander.Login != "ada" || got.Body != "It crashes." {
		t.Errorf("the comment is read as %+v, %v", got, err)
	}
	for _, c := range []struct{ body, old, now, want string }{
		{labIssue, `"confidential": false`, `"confidential": true`, "it is confidential"},
		{labNote, `"internal": false`, `"internal": true`, "it is confidential"},
		{labNote, `"system": false`, `"system": true`, "GitLab itself wrote this comment"},
		{labNote, `"Issue"`, `"MergeRequest"`, "this is a merge request"},
		{labNote, `"action": "create"`, `"action": "update"`, "is not edited"},
		{labNote, `"author_id": 7`, `"author_id": 9`, "not of the account"},
		{labNote, `/forge run`, `> /forge run`, "has no command"},
		{labIssue, `"opened"`, `"closed"`, "the issue is closed"},
		{labIssue, `shop/front/web`, `shop/../web`, "project.path_with_namespace has to be"},
		{labIssue, `"iid": 12`, `"iid": 0`, "about no issue"},
		{labIssue, `"object_kind": "issue"`, `"object_kind": "pipeline"`, "about no issue"},
		{labIssue, `"iid": 12`, `"iid": "12"`, "no delivery"},
	} {
		body := []byte(strings.Replace(c.body, c.old, c.now, 1))
		if _, err := intake.ReadDelivery("lab", body, intake.Unsaid{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.now, err, c.want)
		}
	}
}

// TestNested: groups in groups are a name, and nothing that a path or a URL
// would read as anything else is.
func TestNested(t *testing.T) {
	for _, name := range []string{"shop/web", "shop/front/web", "a" + strings.Repeat("/b", 20), "Shop.x/_y-1"} {
		if err := intake.CheckNested(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{
		"", "web", "shop/", "/web", "shop//web", "shop/../web", "shop/front/..", "shop%2Fweb/x", "shop/web?x", "shop/we b", "shop/web\r\nHost: x", "shop/ä",
		"a" + strings.Repeat("/b", 21), "shop/" + strings.Repeat("x", 101),
	} {
		if err := intake.CheckNested(name); err == nil {
			t.Errorf("%q is one", name)
		}
		if strings.Count(name, "/") == 1 && intake.CheckRepository(name) == nil {
			t.Errorf("%q is a repository", name)
		}
	}
	if intake.CheckRepository("shop/front/web") == nil {
		t.Error("other forges have groups in groups")
	}
}
