package console

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/board"
)

// boardPage has the data of the board.
type boardPage struct {
	board.List
	Filter   board.Filter
	Projects []forge.ProjectID
	// Wide says that there may be projects that are not listed.
	Wide   bool
	Queues board.Queues
	// More says that there are more intents than were looked at, and Unread
	// names projects that cannot be read.
	More   bool
	Unread []forge.ProjectID
	// unseen is why something is left out that the person has no role for; nil if nothing is.
	unseen error
}

// board shows the intents and goals of the projects, by state, and above them
// what keeps a project waiting and its merge queue.
func (v *visit) board() error {
	f, err := board.Parse(Base+"board", v.r.URL.Query())
	if err != nil {
		return &refusal{http.StatusBadRequest, err.Error()}
	}
	page := boardPage{Filter: f, Projects: v.listable(), Wide: v.token.Everywhere()}
	chosen := page.Projects
	if names := f.Projects(); len(names) > 0 {
		chosen = nil
		for _, name := range names {
			p, err := project(name)
			if err != nil {
				return err
			}
			chosen = append(chosen, p)
		}
		page.Projects = merged(page.Projects, nil)
	}
	v.live = chosen[:min(len(chosen), mostProjects)]
	var body []byte
	if err = admitted(v); err == nil {
		body, err = v.console.boards.Do(v.r.Context(), page.key(chosen), page.maker(v, chosen))
	}
	if api.Barred(err) { // whoever may not see all of it, or not any more, is told so, or sees the rest
		if err := page.fill(v.r.Context(), v, chosen); err != nil {
			return err
		}
		return v.show(http.StatusOK, "board", "Board", &page)
	}
	if err != nil {
		return err
	}
	var b bytes.Buffer
	around := frameOf(v, "Board", nil)
	if err := v.console.pages.ExecuteTemplate(&b, "head", around); err != nil {
		return err
	}
	b.Write(body)
	if err := v.console.pages.ExecuteTemplate(&b, "foot", around); err != nil {
		return err
	}
	write(v, http.StatusOK, b.Bytes())
	return nil
}

// A board costs a reading of all intents, and 50 people look at the same one: when something
// changes, all of them ask within some milliseconds. So all that stands between the frame's head
// and foot is made once for everybody who asks for the same meanwhile (package together). It is the
// same for all who may see all of it: nothing in it is of the person who looks. Each of them is
// admitted by the API first, and counted as if it were asked for them alone. If it is made in the
// name of one who loses a role meanwhile, it is theirs alone, and the others have another one made.

// admitted returns nil if the API would answer everything of which the board of
// the visit's projects is made, and else why it does not.
func admitted(v *visit) error {
	for _, p := range v.live {
		for _, rest := range []string{"/intents", "/queue"} {
			call := api.Call{Method: http.MethodGet, Path: "/api/v1/projects/" + string(p) + rest, Admitted: true}
			if err := v.holder.Ask(v.r.Context(), call, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// key names everything that a board depends on besides the journals: two with
// the same key are the same.
func (page *boardPage) key(chosen []forge.ProjectID) string {
	return fmt.Sprintf("%q %q %q %t", page.Filter.Values.Encode(), chosen, page.Projects, page.Wide)
}

// maker returns a function that makes the body of a board. It goes on when the
// browser that asked for it has left, since others wait for it as well.
func (page *boardPage) maker(v *visit, chosen []forge.ProjectID) func() ([]byte, error) {
	return func() ([]byte, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(v.r.Context()), 2*askTime)
		defer cancel()
		made := *page
		if err := made.fill(ctx, v, chosen); err != nil {
			return nil, err
		}
		if made.unseen != nil {
			return nil, made.unseen
		}
		var b bytes.Buffer
		err := v.console.pages.ExecuteTemplate(&b, "boardbody", &made)
		return b.Bytes(), err
	}
}

// fill reads the intents and queues of the projects, those that the person may see.
func (page *boardPage) fill(ctx context.Context, v *visit, chosen []forge.ProjectID) error {
	live := chosen[:min(len(chosen), mostProjects)]
	told := queues(ctx, v, live)
	all, err := v.collect(ctx, chosen, page.Filter.Ask())
	found, unseen := told()
	if err != nil {
		return err
	}
	page.More, page.Unread, page.unseen = all.More, all.Unread, cmp.Or(all.Unseen, unseen)
	for i, p := range live {
		if q := found[i]; q != nil {
			page.Queues.Add(p, q, all.Intents)
		} else {
			page.Queues.Silent = append(page.Queues.Silent, p)
		}
	}
	page.List = page.Filter.List(all.Intents)
	return nil
}

// queues asks for the merge queues of projects. The function that it returns
// waits for the answers, one for each project: nil where there is none. Its
// error says of one of them that the person may not see it.
func queues(ctx context.Context, v *visit, projects []forge.ProjectID) func() ([]*document.Queue, error) {
	list, errs := make([]*document.Queue, len(projects)), make([]error, len(projects))
	var asked sync.WaitGroup
	for i, p := range projects {
		asked.Go(func() {
			var q document.Queue
			if errs[i] = v.ask(ctx, p, "/queue", &q); errs[i] == nil {
				list[i] = &q
			}
		})
	}
	return func() ([]*document.Queue, error) { asked.Wait(); return list, api.FirstBarred(errs) }
}
