package gateway

import (
	"fmt"
	"strconv"
)

// forgeName is the name of the forge in the settings, and so that of the system in whose name intents come.
const forgeName = "gitea"

// file is one of the settings.
type file struct{ name, text string }

// settings returns the files for a token file and for people. Every text that was typed is quoted, so that none of it is YAML of its own.
func (o *options) settings(token string, people []person) []file {
	recipe := ""
	if o.recipe != "" {
		recipe = "\n    recipe: " + strconv.Quote(o.recipe)
	}
	return append([]file{
		{"gateway.yaml", `# The settings of forge-gateway: docs/guide-api.md. It listens for health alone until there are hooks or tokens.
listen: 127.0.0.1:8080
forges: forges.yaml
# hooks: hooks.yaml   # the forge tells at once what happens: docs/guide-gitea.md
` + tokensLine(people)},
		{"forges.yaml", fmt.Sprintf(`# The forges that are watched: docs/guide-gitea.md.
forges:
  - name: %s                   # policy.trusted_origins of the project has this name
    kind: gitea
    url: %q
    token_file: %q
    repositories: [%q]
    rules: intake.yaml
    pull_requests: {%q: %q}
    sweep_every: 10s              # without hooks, the forge is asked for what happened; with them, leave this out
`, forgeName, o.url, token, o.repository, o.project, o.repository)},
		{"intake.yaml", fmt.Sprintf(`# Which issues become intents: docs/guide-intake.md. The first rule that matches decides, and what none matches is ignored.
rules:
  - name: labelled
    when: {label: %[1]q, permission: write} # who puts the label on may write in the repository
    do: go
    project: %[2]q%[3]s
    limit: {per: day, count: 20}
  - name: again
    when: {command: run, permission: write} # the comment /forge run, when the last one has ended
    do: go
    project: %[2]q%[3]s
    limit: {per: day, count: 20}
`, o.label, o.project, recipe)},
	}, o.tokens(people)...)
}
