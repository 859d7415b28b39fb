package console

import (
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// TestRequestersAndApproval: who became a requester is not offered to approve
// where the policy bars them, is told that their approval counts where it does
// not, and whoever may become one is told before which of the two holds.
func TestRequestersAndApproval(t *testing.T) {
	b, secret := book(t, "person: Ada, projects: {shop: [requester, approver]}")
	ada, err := b.Find(secret)
	if err != nil {
		t.Fatal(err)
	}
	const barred, counts, joinBarred, joinFree, joinOpen = "You asked for it", "your approval counts all the same",
		"another person has to", "and may approve it all the same", "may then not be the one"
	for about, c := range map[string]struct {
		requesters, barred []string
		want               string
	}{
		"barred":                  {[]string{"bob", "ada"}, []string{"bob", "ada"}, barred + joinBarred},
		"another one is barred":   {[]string{"bob"}, []string{"bob"}, "offered" + joinBarred},
		"a requester, not barred": {[]string{"bob", "ADA"}, nil, "offered" + counts + joinFree},
		"another, not barred":     {[]string{"bob"}, nil, "offered" + joinFree},
		"no requester":            {nil, nil, "offered" + joinOpen},
	} {
		d := document.Detail{}
		d.Project, d.Status, d.Waiting, d.Tasks = "shop", forge.StatusProposed, forge.WaitingApproval, 1
		d.Approvals = &document.Approvals{Needed: 1, Barred: c.barred}
		for _, name := range c.requesters {
			d.Requesters = append(d.Requesters, document.Identity{Name: name, Proven: true})
		}
		p := pendingOf(ada, &d, "change")
		got := ""
		if strings.HasPrefix(p.Objection, barred) {
			got = barred
		}
		for _, o := range p.Offers {
			if o.Name == "approve" {
				got += "offered"
				if strings.Contains(o.Next, counts) {
					got += counts
				}
			}
			for _, joined := range []string{joinBarred, joinFree, joinOpen} {
				if o.Name == "changes" && strings.Contains(o.Next, joined) {
					got += joined
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", about, got, c.want)
		}
	}
}
