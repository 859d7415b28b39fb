package report

import "github.com/pfl-forge/pfl-forge"

// Outcome returns the outcome of an attempt in one word.
func Outcome(r *forge.Result) string {
	switch out := r.Output.(type) {
	case *forge.Failure:
		return string(out.Reason)
	case *forge.Review:
		switch out.Verdict {
		case forge.VerdictRejected:
			return "rejected"
		case "":
			return "asked_for_checks"
		default:
		}
	case *forge.Rebase:
		if len(out.Conflicts) > 0 {
			return "conflict"
		}
		if out.Verify != nil && !out.Verify.Passed {
			return "verify_failed"
		}
	case *forge.Implementation:
		if out.Commits == 0 && !out.Unchanged {
			return "no_commits"
		}
	default:
	}
	return "ok"
}
