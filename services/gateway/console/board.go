package console

import (
	"context"
	"net/http"
	"sync"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
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
	// More says that there are more intents than were looked at, and Unread names projects that cannot be read.
	More   bool
	Unread []forge.ProjectID
}

// board shows the intents and goals of the projects, by state, and above them what keeps a project waiting and its merge queue.
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
	told := queues(v.r.Context(), v, chosen[:min(len(chosen), mostProjects)])
	all, err := v.collect(v.r.Context(), chosen, f.Ask())
	found := told()
	if err != nil {
		return err
	}
	page.More, page.Unread = all.More, all.Unread
	for i, p := range v.live {
		if q := found[i]; q != nil {
			page.Queues.Add(p, q, all.Intents)
		} else {
			page.Queues.Silent = append(page.Queues.Silent, p)
		}
	}
	page.List = f.List(all.Intents)
	return v.show(http.StatusOK, "board", "Board", page)
}

// queues asks for the merge queues of projects. The function that it returns waits for the answers, one for each project: nil where
// there is none.
func queues(ctx context.Context, v *visit, projects []forge.ProjectID) func() []*document.Queue {
	list := make([]*document.Queue, len(projects))
	var asked sync.WaitGroup
	for i, p := range projects {
		asked.Go(func() {
			var q document.Queue
			if v.ask(ctx, p, "/queue", &q) == nil {
				list[i] = &q
			}
		})
	}
	return func() []*document.Queue { asked.Wait(); return list }
}
