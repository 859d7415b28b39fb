package gateway

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/slug"
)

// tokensLine returns the line of gateway.yaml about the file of tokens. Without people there is no
// such file, and a line that named it would keep the gateway from starting: it is commented out.
func tokensLine(people []person) string {
	if len(people) == 0 {
		return "# tokens: tokens.yaml # who may decide in comments, and by HTTP: docs/guide-api.md\n"
	}
	return "tokens: tokens.yaml   # who may decide in comments, and by HTTP: docs/guide-api.md\n"
}

// tokens returns the file of tokens for people, each known by the number of their account at the
// forge; no file without people.
//
// The name of an entry is made of the login, as far as an id can have its characters. Two logins
// that make the same name are told apart by the account's number. The entries have no token: these
// people decide in comments, until an operator gives them one for HTTP.
func (o *options) tokens(people []person) []file {
	if len(people) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("# Who is who, and who may do what: docs/guide-api.md. Numbers of accounts stay when a login is given to another.\ntokens:\n")
	used := map[string]bool{}
	for _, p := range people {
		name := slug.Named("person", p.login)
		if used[name] {
			name = fmt.Sprintf("%s-%d", name, p.id)
		}
		used[name] = true
		fmt.Fprintf(&b, "  %q:\n    person: %q\n    accounts: {%s: %d}\n    projects: {%q: [requester, approver, operator]}\n",
			name, p.login, o.kind(), p.id, o.project)
	}
	return []file{{"tokens.yaml", b.String()}}
}
