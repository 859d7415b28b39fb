package heard

import (
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/document/asked"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// by returns a comment of an account.
func by(id int64, kind intake.Kind, comment int64) forges.Comment {
	return forges.Comment{ID: comment, Author: intake.Account{ID: id, Login: "eve", Kind: kind}, Body: "Closes #1, @ada", Created: time.Unix(1, 0)}
}

// Our own comments are none, nor are those of programs.
func TestOthers(t *testing.T) {
	list := []forges.Comment{by(1, intake.Member, 1), by(2, intake.Bot, 2), by(3, intake.Outsider, 3), by(4, "", 4)}
	got := Others(list, 1)
	if len(got) != 2 || got[0].ID != 3 || got[1].ID != 4 || len(list) != 4 || list[1].ID != 2 {
		t.Errorf("of others are %+v", got)
	}
}

// One look tells of the newest comment, by what can be shown of it, once; and
// of ten thousand in ten thousand looks it tells a few times. A comment that is
// taken away is not told for another one again.
func TestNews(t *testing.T) {
	teller := Teller{Name: "work"}
	d := &document.Detail{Work: document.Work{Comments: &asked.Heard{}}}
	at := Place{Repository: "acme/shop", Topic: forges.OfPull(3)}
	look := func(list []forges.Comment) *forge.Comments {
		c := teller.news(d, at, list)
		if c == nil {
			return nil
		}
		if e := c.Validate(); e != nil {
			t.Fatalf("%+v: %v", c, e)
		}
		d.Comments.Newest, d.Comments.Told = asked.CommentsOf(c), append(d.Comments.Told, c.Ref)
		return c
	}
	odd := by(9, intake.Outsider, 8)
	odd.Author.Login = "e\u202eve\n\xff" + strings.Repeat("e", 300)
	c := look([]forges.Comment{odd, by(8, intake.Member, 7)})
	if c == nil || c.Count != 2 || c.Ref != "acme/shop pull request 3 comment 8" || !strings.HasPrefix(c.Account, "work account 9 eveeee") ||
		len(c.Account) > 150 {
		t.Fatalf("told is %+v", c)
	}
	if look([]forges.Comment{odd}) != nil || look(nil) != nil {
		t.Error("a comment is told twice")
	}
	list := []forges.Comment{odd}
	for n := range int64(2 * forge.MaxComments) {
		list = append(list, by(9, intake.Outsider, 100+n))
		look(list)
	}
	if n := len(d.Comments.Told); n < 25 || n > 33 || d.Comments.Newest.Count < forge.MaxComments/2 {
		t.Errorf("of %d comments are told %d, the last with %d", len(list), n, d.Comments.Newest.Count)
	}
	fresh := by(9, intake.Outsider, 1_000_000)
	for name, d := range map[string]*document.Detail{
		"former rules": {},
		"ended": {
			State: document.State{Summary: document.Summary{Status: forge.StatusDone}}, Work: document.Work{Comments: &asked.Heard{}},
		},
	} {
		if c := teller.news(d, at, []forges.Comment{fresh}); c != nil {
			t.Errorf("%s: told is %+v", name, c)
		}
	}
}
