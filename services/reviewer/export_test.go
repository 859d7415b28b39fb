package reviewer

import "github.com/pfl-forge/pfl-forge"

// RenderReview returns the system prompt and the prompt of a review of this patch.
func RenderReview(cmd *forge.Command, patch string, paths []string) (system, text string, err error) {
	c, s := newReviewData(cmd, nil), show(split(patch))
	c.Diff, c.Parts, c.Binary, c.Index = s.diff, s.parts, s.bare, index(s.parts)
	c.Rules = rules(paths)
	return render(c)
}

// RenderJudgment returns the system prompt and the prompt of a judgment of this patch.
func RenderJudgment(cmd *forge.Command, patch string, paths []string) (system, text string, err error) {
	g := newJudgeData(cmd, nil)
	g.fitted, g.Rules = fit(split(patch)), rules(paths)
	return g.render()
}
