// Package heard tells runners that others commented on running work at a forge: on its issue or
// on its pull request. What they wrote stays at the forge, where whoever may see it reads it.
//
// Strangers comment, too, and as often as they like. So one look tells of one comment, the newest,
// with how many there are; what the runner knows is not told again, and what it would not remember
// (messages.Heard) is not told at all. A comment that is edited later is the same one. Our own
// are none, nor are those of programs: whoever answers our events with comments is not answered.
package heard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"unicode"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/messages"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// Others returns the comments of others than our account and programs, as far as the forge tells
// which accounts are.
func Others(list []forges.Comment, self int64) []forges.Comment {
	return slices.DeleteFunc(slices.Clone(list), func(c forges.Comment) bool { return c.Author.ID == self || c.Author.Kind == intake.Bot })
}

// Teller tells runners of the comments of one forge.
type Teller struct {
	// Name is that of the forge, and of the system that tells; Gateway is the account on the bus.
	Name, Gateway string
	Submissions   *requests.Submissions
	Log           *slog.Logger
}

// Place is where comments are: an issue or a pull request of a repository.
type Place struct {
	forges.Topic

	Repository string
}

// String names the place as references do.
func (p Place) String() string {
	if p.Pull {
		return fmt.Sprintf("%s pull request %d", p.Repository, p.Number)
	}
	return fmt.Sprintf("%s#%d", p.Repository, p.Number)
}

// Tell tells of the comments of a place that are about an intent, unless its runner knows them.
// d is the intent as the runner shows it, self our account. What a runner refuses is told the log.
func (t *Teller) Tell(ctx context.Context, d *document.Detail, self intake.Account, at Place, list []forges.Comment) error {
	c := t.news(d, at, list)
	if c == nil {
		return nil
	}
	caller := requests.Caller{Name: t.Name, Gateway: t.Gateway, Account: account(t.Name, self), Ref: c.Ref}
	_, err := t.Submissions.TellFor(ctx, &caller, forge.Key{Project: d.Project, Intent: d.Intent}, c)
	if refused, ok := errors.AsType[*requests.RequestError](err); ok && refused.Code < http.StatusInternalServerError {
		t.Log.WarnContext(ctx, "cannot tell a runner of comments", "forge", t.Name, "comment", c.Ref, "intent", string(d.Intent), "error", err)
		return nil
	}
	return err
}

// news returns the comments of a place as a runner is to be told of them; nil if it is not.
func (t *Teller) news(d *document.Detail, at Place, list []forges.Comment) *forge.Comments {
	if d.Comments == nil || d.Status.Ended() || len(list) == 0 {
		return nil // without the first, the rules that decide on it hear of none
	}
	newest := slices.MaxFunc(list, func(a, b forges.Comment) int { return cmp.Compare(a.ID, b.ID) })
	c := &forge.Comments{
		Count: min(len(list), forge.MaxComments), Account: account(t.Name, newest.Author),
		Ref: fmt.Sprintf("%s comment %d", at, newest.ID), At: newest.Created.UTC(),
	}
	known := messages.Heard{Told: d.Comments.Told}
	if n := d.Comments.Newest; n != nil {
		known.Newest = forge.Comments(*n)
	}
	if !known.IsNews(c) {
		return nil
	}
	return c
}

// account names an account as journals do, without what could not be seen in its name.
func account(name string, a intake.Account) string {
	login := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(a.Login, ""))
	return fmt.Sprintf("%s account %d %.100s", name, a.ID, login)
}
