package look

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

const (
	// teamFresh is how long an answer about a team counts: whoever left one may
	// use its rules for so long.
	teamFresh = 5 * time.Minute
	// maxTeamAnswers bounds the answers that are remembered: everybody can write an issue.
	maxTeamAnswers = 10_000
)

// teamName is a team of the owner of a repository, in small letters, as forges compare them.
type teamName struct{ owner, team string }

// belonging is a question about an account, by its number, and a team.
type belonging struct {
	repository, account int64
	team                teamName
}

// belongs is the answer, until when it counts.
type belongs struct {
	in    bool
	until time.Time
}

// teams keeps the forge's answers about the teams that rules name. That a team
// cannot be read is kept for the team, and not for each account: so the forge
// is asked once for it, and not for everybody who writes an issue.
type teams struct {
	members map[belonging]belongs
	// unread has until when a team is not asked for again, since it is not
	// there or our account may not read it. It stays there until it was read,
	// so that the log has it once as long as that is so.
	unread map[teamName]time.Time
}

// join notes of the teams that the rules name in which of them an account is.
// Who may nothing in the repository is in none. A team that cannot be read is
// told to the log, once as long as that is so.
func (w *Watcher) join(ctx context.Context, s *seen, a *intake.Account) error {
	if a.ID <= 0 || !a.Permission.Includes(intake.Read) {
		return nil
	}
	list := append(w.cfg.Rules.Teams(s.Repository.Name), s.own.Teams(s.Repository.Name)...)
	slices.SortFunc(list, func(x, y string) int { return strings.Compare(strings.ToLower(x), strings.ToLower(y)) })
	for _, team := range slices.CompactFunc(list, strings.EqualFold) {
		in, read, err := w.belongs(ctx, s, a, team)
		switch {
		case err != nil:
			return err
		case !read:
			a.Unread = append(a.Unread, team)
		case in:
			a.Teams = append(a.Teams, team)
		}
	}
	return nil
}

// belongs returns whether an account is in a team, and whether that can be
// known. The forge is not asked for what it said a short time ago.
func (w *Watcher) belongs(ctx context.Context, s *seen, a *intake.Account, team string) (in, read bool, err error) {
	owner, _, _ := strings.Cut(s.Repository.Name, "/")
	name, now := teamName{strings.ToLower(owner), strings.ToLower(team)}, time.Now()
	if now.Before(w.teams.unread[name]) {
		return false, false, nil
	}
	key := belonging{s.Repository.ID, a.ID, name}
	if got, ok := w.teams.members[key]; ok && now.Before(got.until) {
		return got.in, true, nil
	}
	in, err = w.cfg.Forge.InTeam(ctx, s.Repository.Name, *a, team)
	if errors.Is(err, forges.ErrDenied) || errors.Is(err, forges.ErrNotFound) {
		if _, told := w.teams.unread[name]; !told {
			w.cfg.Log.WarnContext(ctx, "a team of the intake rules cannot be read: it is not there, or our account may not; no rule matches that names it",
				"team", team, "repository", s.Repository.Name)
		}
		if len(w.teams.unread) >= maxTeamAnswers { // those of the repositories' own rules come and go
			clear(w.teams.unread)
		}
		w.teams.unread[name] = now.Add(teamFresh)
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	delete(w.teams.unread, name)
	if len(w.teams.members) >= maxTeamAnswers {
		clear(w.teams.members)
	}
	w.teams.members[key] = belongs{in, now.Add(teamFresh)}
	return in, true, nil
}
