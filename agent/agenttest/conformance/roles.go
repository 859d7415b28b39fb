package conformance

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
)

type list = []any

// roleScript has the model's answer in a role, and before it, if wrong is not nil, an
// answer that has to be refused.
type roleScript struct{ wrong, answer object }

// roleScripts has few wrong answers, because each costs one more start of the CLI: one
// for a role without tools, whose answer only the role's check refuses, and one for a
// role with all tools. repairsAnswer has more.
var roleScripts = map[agent.Role]roleScript{
	agent.RoleAnalyze:   {answer: plan()},
	agent.RoleArchitect: {answer: plan()},
	agent.RoleIntake: {answer: object{
		"status": "accepted", "task": "Greet the world.", "criteria": list{"greeting.txt says world"}, "type": "feature", "risk": "low",
	}},
	agent.RoleImplement: {answer: object{"summary": "greets the world"}},
	agent.RoleExecute:   {wrong: object{"status": "perhaps"}, answer: execution},
	agent.RoleReview: {answer: object{
		"requirements": list{met()}, "verdict": "rejected", "issues": list{"too polite"}, "suggestions": list{"be brief"},
	}},
	agent.RoleJudge: {wrong: verdict(2), answer: verdict(0.9)},
	agent.RoleReflect: {answer: object{"proposals": list{
		object{"title": "Test the greeting", "body": "Nothing tests it.", "type": "test", "risk": "low"},
	}}},
	agent.RoleSummarize: {answer: object{
		"approach": "appended a line", "result": "success", "reason": "the line is there", "artifacts": list{"greeting.txt"},
		"knowledge": list{object{"type": "codebase", "category": "layout", "content": "greetings are text", "confidence": "high"}},
	}},
	agent.RoleAbstract: {answer: object{"skills": list{
		object{"name": "greetings", "description": "Use when a greeting changes.", "body": "Keep it short."},
	}}},
	agent.RoleAudit: {answer: object{"summary": "one finding", "areas": list{
		object{"name": "tests", "summary": "none", "findings": list{
			object{"title": "No test", "detail": "Nothing looks at the greeting.", "severity": "low", "evidence": evidence("greeting.txt")},
		}},
		area("design"), area("conventions"), area("debt"), area("documentation"),
	}}},
	agent.RoleObserve: {answer: object{"patterns": list{
		object{"name": "greets", "description": "Texts are greetings.", "evidence": evidence("greeting.txt", "CLAUDE.md")},
	}}},
}

// plan returns an analysis with one task.
func plan() object {
	return object{"type": "feature", "risk": "low", "tasks": list{
		object{
			"name": "greet", "title": "Greet the world", "plan": "Append a line.", "relevant_files": list{"greeting.txt"}, "complexity": "low",
			"requirements": list{"The greeting is to the world"},
		},
	}}
}

// execution is a valid answer of an execute call.
var execution = object{"status": "success", "output": "greets the world", "semantic_metadata": object{"approach": "appended a line"}}

// verdict returns a judgment; a confidence above 1 is refused by the role's check.
func verdict(confidence float64) object {
	claim := met()
	claim["confidence"] = confidence
	return object{"overall_reason": "it is there", "is_complete": true, "criteria": list{claim}}
}

// area returns an audit's area without findings.
func area(name string) object {
	return object{"name": name, "summary": "looked at all files", "findings": list{}}
}

// evidence returns evidence of these files.
func evidence(files ...string) list {
	var out list
	for _, f := range files {
		out = append(out, object{"type": "file", "ref": f})
	}
	return out
}

// runsRoles has, in each role, a model that tries to read and write before it answers.
func runsRoles(t *testing.T, b *Backend) {
	for _, role := range agent.Roles() {
		d, ok := roleScripts[role]
		if !ok {
			t.Fatalf("%s has no answer here", role)
		}
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			runsRole(t, b, role, d)
		})
	}
}

// runsRole makes a role's call in a hostile repository, with the tools, schema and
// directory that the services give to the role.
func runsRole(t *testing.T, b *Backend, role agent.Role, d roleScript) {
	t.Helper()
	// The state directory is in another repository, as in local mode, where the CLI
	// must not look for settings.
	repository, outer := checkout(t), checkout(t)
	tries := []agenttest.Step{
		func(r agenttest.Request) agenttest.Reply {
			reply := b.read(filepath.Join(repository, "greeting.txt"))(r)
			reply.Text, reply.Usage = "I look \x1b[31maround.", agenttest.Usage{Input: 1000, Output: 30, CacheRead: 200}
			return reply
		},
		// A read-only role must not be able to commit, nor to write into .git, which a
		// status of the checkout does not show.
		b.Shell("cd " + repository + " && echo x > planted && git add planted && git commit -q -m planted"),
		b.Shell("touch " + filepath.Join(repository, ".git", "planted")),
	}
	// A tool that writes without a shell takes another way than the sandbox of
	// commands.
	if b.Write != nil {
		tries = append(tries, b.Write(filepath.Join(repository, "written")))
	}
	steps := slices.Clone(tries)
	if d.wrong != nil {
		steps = append(steps, b.Answer(d.wrong))
	}
	x := newFixture(t, b, role, append(steps, b.Answer(d.answer))...)
	x.call.Dir, x.call.StateDir = repository, filepath.Join(outer, ".forge") // as in local mode
	look := x.plantTraps()
	spec := agent.Spec(role)
	switch {
	case spec.Tools == agent.ToolsNone:
		x.call.Tools, x.call.Dir = nil, ""
	case role == agent.RoleReview: // a project may configure any tools for read-only roles
		x.call.Tools = []string{"Bash", "Read", "Write", "Edit"}
	}
	// Nothing may appear in the outer repository.
	before := gitDirEntries(t, outer)
	out := x.mustRun()
	look()
	x.mustAnswer(out, &spec, d.answer)
	x.mustAddUp(out.Usage)
	if out.Session != x.call.Session.ID {
		t.Errorf("session %q, want %q", out.Session, x.call.Session.ID)
	}
	if diff := cmp.Diff(before, gitDirEntries(t, outer)); diff != "" {
		t.Errorf("the repository around it was changed:\n%s", diff)
	}

	all := x.model.Requests("main")
	// No request but the steps and the answer: a CLI must not ask for a title or a
	// summary.
	if len(all) != len(steps)+1 {
		t.Fatalf("the model was asked %d times, want %d", len(all), len(steps)+1)
	}
	if spec.Tools == agent.ToolsNone {
		x.mustSeeNothing(all)
	} else {
		x.mustSee(all, !spec.Judges)
	}
	x.mustWrite(repository, spec.Tools == agent.ToolsWrite)
}

// read replies with the CLI's way to read a file.
func (b *Backend) read(path string) agenttest.Step {
	if b.Read == nil {
		return b.Shell("cat " + path)
	}
	return b.Read(path)
}

// mustAnswer compares an answer with the model's last one, and checks that every
// request had the schema's fields and both prompts.
func (x *fixture) mustAnswer(out agent.Outcome, spec *agent.RoleSpec, want object) {
	x.Helper()
	var got object
	err := json.Unmarshal(out.Answer, &got)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		x.Errorf("the answer is %s, %v\n%s", out.Answer, err, diff)
	}
	// The answer is one that the services accept.
	if err := spec.Check(out.Answer); err != nil {
		x.Error(err)
	}
	var schema struct{ Required []string }
	if err := json.Unmarshal(spec.Schema, &schema); err != nil {
		x.Fatal(err)
	}
	// A CLI without an option for the schema has it in the prompt.
	for _, r := range x.model.Requests("main") {
		for _, s := range append(schema.Required, "FIRST-PROMPT", "SYSTEM-PROMPT", "You are the "+string(spec.Role)) {
			if !strings.Contains(string(r.Body), s) {
				x.Errorf("request %d lacks %q", r.N, s)
			}
		}
	}
}

// mustSee checks that a call had the repository's conventions, if they instruct it, that it
// could read files, and that its events are complete.
func (x *fixture) mustSee(all []agenttest.Request, conventions bool) {
	x.Helper()
	if strings.Contains(string(all[0].Body), "REPOSITORY-CONVENTIONS") != conventions {
		x.Errorf("whether the first request has the repository's conventions is not %t", conventions)
	}
	// The second request has the result of the first tool.
	if read := all[1].LastResult; !strings.Contains(read, "hello, GREETING") {
		x.Errorf("it cannot read: %s", read)
	}
	x.mustReportEvents()
}

// mustSeeNothing checks that a call without tools was offered none, and that tools
// which the model used nevertheless showed it nothing.
func (x *fixture) mustSeeNothing(all []agenttest.Request) {
	x.Helper()
	for _, r := range all {
		for _, tool := range r.Tools {
			if !slices.Contains(x.Harmless, tool) {
				x.Errorf("request %d offers %s", r.N, tool)
			}
		}
		for _, s := range []string{"hello, GREETING", "REPOSITORY-CONVENTIONS"} {
			if strings.Contains(string(r.Body), s) {
				x.Errorf("request %d shows the repository: %s", r.N, s)
			}
		}
	}
}

// mustWrite checks that the model's attempts to write succeeded only if the role may.
func (x *fixture) mustWrite(repository string, may bool) {
	x.Helper()
	status, commits := "", "2" // including that of plantTraps
	if may {
		commits = "3"
		if x.Write != nil {
			status = "?? written"
		}
	}
	if got := git(x, repository, "status", "--porcelain"); got != status {
		x.Errorf("the status of the checkout is %q, want %q", got, status)
	}
	if got := git(x, repository, "rev-list", "--count", "HEAD"); got != commits {
		x.Errorf("there are %s commits, want %s", got, commits)
	}
	if !may && slices.Contains(gitDirEntries(x.T, repository), "planted") {
		x.Error("something was written into .git")
	}
}

// limitsTools has a call that may read and write files, and run one command.
func limitsTools(t *testing.T, b *Backend) {
	steps := []agenttest.Step{
		b.Shell("git commit -q --allow-empty -m allowed"),
		b.Shell("sh -c 'echo x > planted'"),
		// A command that only begins like the allowed one.
		b.Shell("git commit -q --allow-empty -m chained; sh -c 'echo x > planted'"),
		b.Shell("git commit -q --allow-empty -m \"$(sh -c 'echo x > planted')\""),
	}
	repository, status := checkout(t), ""
	if b.Write != nil {
		steps, status = append(steps, b.Write(filepath.Join(repository, "written"))), "?? written"
	}
	x := newFixture(t, b, agent.RoleExecute, append(steps, b.Answer(execution))...)
	x.call.Dir, x.call.Tools = repository, []string{"Read", "Write", "Bash(git commit:*)"}
	// A CLI that cannot keep the limit must refuse the call, not ignore the limit.
	if len(b.Limited) == 0 {
		x.mustFail(forge.FailConfig)
		if n := len(x.model.Requests("main")); n != 0 {
			t.Errorf("the model was asked %d times", n)
		}
		return
	}
	x.mustRun()
	if diff := cmp.Diff(b.Limited, x.last().Tools); diff != "" {
		t.Errorf("tools:\n%s", diff)
	}
	if got := git(t, repository, "status", "--porcelain"); got != status {
		t.Errorf("the status of the checkout is %q, want %q", got, status)
	}
	// Without a tool for commands the allowed one cannot run either.
	committed := strings.Contains(git(t, repository, "log", "--format=%s"), "allowed")
	if commits := slices.Contains(b.Limited, b.Shell("")(agenttest.Request{}).Tool); committed != commits {
		t.Errorf("committed: %t, want %t", committed, commits)
	}
}
