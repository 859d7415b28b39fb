package look

import (
	"context"
	"errors"

	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// readOwn reads the repository's own rules from its default branch. A file that is wrong, or that
// our account may not read, counts as none, and is told of: in the log once for each reason, and
// in our comment on each issue that was let in without it. The error is for a forge that does not
// answer: nothing is decided until it does, so that an outage makes no rule go away.
func (w *Watcher) readOwn(ctx context.Context, s *seen) error {
	s.own, s.ignored = nil, ""
	data, err := w.cfg.Forge.File(ctx, s.Repository.Name, config.IntakeFileName)
	if errors.Is(err, forges.ErrNotFound) {
		return nil
	}
	if err == nil {
		s.own, err = intake.ParseNarrowing(config.IntakeFileName, data)
	} else if !errors.Is(err, forges.ErrNoFile) && !errors.Is(err, forges.ErrDenied) {
		return err
	}
	if err != nil {
		s.ignored = config.IntakeFileName + " of the repository does not count: " + err.Error()
	}
	if s.ignored != w.ignored[s.Repository.ID] && s.ignored != "" {
		w.cfg.Log.WarnContext(ctx, "a repository's own intake rules do not count; the operator's rules apply alone", "repository", s.Repository.Name, "error", err)
	}
	w.ignored[s.Repository.ID] = s.ignored
	return nil
}

// explain returns the decision as lines for a person, with why the repository's
// rules do not count if they do not.
func (s *seen) explain(d *intake.Decision) string {
	if s.ignored == "" {
		return d.Explain()
	}
	return d.Explain() + s.ignored + "\n"
}
