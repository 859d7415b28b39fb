package status

import (
	"context"
	"errors"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
)

// follow prints the table of intents, and then what happens to them until
// nothing is left to do, or Ctrl-C. Ctrl-C ends the looking and not the work, so
// it is no error. Where nothing runs there is nothing to follow, which is one.
func follow(ctx context.Context, a *kit.App, t *target.Target, f *flags) error {
	if f.format.Data() {
		return kit.Usage(errors.New("--watch shows text; for programs there is `pfl-forge logs -f -o ndjson`"))
	}
	if t.Owner || t.Empty() {
		return errors.New("nothing is running here; start it with `pfl-forge run`, or with `pfl-forge run --watch`")
	}
	all, err := t.Summaries(ctx)
	if err != nil {
		return err
	}
	if err := Table(a, all, nil, false); err != nil {
		return err
	}
	live := a.Live()
	defer live.Close()
	if t.Remote {
		_, err = t.Follow(ctx, "", live)
	} else {
		_, err = local.Join(ctx, t.Repo, "", live, a.Log())
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}
