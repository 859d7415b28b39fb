package look

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

const (
	// teamFresh is how long an answer about a team counts: whoever left one may use its rules for so long.
	teamFresh = 5 * time.Minute
	// maxTeamAnswers bounds the answers that are remembered: everybody can write an issue.
	maxTeamAnswers = 10_000
)

// belonging is a question about an account, by its number, and a team.
type belonging struct {
	repository, account int64
	team                string
}

// belongs is the answer, until when it counts.
type belongs struct {
	in, unread bool
	until      time.Time
}

// join notes of the teams that the rules name in which of them an account is. Who may nothing in the repository is in none. A team that
// cannot be read is told to the log, once as long as that is so.
func (w *Watcher) join(ctx context.Context, s *seen, a *intake.Account) error {
	if a.ID <= 0 || !a.Permission.Includes(intake.Read) {
		return nil
	}
	teams := append(w.cfg.Rules.Teams(s.Repository.Name), s.own.Teams(s.Repository.Name)...)
	slices.Sort(teams)
	for _, team := range slices.Compact(teams) {
		got, err := w.belongs(ctx, s, a, team)
		if err != nil {
			return err
		}
		switch {
		case got.unread:
			a.Unread = append(a.Unread, team)
		case got.in:
			a.Teams = append(a.Teams, team)
		}
		if got.unread && !w.hidden[team] {
			w.cfg.Log.WarnContext(ctx, "a team of the intake rules cannot be read: it is not there, or our account may not; no rule matches that names it",
				"team", team, "repository", s.Repository.Name)
		}
		w.hidden[team] = got.unread
	}
	return nil
}

// belongs asks whether an account is in a team, unless it was asked a short time ago.
func (w *Watcher) belongs(ctx context.Context, s *seen, a *intake.Account, team string) (belongs, error) {
	key := belonging{s.Repository.ID, a.ID, team}
	if got, ok := w.teams[key]; ok && time.Now().Before(got.until) {
		return got, nil
	}
	in, err := w.cfg.Forge.InTeam(ctx, s.Repository.Name, *a, team)
	unread := errors.Is(err, forges.ErrDenied) || errors.Is(err, forges.ErrNotFound)
	if err != nil && !unread {
		return belongs{}, err
	}
	if len(w.teams) >= maxTeamAnswers {
		clear(w.teams)
	}
	got := belongs{in && err == nil, unread, time.Now().Add(teamFresh)}
	w.teams[key] = got
	return got, nil
}
