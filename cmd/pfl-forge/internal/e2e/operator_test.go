package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/console/consoletest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// guide is a scripted model that looks at the inbox, and approves when it is told to.
func guide(r agenttest.Request) agenttest.Reply {
	run := func(command string) agenttest.Reply {
		return agenttest.Use("Bash", object{"command": command, "description": "Drive pfl-forge"})(r)
	}
	switch {
	case !strings.Contains(r.System, isOperator):
		return agenttest.Say("a title")(r)
	case strings.Contains(r.LastUser, "approve it") && r.ToolResults < 2:
		return run("pfl-forge approve risky")
	case strings.Contains(r.LastResult, "risky approved"):
		return agenttest.Say("that is done")(r)
	case strings.Contains(r.LastResult, "needs your approval: high risk"):
		return agenttest.Say("it wants your word")(r)
	}
	return run("pfl-forge inbox --list")
}

// isOperator is how the operator's instructions begin.
const isOperator = "You are the operator of pfl-forge"

// awaitIdle makes a home in which Claude Code asks nothing at its first start there.
func awaitIdle(t *testing.T, dir, key string) string {
	t.Helper()
	home := t.TempDir()
	text, err := json.Marshal(object{
		"hasCompletedOnboarding": true, "theme": "dark", "autoUpdates": false,
		"customApiKeyResponses": object{"approved": []string{key}, "rejected": []string{}},
		"projects":              object{dir: object{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(home, ".claude.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return home
}

// The operator is Claude Code on the person's terminal: it is told how things stand,
// looks with Bash without asking, and its end is the command's.
func TestOperator(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	cli := agenttest.ClaudeCLI(t)
	model := agenttest.NewServer(t)
	r := newRepo(t, map[string]string{"pfl-forge.yaml": "recipes:\n  risky:\n    risk: high\n    run: echo x >x.txt\n"})
	r.draft("risky", "recipe: risky")
	r.must(3, "run")

	const key = "no-key-at-all"
	cmd := exec.Command(filepath.Join(bin, "pfl-forge"), "operator")
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "HOME="+awaitIdle(t, r.dir, key), "PATH="+filepath.Dir(cli)+":"+os.Getenv("PATH"), "TERM=xterm-256color",
		"ANTHROPIC_API_KEY="+key, "ANTHROPIC_BASE_URL="+model.Script("operator", guide), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_AUTOUPDATER=1", "CI=")
	term, err := consoletest.Start(cmd, 100, 40)
	if err != nil {
		t.Fatal(err)
	}
	talk := []struct{ see, press string }{
		{`for shortcuts|manual mode on|shift\+tab to cycle`, "what waits for me?"},
		{`❯.what waits for me\?`, "\r"},
		{`it wants your word`, "approve it"},
		{`❯.approve it`, "\r"},
		{`(?s)(?i)do you want to proceed\?.*esc to cancel`, "\r"}, // it decides nothing without the person
		// While the turn goes on, the key would interrupt it; its duration is
		// shown once it is over.
		{`(?s)that is done.*✻ \S+ for \d+s`, "\x03"},
		{`(?i)again to exit`, "\x03"},
	}
	for _, line := range talk {
		err := term.Await(line.see)
		if err == nil {
			err = term.Type(line.press)
		}
		// The question takes no key in its first moments, so that nobody answers it by accident.
		if proceed := regexp.MustCompile(`(?i)do you want to proceed`); err == nil && proceed.MatchString(line.see) {
			wait.Until(t, "the question is answered", func() bool { return !proceed.MatchString(term.Screen()) || term.Type("\r") != nil })
		}
		if err != nil {
			_ = term.Kill()
			_, _ = term.End()
			t.Fatal(err)
		}
	}
	if code, err := term.End(); code != 0 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
	if got := r.status().of("risky"); got != "approved" && got != "executing" {
		t.Errorf("risky is %s", got)
	}
	told := 0
	for _, q := range model.Requests("operator") {
		if !strings.Contains(q.System, isOperator) {
			continue
		}
		told++
		if !slices.Equal(q.Tools, []string{"Bash"}) || !strings.Contains(q.System, "pfl-forge approve risky --plan ") {
			t.Errorf("tools %q, system prompt:\n%s", q.Tools, q.System)
		}
	}
	if told != 4 {
		t.Errorf("the model was asked %d times", told)
	}
}
