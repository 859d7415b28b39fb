package gitlab_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/forgedir/schematest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/gitlab"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// contract is the part of GitLab's official client that is about what ours
// asks: of each operation its query, and the types of its body and its answer,
// with those fields that were seen. makeContract makes it.
type contract struct {
	// Source says of which types it is a part.
	Source  string              `json:"source"`
	Queries map[string][]string `json:"queries"`
	// Schemas are those of bodies and answers, by <operation> in or out, and of
	// deliveries, by their event.
	Schemas map[string]any `json:"schemas"`
}

const contractFile = "testdata/contract.json"

// operation has the names of the client's types for the query, the body and the
// answer of an operation. A list begins with [].
type operation struct{ query, in, out string }

// operations are those that are asked for, by their method and path below a
// project, or below the API.
var operations = map[string]operation{
	"GET /user":                           {"", "", "User"},
	"GET /users":                          {"ListUsersOptions", "", "[]User"},
	"GET /users/*":                        {"", "", "User"},
	"GET /projects/*":                     {"", "", "Project"},
	"GET /members/all/*":                  {"", "", "ProjectMember"},
	"GET /labels/*":                       {"", "", "Label"},
	"POST /labels":                        {"", "CreateLabelOptions", "Label"},
	"GET /personal_access_tokens/self":    {"", "", "PersonalAccessToken"},
	"GET /groups/*":                       {"", "", "Group"},
	"GET /groups/*/members/all/*":         {"", "", "GroupMember"},
	"GET /repository/files/*":             {"GetFileOptions", "", "File"},
	"GET /issues":                         {"ListProjectIssuesOptions", "", "[]Issue"},
	"GET /issues/*":                       {"", "", "Issue"},
	"PUT /issues/*":                       {"", "UpdateIssueOptions", "Issue"},
	"GET /issues/*/resource_label_events": {"ListLabelEventsOptions", "", "[]LabelEvent"},
	"GET /issues/*/notes":                 {"ListIssueNotesOptions", "", "[]Note"},
	"POST /issues/*/notes":                {"", "CreateIssueNoteOptions", "Note"},
	"POST /merge_requests/*/cancel_merge_when_pipeline_succeeds": {"", "", "MergeRequest"},
	"POST /merge_trains/merge_requests/*":                        {"", "AddMergeRequestToMergeTrainOptions", "[]MergeTrain"},
	"POST /merge_requests/*/discussions/*/notes":                 {"", "AddMergeRequestDiscussionNoteOptions", "Note"},
	"PUT /issues/*/notes/*":                                      {"", "UpdateIssueNoteOptions", "Note"},
	"POST /issues/*/notes/*/award_emoji":                         {"", "CreateAwardEmojiOptions", "AwardEmoji"},
	"GET /issues/*/notes/*/award_emoji":                          {"ListAwardEmojiOptions", "", "[]AwardEmoji"},
	"GET /merge_requests":                                        {"ListProjectMergeRequestsOptions", "", "[]BasicMergeRequest"},
	"POST /merge_requests":                                       {"", "CreateMergeRequestOptions", "MergeRequest"},
	"GET /merge_requests/*":                                      {"", "", "MergeRequest"},
	"PUT /merge_requests/*":                                      {"", "UpdateMergeRequestOptions", "MergeRequest"},
	"PUT /merge_requests/*/merge":                                {"", "AcceptMergeRequestOptions", "MergeRequest"},
	"GET /merge_requests/*/approvals":                            {"", "", "MergeRequestApprovals"},
	"GET /merge_requests/*/reviewers":                            {"", "", "[]MergeRequestReviewer"},
	"GET /merge_requests/*/discussions":                          {"ListMergeRequestDiscussionsOptions", "", "[]Discussion"},
	"GET /merge_requests/*/versions":                             {"GetMergeRequestDiffVersionsOptions", "", "[]MergeRequestDiffVersion"},
	"GET /merge_requests/*/notes":                                {"ListMergeRequestNotesOptions", "", "[]Note"},
	"POST /merge_requests/*/notes":                               {"", "CreateMergeRequestNoteOptions", "Note"},
	"PUT /merge_requests/*/notes/*":                              {"", "UpdateMergeRequestNoteOptions", "Note"},
	"GET /repository/branches/*":                                 {"", "", "Branch"},
	"GET /repository/merge_base":                                 {"MergeBaseOptions", "", "Commit"},
	"GET /repository/commits/*":                                  {"", "", "Commit"},
	"GET /repository/commits/*/statuses":                         {"GetCommitStatusesOptions", "", "[]CommitStatus"},
	"POST /statuses/*":                                           {"", "SetCommitStatusOptions", "CommitStatus"},
	"GET /approvals":                                             {"", "", "ProjectApprovals"},
	"GET /approval_rules":                                        {"GetProjectApprovalRulesListsOptions", "", "[]ProjectApprovalRule"},
}

// documented are fields that GitLab's documentation or source has and its
// client has not, by the operation whose answer they are in.
var documented = map[string][]string{
	"GET /members/all/*":             {"membership_state"}, // doc/api/project_members.md
	"GET /groups/*/members/all/*":    {"membership_state"}, // doc/api/group_members.md
	"GET /merge_requests/*/versions": {"patch_id_sha"},     // lib/api/entities/merge_request_diff.rb
}

// events has the client's type of each delivery.
var events = map[string]string{
	"Issue Hook": "IssueEvent", "Note Hook": "IssueCommentEvent", "Note Hook of a merge request": "MergeCommentEvent", "Merge Request Hook": "MergeEvent",
	"Pipeline Hook": "PipelineEvent", "Job Hook": "JobEvent", "Push Hook": "PushEvent",
}

// find returns the operation of an exchange; nil if there is none.
func find(e *forgetest.Exchange) (string, *operation) {
	parts := strings.Split(strings.TrimPrefix(e.Path, "/"), "/")
	if parts[0] == "projects" && len(parts) > 2 {
		parts = parts[2:]
	}
	for name, op := range operations {
		method, path, _ := strings.Cut(name, " /")
		if want := strings.Split(path, "/"); method == e.Method && slices.EqualFunc(want, parts, func(a, b string) bool { return a == "*" || a == b }) {
			return name, &op
		}
	}
	return "", nil
}

// exchanges has the client ask all that it can ask, and returns what was said.
func exchanges(t *testing.T) []forgetest.Exchange {
	t.Helper()
	w := newWorld(t)
	ctx := wait.Context(t)
	var mu sync.Mutex
	var list []forgetest.Exchange
	w.fake.Lab.Change(func(s *forgetest.LabState) {
		s.Record = func(e forgetest.Exchange) {
			mu.Lock()
			defer mu.Unlock()
			list = append(list, e)
		}
	})
	w.as("ada", "POST", "/repos/"+repo+"/issues/1/labels", `{"labels": ["forge"]}`)
	w.as("root1", "POST", "/repos/"+repo+"/contents/rules.yaml", `{"branch": "main", "message": "m", "content": "cnVsZXM6IFtdCg=="}`)
	w.as("root1", "POST", "/repos/"+repo+"/branch_protections", `{"rule_name": "main", "dismiss_stale_approvals": true}`)
	head := w.commit("a.txt", true)
	_, e1 := w.Self(ctx)
	_, e2 := w.Issue(ctx, repo, 1)
	_, e3 := w.Account(ctx, repo, "ada")
	_, e4 := w.Changed(ctx, repo, time.Unix(0, 0))
	p, e5 := w.OpenPull(ctx, repo, "forge/a", "main", forges.PullText{Title: "T", Body: "B", Draft: true, Labels: []string{"forge"}})
	_, e12 := gitlab.Lacks(ctx, w.Client, repo)
	_, e13 := gitlab.MakeLabel(ctx, w.Client, repo, "agents")
	errs := []error{e1, e2, e3, e4, e5, e12, e13}
	w.fake.Team("root1/core", false, "ada")
	_, err := w.File(ctx, repo, "rules.yaml")
	_, err2 := w.InTeam(ctx, repo, intake.Account{ID: 3, Login: "ada"}, "root1/core")
	_, err3 := w.InTeam(ctx, repo, intake.Account{ID: 4, Login: "eve"}, "root1/core")
	errs = append(errs, err, err2, err3)
	for _, on := range []forges.Topic{forges.OfIssue(1), forges.OfPull(p.Number)} {
		said, err := w.Say(ctx, repo, on, "x")
		_, err2 := w.Comments(ctx, repo, on, time.Unix(0, 0))
		errs = append(errs, err, err2, w.Edit(ctx, repo, on, said.ID, "y"))
		if !on.Pull {
			errs = append(errs, w.React(ctx, repo, on, said.ID, forges.Done), w.React(ctx, repo, on, said.ID, forges.Done))
		}
	}
	for _, o := range []forges.Outcome{forges.Pending, forges.Passed, forges.Failed} {
		errs = append(errs, w.SetStatus(ctx, repo, head, &forges.Status{Name: "pfl-forge/verify", Outcome: o, Text: "t", URL: "https://example.com"}))
	}
	w.as("ada", "POST", "/repos/"+repo+"/pulls/2/reviews",
		`{"event": "APPROVED", "body": "b", "comments": [{"path": "a.txt", "body": "why?", "new_position": 1}]}`)
	reviews, e6 := w.Reviews(ctx, repo, 2)
	for _, r := range reviews {
		for _, t := range r.Threads {
			errs = append(errs, w.Answer(ctx, repo, 2, t.Topic, "Reworked."))
		}
	}
	errs = append(errs, w.EditPull(ctx, repo, 2, forges.PullText{Title: "ready", Body: "B"}))
	for _, train := range []bool{true, false} { // what is in the way of the second is that there is no status yet
		w.fake.Queues.On(repo, train, false)
		w.fake.Lab.Set(repo, forgetest.Project{Pipelines: !train})
		_, err := w.Queue(ctx, repo, 2, "main")
		errs = append(errs, err, w.Enqueue(ctx, repo, 2, "main", head), w.Dequeue(ctx, repo, 2))
	}
	w.fake.Lab.Set(repo, forgetest.Project{})
	_, e7 := w.Protection(ctx, repo, "main")
	_, e8 := w.Statuses(ctx, repo, head)
	_, e9 := w.Behind(ctx, repo, head, p.BaseHead)
	errs = append(errs, e6, e7, e8, e9, w.EditPull(ctx, repo, 2, forges.PullText{Title: "U", Body: "C", Labels: []string{"forge"}}), w.ClosePull(ctx, repo, 2),
		w.ReopenPull(ctx, repo, 2), w.Merge(ctx, repo, 2, head, forges.FastForward), w.CloseIssue(ctx, repo, 1))
	_, e10 := w.ChangedPulls(ctx, repo, "bot", time.Unix(0, 0))
	_, e11 := w.FindPull(ctx, repo, "forge/a", "main")
	if err := errors.Join(append(errs, e10, e11)...); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	return list
}

// payload is one of testdata/payloads.json: a delivery, and what it leads to.
type payload struct {
	Event string
	Body  json.RawMessage
	Hint  struct {
		Number int64
		Pull   bool
		Commit string
	}
}

// payloads reads them.
func payloads(t *testing.T) (list []payload) {
	t.Helper()
	data, err := os.ReadFile("testdata/payloads.json")
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestContract: what the client sends, and what the fake answers, is what
// GitLab's official client sends and reads, field by field: each that is there
// is known and has its type. So is each delivery that is read.
func TestContract(t *testing.T) {
	list, deliveries := exchanges(t), payloads(t)
	told := map[string][]any{}
	for _, p := range deliveries {
		var v any
		if err := json.Unmarshal(p.Body, &v); err != nil {
			t.Fatal(err)
		}
		told[p.Event] = append(told[p.Event], v)
	}
	if dir := os.Getenv("PFL_FORGE_GITLAB_CLIENT"); dir != "" {
		makeContract(t, dir, list, told)
	}
	data, err := os.ReadFile(contractFile)
	if err != nil {
		t.Fatal(err)
	}
	var c contract
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	place := func(name string) string {
		return "/schemas/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	var names []string
	for name := range c.Schemas {
		names = append(names, place(name))
	}
	schemas := schematest.CompileIn(t, data, names...)
	check := func(name string, text []byte) {
		t.Helper()
		if s := schemas[place(name)]; s == nil {
			t.Errorf("%s has no schema for %s", name, text)
		} else if err := schematest.Validate(s, text); err != nil {
			t.Errorf("%s: %v in %s", name, err, text)
		}
	}
	seen := map[string]bool{}
	for i := range list {
		e := &list[i]
		name, op := find(e)
		if op == nil {
			t.Errorf("the client of GitLab has no %s %s", e.Method, e.Path)
		}
		if op == nil || e.Status >= 300 {
			continue
		}
		seen[name] = true
		query, err := url.ParseQuery(e.Query)
		if err != nil {
			t.Fatal(err)
		}
		for field := range query {
			if !slices.Contains(c.Queries[name], field) {
				t.Errorf("%s has the parameter %s", name, field)
			}
		}
		if op.in != "" {
			check(name+" in", e.In)
		}
		check(name+" out", without(t, e.Out, documented[name]))
	}
	if len(seen) != len(operations) {
		t.Errorf("%d of %d operations were asked for", len(seen), len(operations))
	}
	for _, p := range deliveries {
		check(p.Event, p.Body)
	}
}

// without returns an answer without some fields.
func without(t *testing.T, text []byte, fields []string) []byte {
	t.Helper()
	if len(fields) == 0 {
		return text
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, o := range list {
		for _, f := range fields {
			delete(o.(map[string]any), f)
		}
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPayloads: each delivery leads to what it is about.
func TestPayloads(t *testing.T) {
	c := clientOf(t, "https://gitlab.com")
	seen := map[string]bool{}
	for _, p := range payloads(t) {
		got, err := c.Hint(p.Event, p.Body)
		if err != nil || got.Number != p.Hint.Number || got.Pull != p.Hint.Pull || string(got.Commit) != p.Hint.Commit || got.Repository != "shop/front/web" ||
			got.RepositoryID != 3 {
			t.Errorf("%s leads to %+v, %v", p.Body, got, err)
		}
		seen[p.Event] = true
	}
	if len(seen) != len(events) {
		t.Errorf("there are %v", seen)
	}
}
