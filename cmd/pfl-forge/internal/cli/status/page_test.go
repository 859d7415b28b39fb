package status

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

func TestOpenFirst(t *testing.T) {
	intent := func(id string, s forge.Status) forge.Summary {
		return forge.Summary{Key: forge.Key{Intent: forge.IntentID(id)}, Status: s}
	}
	all := []forge.Summary{
		intent("a", forge.StatusDone), intent("a-child", forge.StatusDone), intent("b", forge.StatusExecuting),
		intent("c", forge.StatusCancelled), intent("d", forge.StatusDone), intent("d-child", forge.StatusError),
	}
	list, depths := openFirst(all, []int{0, 1, 0, 0, 0, 1})
	var got []string
	for i := range list {
		got = append(got, strings.Repeat("-", depths[i])+string(list[i].Key.Intent))
	}
	if want := "b d -d-child a -a-child c"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPages(t *testing.T) {
	for _, c := range []struct {
		total, limit, page, first, end int
		says                           string
	}{
		{3, 0, 1, 0, 3, ""},
		{3, 3, 1, 0, 3, ""},
		{200, 13, 1, 0, 13, "1 to 13 of 200; --page 2 shows more, --limit 0 shows all"},
		{200, 150, 2, 150, 200, "151 to 200 of 200"},
		{200, 150, 3, 200, 200, "no page 3: there are 200 intents"},
	} {
		first, end := window(c.total, c.limit, c.page)
		if first != c.first || end != c.end {
			t.Errorf("page %d of %d by %d is %d to %d", c.page, c.total, c.limit, first, end)
		}
		if got := (&flags{page: c.page}).position(first, end, c.total); got != c.says {
			t.Errorf("page %d of %d by %d: %q, want %q", c.page, c.total, c.limit, got, c.says)
		}
	}
}
