package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
)

// secretFile has a secret wherever a file can have one. Each begins with s3cr3t.
const secretFile = `
worktree_setup:
  - git config --global url."https://x-token:s3cr3t-url@git.example.com/".insteadOf https://git.example.com/
  - export A='s3cr3t quoted' B="s3cr3t double" C=s3cr3t-plain; (D=s3cr3t-sub make)
verify:
  - DB_PASSWORD=s3cr3t-env GOFLAGS=-mod=mod go test ./...
  - ./deploy.sh --dry-run --api-key s3cr3t-flag --token=s3cr3t-flag2 -password "s3cr3t flag3" --AUTH 's3cr3t flag4'
  - curl https://s3cr3t-user@example.com/ && X=1 Y="s3cr3t open
  - TOKEN=$(echo s3cr3t-expanded) make
  - |
    make verify --token \
      s3cr3t-continued
checks:
  unit: {command: PASSWORD=s3cr3t-check make unit}
recipes:
  bump:
    run: TOKEN=s3cr3t-recipe ./bump.sh
    params:
      - {name: KEY, default: s3cr3t-default}
agents:
  mine: {command: [/usr/bin/mine, --key, s3cr3t-agent]}
`

// values returns the settings by name.
func values(t *testing.T, file string) map[string]forge.Setting {
	t.Helper()
	p, err := config.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	list := p.Settings()
	if !slices.IsSortedFunc(list, func(a, b forge.Setting) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("settings are not sorted: %v", list)
	}
	byName := map[string]forge.Setting{}
	for _, s := range list {
		if _, twice := byName[s.Name]; twice {
			t.Errorf("%s is there twice", s.Name)
		}
		byName[s.Name] = s
	}
	return byName
}

// TestSettings says of each setting whether the file or the default has decided
// it, as people write it.
func TestSettings(t *testing.T) {
	got := values(t, `
base_branch: trunk
verify: [make test, make lint]
roles: {review: codex}
timeouts: {verify: 90m, idle: 2h}
budget: {intent_usd: 0}
policy: {approvals: {count: 2, not_requester: false}, protected_paths: [go.mod]}
calls: {escalate: {implement: [{model: opus}]}}
checks: {unit: make unit, lint: make lint}
review: {second: {agent: gemini, when: [high]}}
agent: claude
`)
	for name, want := range map[string]forge.Setting{
		"base_branch":                      {Value: "trunk", By: config.ByRepository},
		"verify":                           {Value: "make test\nmake lint", By: config.ByRepository},
		"roles.review":                     {Value: "codex", By: config.ByRepository},
		"timeouts.verify":                  {Value: "1h30m", By: config.ByRepository},
		"timeouts.idle":                    {Value: "2h", By: config.ByRepository},
		"timeouts.review":                  {Value: "10m", By: config.ByDefault},
		"budget.intent_usd":                {Value: "0", By: config.ByRepository},
		"budget.day_usd":                   {Value: "100", By: config.ByDefault},
		"policy.approvals.count":           {Value: "2", By: config.ByRepository},
		"policy.approvals.not_requester":   {Value: "false", By: config.ByRepository},
		"policy.protected_paths":           {Value: "go.mod", By: config.ByRepository},
		"policy.sandbox":                   {Value: "auto", By: config.ByDefault},
		"calls.escalate.implement.0.model": {Value: "opus", By: config.ByRepository},
		"checks":                           {Value: "lint\nunit", By: config.ByRepository},
		"recipes":                          {By: config.ByDefault},
		"review.second.when":               {Value: "high", By: config.ByRepository},
		"agent":                            {Value: "claude", By: config.ByDefault},
	} {
		want.Name = name
		if got[name] != want {
			t.Errorf("got %+v, want %+v", got[name], want)
		}
	}
	for name, s := range values(t, "{}") {
		if s.By != config.ByDefault {
			t.Errorf("without a file %s is %+v", name, s)
		}
	}
}

// TestSettingsHaveNoSecrets plants secrets wherever a file can have one.
func TestSettingsHaveNoSecrets(t *testing.T) {
	if strings.Count(secretFile, "s3cr3t") < 18 {
		t.Fatal("nothing is planted")
	}
	got := values(t, secretFile)
	for name, s := range got {
		if strings.Contains(s.Value, "s3cr3t") {
			t.Errorf("%s has a secret: %s", name, s.Value)
		}
	}
	for name, want := range map[string]string{
		"verify":         "DB_PASSWORD=…\n./deploy.sh --dry-run --api-key …\ncurl …\nTOKEN=…\nmake verify --token …",
		"worktree_setup": "git config --global …\nexport A=…",
		"checks":         "unit", "recipes": "bump", "agents": "mine",
	} {
		if got[name].Value != want {
			t.Errorf("%s: got %s, want %s", name, got[name].Value, want)
		}
	}
}

// TestSettingsAreBounded: a file with very long values is no reason for a long record.
func TestSettingsAreBounded(t *testing.T) {
	got := values(t, "verify: ['"+strings.Repeat("a/", 20_000)+"']\n")["verify"].Value
	if len(got) > 4096 || !strings.HasSuffix(got, "a/…") && !strings.HasSuffix(got, "/a…") {
		t.Errorf("it has %d bytes, and ends with %q", len(got), got[len(got)-8:])
	}
}
