package config_test

import (
	"testing"

	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/pathpattern"
)

// TestProtectedByDefault: what runs elsewhere, grants rights or instructs
// agents takes a person's approval where a project says nothing. The names are
// listed here once more, so that one that is lost is noticed.
func TestProtectedByDefault(t *testing.T) {
	protected := config.Default().Policy.ProtectedPaths
	for _, file := range []string{
		".github/workflows/ci.yml", ".gitlab-ci.yml", ".circleci/config.yml", ".buildkite/pipeline.yml", "Jenkinsfile", "azure-pipelines.yml",
		"azure-pipelines.yaml", ".travis.yml", ".drone.yml", ".drone.jsonnet", ".woodpecker.yml", ".woodpecker.yaml", ".woodpecker/a.yml", ".tekton/a.yaml",
		".cirrus.yml", ".semaphore/semaphore.yml", ".appveyor.yml", "appveyor.yml", "buildspec.yml", "bitrise.yml", ".builds/a.yml", ".build.yml", ".zuul.yaml",
		".zuul.d/a.yaml", "cloudbuild.yaml", "cloudbuild.yml", "bitbucket-pipelines.yml", ".gitmodules",
		"CODEOWNERS", "docs/CODEOWNERS", ".husky/pre-commit", ".githooks/pre-push", ".pre-commit-config.yaml", "lefthook.yml", "lefthook.yaml",
		".lefthook.yml", "lefthook-local.yml", ".vscode/tasks.json", ".devcontainer/devcontainer.json", ".devcontainer.json", ".envrc", "Makefile",
		".mcp.json", "pfl-forge.yaml", "CLAUDE.md", "sub/CLAUDE.md", "AGENTS.md", "AGENT.md", "GEMINI.md", "QWEN.md", "CRUSH.md", "WARP.md", ".goosehints",
		".cursorrules", ".cursorignore", ".cursor/rules/a.mdc", ".clinerules", ".clinerules/01.md", ".windsurf/rules/a.md", ".roo/rules/a.md", ".roomodes",
		".kiro/steering/a.md", ".junie/guidelines.md", ".amazonq/rules/a.md", ".continue/rules/a.md",
	} {
		if !pathpattern.Any(protected, file) {
			t.Errorf("%s is not protected", file)
		}
	}
	for _, file := range []string{"main.go", "docs/guide.md", "cmd/agent.md.go", "build.yml", "package.json"} {
		if pathpattern.Any(protected, file) {
			t.Errorf("%s is protected", file)
		}
	}
}
