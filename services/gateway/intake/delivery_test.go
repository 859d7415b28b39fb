package intake_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// Parts of a delivery, with what Gitea and GitHub have in common.
const (
	where    = `"repository": {"id": 3, "full_name": "shop/web"}, "sender": {"id": 7, "login": "ada"}`
	anIssue  = `"issue": {"number": 12, "title": "Fix", "body": "It crashes.", "state": "open", "user": {"id": 8, "login": "eve"}, "labels": [{"name": "forge"}]}`
	aComment = `"comment": {"body": "/forge run", "user": {"id": 7, "login": "ada"}}`
)

func TestReadDelivery(t *testing.T) {
	got, err := intake.ReadDelivery("work", []byte("{"+anIssue+", "+where+"}"), intake.Unsaid{Permission: intake.Write, Teams: []string{"core"}})
	if err != nil {
		t.Fatal(err)
	}
	by := got.Labels[0].By
	if got.Event != intake.Issue || got.Title != "Fix" || got.Repository != "shop/web" || got.RepositoryID != 3 || got.Number != 12 || got.Command != "" {
		t.Errorf("the issue is read as %+v", got)
	}
	if by.Login != "ada" || by.Kind != intake.Member || by.Permission != intake.Write || len(by.Teams) != 1 {
		t.Errorf("who labelled it is %+v", by)
	}
	if got.Author.Login != "eve" || got.Author.Kind != intake.Outsider || got.Author.Permission != "" {
		t.Errorf("the author has what is said of who asks: %+v", got.Author)
	}
	got, err = intake.ReadDelivery("work", []byte("{"+anIssue+", "+aComment+", "+where+"}"), intake.Unsaid{})
	if err != nil || got.Event != intake.Comment || got.Command != intake.Run || got.Commander.Login != "ada" || got.Commander.Kind != intake.Outsider {
		t.Errorf("the comment is read as %+v, %v", got, err)
	}
	program := strings.Replace(where, `"login": "ada"`, `"login": "ada", "type": "Bot"`, 1)
	got, err = intake.ReadDelivery("work", []byte("{"+anIssue+", "+program+"}"), intake.Unsaid{Permission: intake.Admin})
	if err != nil || got.Labels[0].By.Kind != intake.Bot {
		t.Errorf("a program is read as %+v, %v", got.Labels, err)
	}
}

func TestNoDelivery(t *testing.T) {
	for why, data := range map[string]string{
		"no delivery":              `rules:`,
		"iid in object_attributes": `{"object_kind": "issue"}`,
		"about no issue":           `{` + where + `}`,
		"pull request":             "{" + strings.Replace(anIssue, `"number"`, `"pull_request": {"merged": false}, "number"`, 1) + ", " + where + "}",
		"closed":                   "{" + strings.Replace(anIssue, `"open"`, `"closed"`, 1) + ", " + where + "}",
		"owner/name":               "{" + anIssue + ", " + strings.Replace(where, "shop/web", "../web", 1) + "}",
		"has no command":           "{" + anIssue + ", " + strings.Replace(aComment, "/forge run", "> /forge run", 1) + ", " + where + "}",
		"is not edited":            `{"action": "edited", ` + anIssue + ", " + aComment + ", " + where + "}",
		"closest is":               "{" + anIssue + ", " + strings.Replace(aComment, "/forge run", "/forge rum", 1) + ", " + where + "}",
		"run alone; cancel":        "{" + anIssue + ", " + strings.Replace(aComment, "/forge run", "/forge cancel", 1) + ", " + where + "}",
		"not of the account": "{" + anIssue + ", " + strings.Replace(aComment, `"id": 7`, `"id": 9`, 1) +
			", " + where + "}",
	} {
		if _, err := intake.ReadDelivery("work", []byte(data), intake.Unsaid{}); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("the error of what is %q is %v", why, err)
		}
	}
	if _, err := intake.ReadDelivery("../x", []byte("{"+anIssue+", "+where+"}"), intake.Unsaid{}); err == nil {
		t.Error("a forge may have any name")
	}
}

// FuzzDelivery: whatever a webhook sends is a trigger of an issue with a
// number, or an error with a reason.
func FuzzDelivery(f *testing.F) {
	f.Add("work", []byte("{"+anIssue+", "+where+"}"))
	f.Add("work", []byte("{"+anIssue+", "+aComment+", "+where+"}"))
	f.Add("work", []byte(labIssue))
	f.Add("work", []byte(labNote))
	f.Add("..", []byte(`{"object_kind": "issue"}`))
	f.Add("work", []byte(`{"issue": {"number": -1}, "repository": {"id": 1}}`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		got, err := intake.ReadDelivery(name, data, intake.Unsaid{})
		if err == nil && got.Number <= 0 || err != nil && err.Error() == "" {
			t.Errorf("%q is %+v, %v", data, got, err)
		}
	})
}
