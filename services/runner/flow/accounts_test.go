package flow_test

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
)

// describeAccounts returns what an intent is told of accounts, as scripts show it.
func describeAccounts(m *forge.ObstaclesChanged) string {
	what := fmt.Sprintf("accounts as of %d:", m.Number)
	for _, c := range m.Closed {
		what += " " + c.Agent + " " + string(c.Reason)
	}
	if m.Asks {
		what += ", ask for it"
	}
	return what
}
