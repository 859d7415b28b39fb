package gateway

import (
	"fmt"
	"strconv"
)

// file is one of the settings: its name in the folder, and its text.
type file struct{ name, text string }

// sweeps has how often a forge is asked for what happened where no hook tells. Hosts that serve
// many limit requests by the hour, so they are asked every minute; one of your own bears ten
// seconds.
var sweeps = map[string]string{kindGitea: "10s", kindGitHub: "1m", kindGitLab: "1m"}

// settings returns the files for an account, as the line of it in forges.yaml, and for people.
//
// Every text that was typed is quoted, so that none of it is YAML of its own (TestInitQuotes).
// Each file is read by the package of services/gateway that reads it in a gateway, in TestInit.
func (o *options) settings(as string, people []person) []file {
	kind := o.kind()
	recipe := ""
	if o.recipe != "" {
		recipe = "\n    recipe: " + strconv.Quote(o.recipe)
	}
	return append([]file{
		{"gateway.yaml", `# The settings of forge-gateway: docs/guide-api.md. It listens for health alone until there are hooks or tokens.
listen: 127.0.0.1:8080
forges: forges.yaml
# hooks: hooks.yaml   # the forge tells at once what happens: docs/guide-` + kind + `.md
` + tokensLine(people)},
		{"forges.yaml", fmt.Sprintf(`# The forges that are watched: docs/guide-%[1]s.md.
forges:
  - name: %[1]s                  # policy.trusted_origins of the project has this name
    kind: %[1]s
    url: %[2]q
    %[3]s
    repositories: [%[4]q]
    rules: intake.yaml
    pull_requests: {%[5]q: %[4]q}
    sweep_every: %[6]s              # without hooks, the forge is asked for what happened; with them, leave this out
`, kind, o.url(), as, o.repository, o.project, sweeps[kind])},
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
