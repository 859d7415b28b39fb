package pulls

import (
	"context"
	"fmt"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
)

// closeAfter is for how long an intent has to be over before its pull request is closed: a person who stopped the wrong one says retry.
const closeAfter = time.Minute

// closeUnwanted closes an open pull request whose intent was cancelled or rejected, and says so there: otherwise its checks and reviewers go on
// with it. It reports whether it did. When the intent is retried, Open opens the same one again.
//
// A failure leaves it open until the next look. What became of the intent is asked for by the name in the mark if this gateway did not open the
// pull request; whoever can edit that can close it as well.
func (k *Keeper) closeUnwanted(ctx context.Context, key pullKey, t *tracked, s *forge.PullRequest) bool {
	if k.cfg.Intent == nil || s.State != forge.PullOpen {
		return false
	}
	status, since, err := k.cfg.Intent(ctx, t.to)
	unwanted := status == forge.StatusCancelled || status == forge.StatusRejected
	if err == nil && (!unwanted || k.cfg.Now().Sub(since) < closeAfter) {
		return false
	}
	if err == nil {
		err = k.cfg.Forge.CloseIssue(ctx, key.repository, key.number)
	}
	if err == nil {
		_, err = k.cfg.Forge.Say(ctx, key.repository, key.number, fmt.Sprintf("Closed: the intent `%s` was %s. "+
			"`pfl-forge retry %[1]s` goes on with it, and opens this pull request again.", t.to.Intent, status))
		if err == nil {
			return true
		}
	}
	if ctx.Err() == nil {
		k.cfg.Log.WarnContext(ctx, "a pull request that is not wanted any more is open, or closed without a word; it is looked at again",
			"forge", k.cfg.Name, "repository", key.repository, "number", key.number, "error", err)
	}
	return false
}
