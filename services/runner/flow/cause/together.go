package cause

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Together returns the feedback on a change that passes where it was made, and
// fails with what landed meanwhile.
func Together(rb *forge.Rebase) string {
	return fmt.Sprintf("The change passes where it was made, and so does the present base branch without it. Together %q fails. "+
		"Merged meanwhile: %s. Make the change again, on top of the present base branch.\n%s", rb.Verify.Command, landed(rb), rb.Verify.Output)
}

// Outrun returns the feedback on a recipe whose check fails together with what
// landed since it ran, with what the check said.
func Outrun(rb *forge.Rebase, said string) string {
	return fmt.Sprintf("The check failed on the change together with what was merged meanwhile: %s.\n%s", landed(rb), said)
}

// landed lists the files that were merged since a change was made, so many as can be read.
func landed(rb *forge.Rebase) string {
	const most = 20
	list := strings.Join(rb.Landed[:min(len(rb.Landed), most)], ", ")
	if len(rb.Landed) > most {
		list += ", ..."
	}
	return list
}

// Refuted returns the feedback on a claim that the review of the base did not confirm.
func Refuted(issues string) string {
	return "Nothing was committed, because the task was said to be done already. The review of the base branch does not agree:\n" + issues
}

// Asked says, for whoever makes the change again, which checks of a review did not pass.
func Asked(runs []forge.CheckRun) string {
	var b strings.Builder
	for i := range runs {
		if r := &runs[i]; !r.Passed && r.Command != "" {
			fmt.Fprintf(&b, "\n\nCheck %s, which the reviewer asked for, did not pass (%s):\n%s", r.Name, r.Command, r.Output)
		}
	}
	return b.String()
}
