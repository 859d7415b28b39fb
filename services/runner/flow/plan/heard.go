package plan

import "github.com/pfl-forge/pfl-forge/internal/rules"

// Hears reports whether an intent is told of comments, by the version of the rules that decides
// on it, or did so last. Who would tell one that is not, keeps quiet.
func Hears(v rules.Version) bool { return v.Has(rules.HeardComments) }
