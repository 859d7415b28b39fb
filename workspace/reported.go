package workspace

import "github.com/pfl-forge/pfl-forge"

// Report returns what an audit found as Markdown: what the file in reports has.
func Report(i *forge.Intent, a *forge.Audit) []byte { return report(i, a) }
