package pulls

import (
	"context"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/heard"
)

// comments tells of the comments of others on pull requests that are open. Nothing waits for that:
// what cannot be told now is told by a later look.
type comments struct{ *Keeper }

// tell is comments for one pull request.
func (k comments) tell(ctx context.Context, t *tracked, l *look) {
	if k.cfg.Hear == nil || l.State != forges.Open {
		return
	}
	on := heard.Place{Repository: l.Repository.Name, Topic: forges.OfPull(l.Number)}
	list, err := k.cfg.Forge.Comments(ctx, on.Repository, on.Topic, time.Time{})
	if list = heard.Others(list, k.self.ID); err == nil && len(list) > 0 {
		err = k.cfg.Hear(ctx, t.to, k.self, on, list)
	}
	if err != nil && ctx.Err() == nil {
		k.cfg.Log.WarnContext(ctx, "cannot tell of the comments on a pull request", "forge", k.cfg.Name, "place", on.String(), "error", err)
	}
}
