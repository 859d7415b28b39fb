package plan

import (
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// About sums up the subject of an intent, besides its title, with the files
// that it is about: for the search of what has to do with it.
func About(in *forge.Intent, files []string) string {
	const most = 4 << 10 // bytes, of the body and of the rest
	rest := strings.Join(slices.Concat(in.Criteria, files), "\n")
	return strings.ToValidUTF8(rule.Shorten(in.Body, most)+"\n"+rule.Shorten(rest, most), "")
}
