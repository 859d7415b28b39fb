package cli

import (
	"context"
	"errors"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
)

// statusWatch shows the intents, and then what happens to them until nothing is
// left to do, or Ctrl-C.
func (a *app) statusWatch(ctx context.Context, t *target, f *statusFlags) error {
	if f.format.Data() {
		return usageError{errors.New("--watch shows text; for programs there is `pfl-forge logs -f -o ndjson`")}
	}
	if t.owner || t.bus == nil {
		return errors.New("nothing goes on here; start it with `pfl-forge run`, or watch with `pfl-forge run --watch`")
	}
	all, err := t.summaries(ctx)
	if err != nil {
		return err
	}
	if err := a.table(all, nil, false); err != nil {
		return err
	}
	live := a.live()
	defer live.Close()
	if t.remote {
		_, err = local.Follow(ctx, t.bus, t.project, "", live, a.log())
	} else {
		_, err = local.Join(ctx, t.repo, "", live, a.log())
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}
